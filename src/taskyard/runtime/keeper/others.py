"""
Jobs that were started inside ours: told to stop, left alone, never signalled.

Their keepers are below us like any process, but a keeper that is killed can no longer vouch for its job.
"""

from __future__ import annotations

import json
import os

from taskyard.errors import StorageError
from taskyard.plain_file import open_pipe
from taskyard.runtime.ending import read
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.ids import is_job_id
from taskyard.runtime.liveness import keeper_of, resume_supervisor
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping


#: Jobs inside jobs beyond this are a circle that somebody wrote by hand.
_DEEPEST = 16


class Inner(NamedTuple):
    """A job inside another."""

    folder: JobFolder
    keeper: int  #: its process number; 0: somebody closes the books of a lost one
    outer: str  #: the job it is inside of, by that one's word

    def fate(self) -> str:
        """What shall become of it when that one ends: kill or keep; "" if it is not inside that one by its own word."""
        try:
            record = read(self.folder.record) or {}
        except StorageError:
            return ""  # something was planted in its place
        return str(record.get("onParentExit")) if record.get("parent") == self.outer else ""


class Others:
    """The jobs inside one job."""

    def __init__(self, folder: JobFolder) -> None:
        self._folder = folder
        self._stop: Mapping[str, object] | None = None  # what those inside us were asked when ours was stopped
        self._asked: set[str] = set()  # ids of the jobs that were

    def _living(self, inside: JobFolder | None = None, depth: int = 0) -> Iterator[Inner]:
        """Those inside us that have a keeper; of one that has none, those inside it: they are ours now."""
        outer = inside or self._folder
        try:
            names = os.listdir(outer.children)
        except OSError:
            return
        for name in names:
            if not is_job_id(name) or name == self._folder.id:  # to ask about our own lock would lose it
                continue
            folder = JobFolder(self._folder.home, name)
            pid = keeper_of(folder)
            if pid is not None:
                yield Inner(folder, pid, outer.id)
            elif depth < _DEEPEST:
                yield from self._living(folder, depth + 1)

    def keepers(self) -> frozenset[int]:
        """The keepers' process numbers."""
        return frozenset(inner.keeper for inner in self._living() if inner.keeper)

    def stop_children(self, *, by: str, grace: float) -> None:
        """Ask those that end with us to end; one that begins later is asked by `are_settled`."""
        self._stop = {"do": "stop", "by": by, "grace": grace}
        self._asked = self.tell(self._stop)

    def tell(self, wish: Mapping[str, object], *, but: Container[str] = ()) -> set[str]:
        """Say something to those that end with us, except for the ids in `but`; the ids of those that got it."""
        ending = [inner.folder for inner in self._living() if inner.folder.id not in but and inner.fate() == "kill"]
        return {folder.id for folder in ending if send(folder, wish)}

    def are_settled(self, *, stopping: bool) -> bool:
        """Whether only such jobs are left inside us that we need not wait for; the others are asked to end."""
        if not stopping or self._stop is None:
            self.stop_children(by=f"the end of {self._folder.id}", grace=3.0)
        else:  # our command may have started one more while it was asked to end
            self._asked |= self.tell(self._stop, but=self._asked)
        return not any(inner.fate() == "kill" for inner in self._living())

    def survivors(self) -> list[int]:
        """The keepers of those that should have ended with us, and live."""
        return [inner.keeper for inner in self._living() if inner.keeper and inner.fate() == "kill"]

    def kept(self) -> list[str]:
        """Those that survive us because they shall."""
        return [inner.folder.id for inner in self._living() if inner.fate() == "keep"]


def send(folder: JobFolder, wish: Mapping[str, object]) -> bool:
    """Say something to a job's keeper, which is resumed first if a signal has stopped it; False if it does not live."""
    resume_supervisor(folder)
    try:
        fd = open_pipe(folder.control, os.O_WRONLY)
    except OSError:
        return False
    try:
        os.write(fd, encoded(wish))
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def encoded(wish: Mapping[str, object]) -> bytes:
    """A wish as it goes through the pipe: on a line of its own, also behind one that somebody left unfinished."""
    return b"\n" + json.dumps(wish, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
