"""Jobs of an agent, for tests of the kinds of jobs."""

from __future__ import annotations

from support.kind_jobs import jobs

__all__ = ["jobs"]
