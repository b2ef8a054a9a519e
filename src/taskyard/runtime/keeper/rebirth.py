"""
A job in the hands of another keeper: its first one was killed, and its work went on elsewhere meanwhile.

The lock decides who keeps it. What the first one left running is ended before anything new begins, so that no two
write to one output.
"""

from __future__ import annotations

import fcntl
import os

from taskyard.disk import files
from taskyard.disk.processes import this_host
from taskyard.errors import StorageError
from taskyard.plain_file import open_pipe, open_plain
from taskyard.runtime import ending, input_pipe, telling
from taskyard.runtime.folder import is_there
from taskyard.runtime.ids import is_job_id
from taskyard.runtime.keeper.birth import Born

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.runtime.folder import JobFolder


class NothingToKeep(Exception):
    """Somebody else keeps the job, or it is over."""


class Reborn(Born):
    """A job that is there, in the hands of a keeper that was not there before."""

    def __init__(self, folder: JobFolder, *, inside: str | None) -> None:
        """Take it over; `inside` is the job that this process is part of, whatever that has to do with it.

        Raises:
            NothingToKeep: it is kept, or over.
            StorageError: it cannot be.
        """
        self.folder = folder
        self.printed = folder.output
        self._answers = {}
        try:
            self._take_lock()
            self.record = self._read()
            self._open()
        except OSError as error:
            raise files.storage_error(folder.path, error) from error
        if is_job_id(inside) and inside != folder.id:
            self._tell_parent(inside)  # so that its keeper does not take us for something it left behind
        telling.surely_started(folder, self.record)
        self._clear_remains()

    def _take_lock(self) -> None:
        if not is_there(self.folder):
            raise NothingToKeep
        try:
            os.link(self.folder.lock, self.folder.living)
        except FileExistsError:
            pass
        self._lock = open_plain(self.folder.living, os.O_RDWR)
        try:
            fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise NothingToKeep from None
        self._keep_room()

    def _read(self) -> dict[str, object]:
        """What its record says by now; under the lock nobody else changes it."""
        if os.path.lexists(self.folder.end) or ending.decided(self.folder) is not None:
            hooks = (ending.read(self.folder.record) or {}).get("hooks")
            ending.carry_out(self.folder, hooks=hooks)
            raise NothingToKeep
        record = ending.read_ours(self.folder.record)
        if record is None or record.get("id") != self.folder.id:
            raise StorageError(self.folder.record, "it does not say what the job is")
        return record

    def _open(self) -> None:
        self.control = open_pipe(self.folder.control, os.O_RDWR)
        self.output = open_plain(self.folder.output, os.O_RDWR | os.O_APPEND)
        os.set_blocking(self.output, True)  # commands inherit it
        self.descriptor = os.open(self.folder.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        input_pipe.remove(self.descriptor)

    def _clear_remains(self) -> None:
        """End what the keeper before us left running here, and correct what the record says of it."""
        changes: dict[str, object] = {"isPaused": False, "takesInput": False}
        if self.record.get("host") == this_host():
            from taskyard.runtime.lost import end_processes

            end_processes(self.folder, self.record)
        else:  # the machine was restarted: numbers of processes mean nothing, and nobody watches
            changes |= {"host": this_host(), "isBackgrounded": True}
        self.change(**changes)
