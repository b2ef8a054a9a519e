"""Jobs of an agent, for tests of what agents do."""

from __future__ import annotations

from support.kind_jobs import jobs

__all__ = ["jobs"]
