"""Safe file operations: open only plain files, write atomically, rename without losing a file.

Files may have been placed by other programs: a named pipe must not block us, a device must not be read, a
link must not lead elsewhere, and a folder or socket must give a clear error instead of a traceback. So
every such file is opened with O_NONBLOCK and O_NOFOLLOW and refused unless it is a plain file; our own
named pipes are opened here too, and refused unless they are pipes. `tests/test_opens.py` finds any other
`os.open` of a file. O_NOFOLLOW guards only the last path component; folders are checked by the code that
creates them.

Small files are written completely or not at all. `swap` and `rename_noreplace` use `renameat2`: a plain
rename overwrites whatever is at its target, and revives a file that was deleted meanwhile. Swapping shows
what was there; refusing to replace shows that something is.
"""

from __future__ import annotations

import errno
import os
import stat

from taskyard.errors import Damaged, StorageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


_ALWAYS = os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY

_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a symbolic link",
}


class NotPlain(OSError):
    """The path is not a plain file; `strerror` names what it is."""

    def __init__(self, path: str, mode: int) -> None:
        kind = _KINDS.get(stat.S_IFMT(mode), "something else")
        super().__init__(errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL, f"it is {kind}, not a plain file", path)


class NotPipe(OSError):
    """The path is not a named pipe."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.EINVAL, "it is not a named pipe", path)


def open_plain(
    path: str, flags: int = os.O_RDONLY, mode: int = 0o600, *, follow: bool = False, dir_fd: int | None = None
) -> int:
    """Open a plain file without blocking and return its descriptor.

    Args:
        path: The file.
        flags: As for `os.open`; `O_TRUNC` takes effect only after the check.
        mode: Of a new file.
        follow: Whether the last part of the path may be a link: only for a user's own settings.
        dir_fd: The open folder that a relative `path` is in.

    Raises:
        NotPlain: it is a pipe, a socket, a device or a folder.
        OSError: it cannot be opened; a link that must not be followed gives ELOOP.
    """
    flags |= _ALWAYS if follow else _ALWAYS | os.O_NOFOLLOW
    try:
        fd = os.open(path, flags & ~os.O_TRUNC, mode, dir_fd=dir_fd)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.EISDIR, errno.ENODEV):
            raise _not_plain_error(path, error, dir_fd) from error
        raise
    try:
        found = os.fstat(fd).st_mode
        if not stat.S_ISREG(found):
            raise NotPlain(path, found)
        if flags & os.O_TRUNC:
            os.ftruncate(fd, 0)
    except BaseException:
        os.close(fd)
        raise
    return fd


def create_plain(path: str, mode: int = 0o600, *, flags: int = os.O_WRONLY, dir_fd: int | None = None) -> int:
    """Create a plain file and return its descriptor.

    Raises:
        FileExistsError: the name exists, even as a dangling link.
        OSError: it cannot be created.
    """
    flags |= os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(path, flags, mode, dir_fd=dir_fd)


def open_pipe(path: str, flags: int, *, dir_fd: int | None = None) -> int:
    """Open a named pipe without waiting for its other end and return its descriptor.

    Raises:
        NotPipe: it is something else.
        OSError: it cannot be opened; ENXIO if it has no reader, ELOOP if it is a link.
    """
    fd = os.open(path, flags | _ALWAYS | os.O_NOFOLLOW, dir_fd=dir_fd)
    if stat.S_ISFIFO(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise NotPipe(path)


def read_plain(path: str, *, most: int, follow: bool = False) -> bytes:
    """Return up to `most` bytes from the start of a plain file.

    Raises:
        OSError: see `open_plain`.
    """
    fd = open_plain(path, follow=follow)
    try:
        parts: list[bytes] = []
        left = most
        while left > 0 and (data := os.read(fd, min(left, 1 << 20))):
            parts.append(data)
            left -= len(data)
        return b"".join(parts)
    finally:
        os.close(fd)


def _not_plain_error(path: str, error: OSError, dir_fd: int | None) -> OSError:
    """Return the error for a pipe without a reader, a socket, a folder or a device."""
    try:
        return NotPlain(path, os.lstat(path, dir_fd=dir_fd).st_mode)
    except OSError:
        return error


#: Bytes. No record of ours comes near this; a larger file is a mistake or an attack.
LARGEST_RECORD = 4 * 1024 * 1024

_REASONS = {
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


#: What a user can do about it.
_ADVICE = {
    errno.ENOSPC: "Make room on the disk, then try again.",
    errno.EDQUOT: "Make room within your quota, then try again.",
    errno.EROFS: "Mount it for writing, or choose another folder.",
    errno.EACCES: "Ask its owner, or choose another folder.",
    errno.EPERM: "Ask its owner, or choose another folder.",
}


def storage_error(path: str, error: OSError) -> StorageError:
    """Return `error` as a StorageError about `path`."""
    named = error.filename if isinstance(error.filename, str) else path
    if isinstance(error, NotPlain):
        return StorageError(named, str(error.strerror), advice="Move it out of the way.")
    why = _REASONS.get(error.errno or 0) or os.strerror(error.errno or errno.EIO)
    return StorageError(named, why, advice=_ADVICE.get(error.errno or 0, ""))


def read(path: str, *, most: int = LARGEST_RECORD) -> bytes | None:
    """Return the content of `path`; None if there is no such file.

    Raises:
        Damaged: it is larger than `most`, or not a plain file.
        StorageError: the file operation failed.
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
    """Return the whole content of the open file `fd`."""
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
            raise Damaged(path, "it is not a plain file") from error
        raise storage_error(path, error) from error
    if size > most:
        raise Damaged(path, f"it is larger than {most:,} bytes")
    return b"".join(parts)


