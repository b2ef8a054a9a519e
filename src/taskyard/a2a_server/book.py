"""Which jobs are tasks of others: by their records on disk, each read once, as no record changes whose it is."""

from __future__ import annotations

import os
import threading

from taskyard.a2a_server.origin import Origin, origin_in
from taskyard.runtime.ending import read_ours
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.ids import is_job_id
from taskyard.shapes import as_object


class Book:
    """The tasks of one user's machine, also those that another server began."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._known: dict[str, Origin | None] = {}
        self._door = threading.Lock()

    def look(self) -> dict[str, Origin]:
        """Every task there is now, by its job's id."""
        try:
            names = set(filter(is_job_id, os.listdir(f"{self._home}/jobs")))
        except FileNotFoundError:
            names = set[str]()
        with self._door:
            for gone in self._known.keys() - names:
                del self._known[gone]
            for name in names - self._known.keys():
                self._known[name] = self._read(name)
            return {name: origin for name, origin in self._known.items() if origin is not None}

    def origin(self, job_id: str) -> Origin | None:
        """Who asked for a job; None if it is no task of anybody's, or is gone."""
        return self._read(job_id) if is_job_id(job_id) else None

    def begun(self, caller: str, message: str) -> str | None:
        """The job that a message has begun, if it has."""
        found = self.look().items()
        return next((job for job, origin in found if (origin.caller, origin.message) == (caller, message)), None)

    def _read(self, job_id: str) -> Origin | None:
        record = read_ours(JobFolder(self._home, job_id).record) or {}
        return origin_in(as_object(record.get("facts")) or {})
