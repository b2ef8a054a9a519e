"""Folders measured and removed without following a link: every step is relative to a folder that is held open."""

from __future__ import annotations

import os
import stat

from taskyard.disk.files import storage_error

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

#: `st_blocks` counts in these, whatever the file system's own blocks are.
_BLOCK = 512


def disk_use(path: str) -> int:
    """The bytes a folder takes on disk, with all that is in it; holes take none. 0 if it is gone."""
    try:
        with os.scandir(path) as entries:
            return sum(map(_use_of, entries))
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise storage_error(path, error) from error


def _use_of(entry: os.DirEntry[str]) -> int:
    if entry.is_dir(follow_symlinks=False):
        return disk_use(entry.path)
    try:
        return entry.stat(follow_symlinks=False).st_blocks * _BLOCK
    except FileNotFoundError:
        return 0


def remove_folder(path: str) -> None:
    """Remove a folder with all that is in it. Files are emptied first: who has one open must not keep its blocks alive.

    Raises:
        StorageError: the disk refused; some of it may be gone.
    """
    try:
        _remove(path, None)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise storage_error(path, error) from error


def _remove(name: str, parent: int | None) -> None:
    here = os.open(name, _FOLDER, dir_fd=parent)
    try:
        with os.scandir(here) as entries:
            found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        for inside, is_folder in found:
            if is_folder:
                _remove(inside, here)
            else:
                _empty(inside, here)
                os.unlink(inside, dir_fd=here)
    finally:
        os.close(here)
    os.rmdir(name, dir_fd=parent)


def _empty(name: str, folder: int) -> None:
    """Free the blocks of a plain file that has no other name; another name means that somebody keeps it."""
    try:
        fd = os.open(name, _FILE, dir_fd=folder)
    except OSError:
        return  # a link, a pipe, a socket: nothing to free
    try:
        found = os.fstat(fd)
        if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
            os.ftruncate(fd, 0)
    finally:
        os.close(fd)
