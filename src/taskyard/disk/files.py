"""
Small files, written whole or not at all, and never through a planted link.

Paths below a folder of ours are opened relative to nothing but themselves with O_NOFOLLOW: the
last component is never followed. Folders are checked by whoever makes them.
"""

from __future__ import annotations

import errno
import os
import stat

from taskyard.errors import Damaged, StorageError
from taskyard.plain_file import NotPlain, create_plain, open_plain

#: No record of ours comes near this; a larger file is somebody's mistake or trap.
LARGEST_RECORD = 4 * 1024 * 1024

_WHY = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ENOTDIR: "part of the path is a file, not a folder",
    errno.ELOOP: "it is a symbolic link; give the real path",
    errno.ENAMETOOLONG: "the name is too long",
    errno.EISDIR: "it is a folder, not a file",
}


#: What a person can do about it.
_ADVICE = {
    errno.ENOSPC: "Make room on the disk, then try again.",
    errno.EDQUOT: "Make room within your quota, then try again.",
    errno.EROFS: "Mount it for writing, or choose another folder.",
    errno.EACCES: "Ask its owner, or choose another folder.",
    errno.EPERM: "Ask its owner, or choose another folder.",
}


def storage_error(path: str, error: OSError) -> StorageError:
    """`error` as a sentence about `path`."""
    named = error.filename if isinstance(error.filename, str) else path
    if isinstance(error, NotPlain):
        return StorageError(named, str(error.strerror), advice="Move it out of the way.")
    why = _WHY.get(error.errno or 0) or os.strerror(error.errno or errno.EIO)
    return StorageError(named, why, advice=_ADVICE.get(error.errno or 0, ""))


def read(path: str, *, most: int = LARGEST_RECORD) -> bytes | None:
    """What is in `path`; None if there is no such file.

    Raises:
        Damaged: it is larger than `most`, or no plain file.
        StorageError: the disk refused.
    """
    try:
        fd = open_plain(path)
    except FileNotFoundError:
        return None
    except NotPlain as error:
        if error.errno == errno.EISDIR:
            raise storage_error(path, error) from error
        raise Damaged(path, str(error.strerror)) from error
    except OSError as error:
        raise storage_error(path, error) from error
    try:
        return read_open(fd, path, most=most)
    finally:
        os.close(fd)


def read_open(fd: int, path: str, *, most: int = LARGEST_RECORD) -> bytes:
    """Everything in the open file `fd`, from its start."""
    try:
        data = os.pread(fd, 65536, 0)
        if len(data) < 65536 and len(data) <= most:
            return data
        parts, size = [data], len(data)
        while data and size <= most:
            data = os.pread(fd, 1 << 20, size)
            parts.append(data)
            size += len(data)
    except OSError as error:
        if error.errno == errno.ESPIPE:
            raise Damaged(path, "it is no plain file") from error
        raise storage_error(path, error) from error
    if size > most:
        raise Damaged(path, f"it is larger than {most:,} bytes")
    return b"".join(parts)


def create(path: str, data: bytes, *, mode: int = 0o600, sync: bool = False) -> None:
    """Make `path` with `data` in it; it must not exist, not even as a link.

    Raises:
        FileExistsError: it does.
        StorageError: the disk refused; then nothing is left behind.
    """
    try:
        fd = create_plain(path, mode)
    except FileExistsError:
        raise
    except OSError as error:
        raise storage_error(path, error) from error
    try:
        write_all(fd, data)
        if sync:
            os.fsync(fd)
    except OSError as error:
        os.unlink(path)
        raise storage_error(path, error) from error
    finally:
        os.close(fd)


def replace(path: str, data: bytes, *, mode: int = 0o600, sync: bool = False) -> None:
    """Put `data` in place of whatever `path` holds, at once and whole."""
    temporary = f"{path}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    create(temporary, data, mode=mode, sync=sync)
    try:
        os.rename(temporary, path)
    except OSError as error:
        os.unlink(temporary)
        raise storage_error(path, error) from error


def write_all(fd: int, data: bytes) -> None:
    """Write every byte, however small the pieces the kernel takes."""
    written = os.write(fd, data)
    while written < len(data):
        written += os.write(fd, data[written:])


def make_folder(path: str, *, mode: int = 0o700) -> None:
    """Make `path` and its parents if they are missing, each with `mode`; it must be a real folder, not a link.

    Raises:
        StorageError: it is a file or a link, or the disk refused.
    """
    try:
        if not os.path.isdir(path):
            _make_missing(path, mode)
        found = os.lstat(path)
    except FileExistsError as error:
        raise StorageError(path, "it is a file, not a folder") from error
    except OSError as error:
        raise storage_error(path, error) from error
    check_folder(path, found)


def _make_missing(path: str, mode: int) -> None:
    """Make a folder and those above it that are missing; `os.makedirs` leaves those above open to others."""
    missing = [path]
    while (above := os.path.dirname(missing[-1])) not in ("", missing[-1]) and not os.path.lexists(above):
        missing.append(above)
    for folder in reversed(missing):
        try:
            os.mkdir(folder, mode)
        except FileExistsError:
            if not os.path.isdir(folder):  # else another process was quicker
                raise


def check_folder(path: str, found: os.stat_result) -> None:
    """Refuse a folder that is a link or not a folder."""
    if stat.S_ISLNK(found.st_mode):
        raise StorageError(path, "it is a symbolic link; give the real path")
    if not stat.S_ISDIR(found.st_mode):
        raise StorageError(path, "it is a file, not a folder")


def make_private_folder(path: str) -> None:
    """Make `path` as ours alone: 0700, owned by us, no link."""
    make_folder(path, mode=0o700)
    check_private_folder(path)


def check_private_folder(path: str) -> None:
    """Refuse a folder that is not ours alone.

    Raises:
        FileNotFoundError: there is none.
        StorageError: it is a link, or somebody else's.
    """
    found = os.lstat(path)
    check_folder(path, found)
    if found.st_uid != os.geteuid():
        raise StorageError(path, f"it belongs to user {found.st_uid}, not to us")
    if found.st_mode & 0o077:
        try:
            os.chmod(path, 0o700)
        except OSError as error:
            raise storage_error(path, error) from error


def remove(path: str) -> None:
    """Take a file away, if it is there."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise storage_error(path, error) from error


def sync_folder(path: str) -> None:
    """See that a folder's names survive a power cut."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
