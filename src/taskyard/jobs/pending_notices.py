"""
Cheap check whether any notice can be pending, by listing a few folders, for frequent callers.

Everything that can become a notice has a name in one of them: live jobs, waiting notices, and leased ones
that may return. Jobs are checked first: a notice sent meanwhile then shows in the boxes.
"""

from __future__ import annotations

import os

from taskyard.jobs.job_dir import JobPaths, live_folder, supervisor_pid


def has_none_pending(home: str) -> bool:
    """Return whether certainly no notice waits for any recipient; False if unknown."""
    try:
        return _all_supervised(home) and not any(map(_list_names, _boxes(home)))
    except OSError:
        return False


def _all_supervised(home: str) -> bool:
    return all(supervisor_pid(JobPaths(home, name)) is not None for name in _list_names(live_folder(home)))


def _boxes(home: str) -> list[str]:
    return [f"{home}/outbox/{name}/{part}" for name in _list_names(f"{home}/outbox") for part in ("new", "taken")]


def _list_names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []
