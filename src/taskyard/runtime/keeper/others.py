"""
Jobs that were started inside ours: told to stop, left alone, never signalled.

Their keepers are below us like any process, but a keeper that is killed can no longer vouch for its job.
"""

from __future__ import annotations

import json
import os

from taskyard.runtime.ending import read
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.ids import is_job_id
from taskyard.runtime.liveness import keeper_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class Others:
    """The jobs inside one job."""

    def __init__(self, folder: JobFolder) -> None:
        self._folder = folder
        self._kept: list[str] = []

    def _living(self) -> Iterator[tuple[JobFolder, int]]:
        try:
            names = os.listdir(self._folder.children)
        except OSError:
            return
        for name in names:
            if is_job_id(name):
                folder = JobFolder(self._folder.home, name)
                pid = keeper_of(folder)
                if pid is not None:
                    yield folder, pid

    def keepers(self) -> frozenset[int]:
        """The keepers' process numbers."""
        return frozenset(pid for _, pid in self._living())

    def stop_children(self, *, by: str, grace: float) -> None:
        """Ask those that end with us to end; remember those that shall survive."""
        self._kept = []
        for folder, _ in self._living():
            if _stays(folder):
                self._kept.append(folder.id)
            else:
                send(folder, {"do": "stop", "by": by, "grace": grace})

    def are_settled(self, *, stopping: bool) -> bool:
        """Whether only such jobs are left inside us that we need not wait for; the others are asked to end."""
        if not stopping:
            self.stop_children(by=f"the end of {self._folder.id}", grace=3.0)
        return all(_stays(folder) for folder, _ in self._living())

    def kept(self) -> list[str]:
        """Those that survive us."""
        if not os.access(self._folder.children, os.F_OK):
            return []  # as nearly always, and without an exception
        return [folder.id for folder, _ in self._living() if _stays(folder)]


def _stays(folder: JobFolder) -> bool:
    record = read(folder.record)
    return record is not None and record.get("onParentExit") == "keep"


def send(folder: JobFolder, wish: dict[str, object]) -> bool:
    """Say something to a job's keeper; False if it does not live."""
    try:
        fd = os.open(folder.control, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.write(fd, json.dumps(wish).encode() + b"\n")
    except OSError:
        return False
    finally:
        os.close(fd)
    return True
