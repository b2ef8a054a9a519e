"""
What stands beside a memory folder: `.<name>.dream`, ours alone.

    lock          held by the dream at work; its mtime is when the last one was done, 1970 for never
    claim.json    who is at work, and what the mtime was before; gone when it is done
    work/         the staged copy, and the sessions it reads
    old/          the folder as it was before each dream, the newest few
    kept/         results that could not be put in place

It is beside, not inside, so that folders can change places in one step, and so that whoever shares the folder shares
the lock.
"""

from __future__ import annotations

import os

from taskyard.disk import files
from taskyard.errors import StorageError
from taskyard.typed import NamedTuple


class Side(NamedTuple):
    """The places beside one memory folder."""

    memory: str  #: its real path

    @property
    def path(self) -> str:
        """The folder itself."""
        parent, name = os.path.split(self.memory)
        return os.path.join(parent, f".{name}.dream")

    @property
    def lock(self) -> str:
        """Held by the dream at work; its mtime says when the last one was done."""
        return f"{self.path}/lock"

    @property
    def claim(self) -> str:
        """Who is at work, and what to put back if it dies."""
        return f"{self.path}/claim.json"

    @property
    def work(self) -> str:
        """What the dream at work has of its own."""
        return f"{self.path}/work"

    @property
    def stage(self) -> str:
        """The copy that is worked on."""
        return f"{self.work}/memory"

    @property
    def old(self) -> str:
        """Where the folder's earlier states are."""
        return f"{self.path}/old"

    @property
    def kept(self) -> str:
        """Where results are that could not be put in place."""
        return f"{self.path}/kept"

    def is_there(self) -> bool:
        """Whether there ever was a dream here; refuses what somebody else put in its place."""
        try:
            files.check_private_folder(self.path)
        except FileNotFoundError:
            return False
        return True

    def make(self) -> None:
        """Have all of it, the lock with a time that says never.

        Raises:
            StorageError: the disk refused, or something else is there.
        """
        parent = os.path.dirname(self.memory)
        files.make_folder(parent)
        if os.path.ismount(self.memory):
            raise StorageError(self.memory, "it is a mount of its own, and cannot change places with a copy")
        for folder in (self.path, self.old, self.kept):
            files.make_private_folder(folder)
        if not os.path.lexists(self.lock):
            self._make_lock()

    def _make_lock(self) -> None:
        """A lock that has its time before anybody can see it."""
        new = f"{self.lock}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
        files.create(new, b"")
        try:
            os.utime(new, ns=(0, 0))
            os.link(new, self.lock)
        except FileExistsError:
            pass  # another was quicker
        finally:
            os.unlink(new)
