"""
Somebody's configuration file: read, kept in a copy, and written whole, wherever their links lead.

People keep their settings elsewhere and link to them: the file behind a link is the one that is read and replaced,
the link stays. It must be a plain file of this user. A project's files may lead nowhere outside of it: somebody else
wrote them.
"""

from __future__ import annotations

import os
import stat
import time

from taskyard.disk import files
from taskyard.disk.folder_lock import FolderLock
from taskyard.errors import BadConfig, Conflict
from taskyard.typed import NamedTuple

#: What Claude Code remembers grows with its projects; beyond this it is no configuration.
LARGEST = 64 * 1024 * 1024

#: Seconds for another program to be done with a file.
_PATIENCE = 5.0


class Read(NamedTuple):
    """A file as it was read."""

    path: str  #: as its program knows it
    real: str  #: behind all links
    data: bytes | None  #: None: there is none yet
    mode: int = 0o600

    @property
    def text(self) -> str:
        """What is in it; nothing if there is none."""
        try:
            return (self.data or b"").decode()
        except UnicodeDecodeError as error:
            raise BadConfig(self.path, f"it is no UTF-8 (byte {error.start})") from error


def read(path: str, *, within: str | None = None) -> Read:
    """The file at `path`, which may be missing, and with `within` must not lead out of that folder.

    Raises:
        BadConfig: it is no plain file of ours.
        StorageError: the disk refused.
    """
    real = os.path.realpath(path)
    if within is not None and os.path.commonpath([os.path.realpath(within), real]) != os.path.realpath(within):
        raise BadConfig(path, f"it leads to {real}, outside of the project", advice="Replace the link by a file.")
    try:
        found = os.lstat(real)
    except (FileNotFoundError, NotADirectoryError):
        if os.path.lexists(path):
            raise BadConfig(
                path, f"it leads to {real}, which is not there", advice="Mend or remove the link."
            ) from None
        return Read(path, real, None, 0o644 if within is not None else 0o600)
    except OSError as error:
        raise files.storage_error(path, error) from error
    if not stat.S_ISREG(found.st_mode):
        raise BadConfig(path, "it is no plain file", advice="Move it out of the way.")
    if found.st_uid != os.geteuid():
        raise BadConfig(path, f"it belongs to user {found.st_uid}, not to you", advice="Run this as its owner.")
    return Read(path, real, files.read(real, most=LARGEST), stat.S_IMODE(found.st_mode))


def write(file: Read, data: bytes | None, *, locked: bool = False) -> str | None:
    """Replace what was read by `data` (None: by nothing) and answer where the copy of it is, if there was any.

    Args:
        file: As it was read; if it has changed since, it is left alone.
        data: What it is to hold.
        locked: Its program writes it under a lock folder, which is to be taken.

    Raises:
        Conflict: somebody changed it meanwhile.
        Busy: its program holds its lock.
    """
    folder = os.path.dirname(file.real)
    if not os.path.isdir(folder):
        files.make_folder(folder, mode=0o755 if file.mode & 0o044 else 0o700)
    if not locked:
        return _write(file, data)
    with FolderLock(file.real, timeout=_PATIENCE, what=file.path, guarded=False):
        return _write(file, data)


def _write(file: Read, data: bytes | None) -> str | None:
    copy = None if file.data is None else _keep(file, file.data)
    temporary = f"{file.real}.taskyard-{os.getpid()}-{os.urandom(4).hex()}.tmp"
    if data is not None:
        files.create(temporary, data, mode=file.mode, sync=True)
    try:
        if files.read(file.real, most=LARGEST) != file.data:
            raise Conflict(f"{file.path} was changed by somebody meanwhile. Nothing was written: try again.")
        if data is None:
            os.unlink(file.real)
        else:
            os.chmod(temporary, file.mode)
            os.rename(temporary, file.real)
    except OSError as error:
        raise files.storage_error(file.real, error) from error
    finally:
        files.remove(temporary)
    return copy


def _keep(file: Read, data: bytes) -> str:
    """A copy of what is there, beside it."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for number in range(1, 1000):
        copy = f"{file.real}.taskyard-{stamp}{'' if number == 1 else f'-{number}'}.bak"
        try:
            files.create(copy, data, mode=file.mode & 0o600, sync=True)
        except FileExistsError:
            continue
        return copy
    raise Conflict(f"{file.path} has been copied a thousand times within this second.")
