"""
Agents on a Ray cluster, by the plain REST of its dashboard: Ray itself is not needed here.

    work        what Ray is asked to do
    dashboard   requests, bounded, and what goes wrong in our own words
    log         what a program said, cut out of Ray's log
    backend     the verbs
"""

from __future__ import annotations

from taskyard.remote.ray.backend import RayBackend as RayBackend
