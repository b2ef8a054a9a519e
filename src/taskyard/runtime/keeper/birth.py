"""
How a job comes into the world: built under a hidden name, locked by its keeper, then renamed.

Nobody ever sees a job without a keeper. A keeper that dies on the way leaves a hidden folder, which means nothing.
"""

from __future__ import annotations

import fcntl
import json
import os

from taskyard.disk import files
from taskyard.runtime.folder import JobFolder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


#: How many answers stay in a record for those who asked.
_ANSWERS = 15


class Born:
    """A job's folder in the hands of its keeper: what is open of it, and its record."""

    def __init__(
        self,
        folder: JobFolder,
        record: dict[str, object],
        *,
        parent: str | None = None,
        arguments: Mapping[str, object] | None = None,
    ) -> None:
        """Build it, and let it be seen. `arguments` is what a handler is asked for."""
        self.folder = folder
        self.record = record
        self._answers: dict[str, object] = {}
        half = folder.half_made
        try:
            os.mkdir(half, 0o700)
        except FileNotFoundError:
            files.make_private_folder(f"{folder.home}/jobs")
            os.mkdir(half, 0o700)
        # A POSIX lock: no child inherits it, and it tells its holder's number. It would be lost if we closed
        # any descriptor of this file, so nobody else in this process ever opens it.
        self._lock = os.open(f"{half}/keeper.lock", _NEW, 0o600)
        fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.mkfifo(f"{half}/control", 0o600)
        # For both ways, so that it never ends: writers come and go.
        self.control = os.open(f"{half}/control", os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        self.output = os.open(f"{half}/output", _NEW | os.O_APPEND, 0o600)
        if arguments is not None:
            files.create(f"{half}/arguments.json", _encoded({"type": record["type"], "arguments": arguments}))
        files.create(f"{half}/job.json", _encoded(record))
        self.descriptor = os.open(half, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        os.rename(half, folder.path)
        if parent is not None:
            self._tell_parent(parent)

    def _tell_parent(self, parent: str) -> None:
        """Let the job we were started inside know of us, so that it can take us along when it ends."""
        children = JobFolder(self.folder.home, parent).children
        try:
            os.mkdir(children, 0o700)
        except FileExistsError:
            pass
        except FileNotFoundError:
            return  # it is gone, with all its records
        try:
            files.create(f"{children}/{self.folder.id}", b"")
        except FileExistsError:
            pass

    def change(self, **changes: object) -> None:
        """Put a changed record in place."""
        self.record.update(changes)
        files.replace(self.folder.record, _encoded(self.record))

    def answer(self, wish: Mapping[str, object], done: object) -> None:
        """Let whoever made a wish see what came of it, if they asked to."""
        if isinstance(token := wish.get("token"), str):
            self._answers = {**dict(list(self._answers.items())[-_ANSWERS:]), token: done}
            self.change(answers=self._answers)

    def hang_up(self) -> None:
        """Take no more wishes: how all who wait for the end learn that it is written."""
        os.close(self.control)

    def close(self) -> None:
        """Let go of it, in a process that lives on; the lock last, since it stands for all else."""
        for fd in (self.control, self.output, self.descriptor, self._lock):
            os.close(fd)


def _encoded(record: Mapping[str, object]) -> bytes:
    return json.dumps(record).encode("utf-8", "surrogatepass")