def create(path: str, data: bytes, *, mode: int = 0o600, sync: bool = False) -> None:
    """Create `path` with `data`; it must not exist, not even as a link.

    Raises:
        FileExistsError: it exists.
        StorageError: the file operation failed; nothing is left behind.
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
    """Replace the content of `path` atomically."""
    temporary = f"{path}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    create(temporary, data, mode=mode, sync=sync)
    try:
        os.rename(temporary, path)
    except OSError as error:
        os.unlink(temporary)
        raise storage_error(path, error) from error


def write_all(fd: int, data: bytes) -> None:
    """Write all bytes, in as many writes as the kernel needs."""
    written = os.write(fd, data)
    while written < len(data):
        written += os.write(fd, data[written:])


def make_folder(path: str, *, mode: int = 0o700) -> None:
    """Create `path` and missing parents, each with `mode`; it must be a real folder, not a link.

    Raises:
        StorageError: it is a file or a link, or the file operation failed.
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
    """Create a folder and its missing parents; `os.makedirs` would not apply `mode` to the parents."""
    missing = [path]
    while (above := os.path.dirname(missing[-1])) not in ("", missing[-1]) and not os.path.lexists(above):
        missing.append(above)
    for folder in reversed(missing):
        try:
            os.mkdir(folder, mode)
        except FileExistsError:
            if not os.path.isdir(folder):  # else another process was faster
                raise


def check_folder(path: str, found: os.stat_result) -> None:
    """Refuse a path that is a link or not a folder."""
    if stat.S_ISLNK(found.st_mode):
        raise StorageError(path, "it is a symbolic link; give the real path")
    if not stat.S_ISDIR(found.st_mode):
        raise StorageError(path, "it is a file, not a folder")


def make_private_folder(path: str) -> None:
    """Create `path` as a private folder: 0700, owned by us, not a link."""
    make_folder(path, mode=0o700)
    check_private_folder(path)


def check_private_folder(path: str) -> None:
    """Refuse a folder that other users could have placed; restrict its mode to 0700.

    Raises:
        FileNotFoundError: there is none.
        StorageError: it is a link, or another user's.
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
    """Remove a file, if it exists."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise storage_error(path, error) from error


def sync_folder(path: str) -> None:
    """Fsync a folder, so that its entries survive a power cut."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


_AT_FDCWD = -100
_NOREPLACE = 1
_EXCHANGE = 2

#: Errors of kernels and file systems without the call.
_UNSUPPORTED = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)

#: The system call, loaded at the first rename: `ctypes` would slow down processes that never rename.
_renameat2: Callable[[str, str, int], int] | None = None


def swap(new: str, current: str) -> bool:
    """Exchange `new` and `current`, so that the old content ends up at `new`.

    Returns False where the file system cannot swap: then `new` simply replaced `current`.

    Raises:
        FileNotFoundError: there is nothing at `current` any more.
    """
    code = _rename_with_flag(new, current, _EXCHANGE)
    if code == 0:
        return True
    if code in _UNSUPPORTED:
        os.stat(current)  # so that a deleted file stays deleted here too, except for a short race
        os.rename(new, current)
        return False
    raise OSError(code, os.strerror(code), current)


def try_swap(one: str, other: str) -> bool:
    """Exchange two files or folders atomically; return False, changing nothing, where that is unsupported."""
    code = _rename_with_flag(one, other, _EXCHANGE)
    if code and code not in _UNSUPPORTED:
        raise OSError(code, os.strerror(code), other)
    return code == 0


def rename_noreplace(new: str, target: str) -> None:
    """Rename `new` to `target`, which must not exist.

    Raises:
        FileExistsError: `target` exists.
    """
    code = _rename_with_flag(new, target, _NOREPLACE)
    if code in _UNSUPPORTED:
        os.link(new, target)
        os.unlink(new)
    elif code:
        raise OSError(code, os.strerror(code), target)


def _rename_with_flag(source: str, target: str, flag: int) -> int:
    """Rename with a `renameat2` flag; return 0 or the errno."""
    global _renameat2
    if _renameat2 is None:
        _renameat2 = _load_renameat2()
    return _renameat2(source, target, flag)


def _load_renameat2() -> Callable[[str, str, int], int]:
    import ctypes

    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    get_errno = ctypes.get_errno

    def renameat2(source: str, target: str, flag: int) -> int:
        if call is None:
            return errno.ENOSYS
        failed: int = call(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), flag)
        return get_errno() if failed else 0

    return renameat2
