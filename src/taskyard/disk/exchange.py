"""
Renames that look before they leap: `renameat2` with its two flags.

A plain rename overwrites whatever has come to stand at its target, and brings back a file that
somebody deleted meanwhile. Swapping shows what was there; refusing to replace shows that
something is.
"""

from __future__ import annotations

import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_AT_FDCWD = -100
_NOREPLACE = 1
_EXCHANGE = 2

#: What kernels and file systems without the call answer.
_UNSUPPORTED = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)

#: The system call, once somebody renames; loading `ctypes` would slow down those who never do.
_renameat2: Callable[[str, str, int], int] | None = None


def swap(new: str, current: str) -> bool:
    """Put `new` in the place of `current`, and what was there in the place of `new`.

    False where the file system cannot swap: then `new` simply replaced `current`.

    Raises:
        FileNotFoundError: there is nothing at `current` any more.
    """
    code = _call(new, current, _EXCHANGE)
    if code == 0:
        return True
    if code in _UNSUPPORTED:
        os.stat(current)  # so that a deleted file stays deleted here too, but for a moment's gap
        os.rename(new, current)
        return False
    raise OSError(code, os.strerror(code), current)


def try_swap(one: str, other: str) -> bool:
    """Have two files or folders change places, in one step; False, and nothing is done, where that cannot be."""
    code = _call(one, other, _EXCHANGE)
    if code and code not in _UNSUPPORTED:
        raise OSError(code, os.strerror(code), other)
    return code == 0


def place(new: str, target: str) -> None:
    """Move `new` to `target`, where nothing may be.

    Raises:
        FileExistsError: something is there.
    """
    code = _call(new, target, _NOREPLACE)
    if code in _UNSUPPORTED:
        os.link(new, target)
        os.unlink(new)
    elif code:
        raise OSError(code, os.strerror(code), target)


def _call(source: str, target: str, flag: int) -> int:
    """Rename; 0, or the error's number."""
    global _renameat2
    if _renameat2 is None:
        _renameat2 = _load()
    return _renameat2(source, target, flag)


def _load() -> Callable[[str, str, int], int]:
    import ctypes

    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    get_errno = ctypes.get_errno

    def renameat2(source: str, target: str, flag: int) -> int:
        if call is None:
            return errno.ENOSYS
        failed: int = call(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), flag)
        return get_errno() if failed else 0

    return renameat2
