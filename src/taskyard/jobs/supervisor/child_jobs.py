"""
Child jobs of a supervised job: asked to stop through their control pipes, never signalled.

Their supervisors are processes below ours, but a supervisor that is killed cannot record its job's end.
"""

from __future__ import annotations

import json
import os

from taskyard.core.files import open_pipe
from taskyard.core.values import NamedTuple
from taskyard.errors import StorageError
from taskyard.jobs.exit_record import read_json
from taskyard.jobs.job_dir import JobPaths, resume_supervisor, supervisor_pid
from taskyard.jobs.model import is_job_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping


#: Deepest nesting of jobs; more is a cycle made by hand.
_MAX_DEPTH = 16


class ChildJob(NamedTuple):
    """A job started inside another job."""

    folder: JobPaths
    keeper: int  #: its supervisor's pid; 0: another process is recovering a lost job
    outer: str  #: id of its parent job, which lists it

    def fate(self) -> str:
        """Return `kill` or `keep` for when the parent exits; "" if its own record names another parent."""
        try:
            record = read_json(self.folder.record) or {}
        except StorageError:
            return ""  # its path was replaced by something else
        return str(record.get("onParentExit")) if record.get("parent") == self.outer else ""


class ChildJobs:
    """The child jobs of one job."""

    def __init__(self, folder: JobPaths) -> None:
        self._folder = folder
        self._stop: Mapping[str, object] | None = None  # the stop message sent to children when our job was stopped
        self._asked: set[str] = set()  # ids of the jobs that received it

    def _living(self, inside: JobPaths | None = None, depth: int = 0) -> Iterator[ChildJob]:
        """Yield children that have a supervisor; of a child without one, its children: they are ours now."""
        outer = inside or self._folder
        try:
            names = os.listdir(outer.children)
        except OSError:
            return
        for name in names:
            if not is_job_id(name) or name == self._folder.id:  # opening our own lock file would lose the lock
                continue
            folder = JobPaths(self._folder.home, name)
            pid = supervisor_pid(folder)
            if pid is not None:
                yield ChildJob(folder, pid, outer.id)
            elif depth < _MAX_DEPTH:
                yield from self._living(folder, depth + 1)

    def supervisors(self) -> frozenset[int]:
        """Return the supervisors' pids."""
        return frozenset(inner.keeper for inner in self._living() if inner.keeper)

    def stop_children(self, *, by: str, grace: float) -> None:
        """Ask the children that end with us to stop; `all_settled` asks those that start later."""
        self._stop = {"do": "stop", "by": by, "grace": grace}
        self._asked = self.tell(self._stop)

    def tell(self, wish: Mapping[str, object], *, exclude: Container[str] = ()) -> set[str]:
        """Send a message to the children that end with us, except `exclude`; return the ids that received it."""
        ending = [inner.folder for inner in self._living() if inner.folder.id not in exclude and inner.fate() == "kill"]
        return {folder.id for folder in ending if write_control(folder, wish)}

    def all_settled(self, *, stopping: bool) -> bool:
        """Return whether no child is left that we must wait for; ask those that are to stop."""
        if not stopping or self._stop is None:
            self.stop_children(by=f"the end of {self._folder.id}", grace=3.0)
        else:  # our command may have started another one during termination
            self._asked |= self.tell(self._stop, exclude=self._asked)
        return not any(inner.fate() == "kill" for inner in self._living())

    def survivors(self) -> list[int]:
        """Return the supervisors that should have exited with us and still run."""
        return [inner.keeper for inner in self._living() if inner.keeper and inner.fate() == "kill"]

    def kept(self) -> list[str]:
        """Return the ids of the children that are meant to outlive us."""
        return [inner.folder.id for inner in self._living() if inner.fate() == "keep"]


def write_control(folder: JobPaths, wish: Mapping[str, object]) -> bool:
    """Send a message to a job's supervisor (resumed first if a signal stopped it); return False if it has none."""
    resume_supervisor(folder)
    try:
        fd = open_pipe(folder.control, os.O_WRONLY)
    except OSError:
        return False
    try:
        os.write(fd, encode_control(wish))
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def encode_control(wish: Mapping[str, object]) -> bytes:
    """Encode a message as a line of its own, even behind an unfinished line of another writer."""
    return b"\n" + json.dumps(wish, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
