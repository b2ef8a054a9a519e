"""Folders measured and removed without following a link: every step is relative to a folder that is held open."""

from __future__ import annotations

import os

from taskyard.disk.files import storage_error
from taskyard.plain_file import open_plain

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

#: `st_blocks` counts in these, whatever the file system's own blocks are.
_BLOCK = 512


def disk_use(path: str) -> int:
    """The bytes a folder takes on disk, with all that is in it; holes take none. 0 if it is gone.

    Folders may be nested to any depth: two are open at a time, and no path is longer than a name.
    """
    try:
        here = os.open(path, _FOLDER)
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise storage_error(path, error) from error
    try:
        size, names = _measured(here)
        way = [(os.fstat(here), names)]  # from the top to where we are, with what is left to look at in each
        while way:
            names = way[-1][1]
            if names:
                try:
                    below = os.open(names.pop(), _FOLDER, dir_fd=here)
                except OSError:
                    continue  # removed meanwhile, or not ours to read
                os.close(here)
                here = below
                own, inside = _measured(here)
                size += own
                way.append((os.fstat(here), inside))
                continue
            way.pop()
            if way:
                above = os.open("..", _FOLDER, dir_fd=here)
                os.close(here)
                here = above
                if not os.path.samestat(os.fstat(here), way[-1][0]):
                    break  # it was moved while we looked
        return size
    except OSError as error:
        raise storage_error(path, error) from error
    finally:
        os.close(here)


def _measured(folder: int) -> tuple[int, list[str]]:
    """The bytes that the files right in a folder take on disk, and the names of the folders in it."""
    size, names = 0, list[str]()
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                names.append(entry.name)
                continue
            try:
                size += entry.stat(follow_symlinks=False).st_blocks * _BLOCK
            except FileNotFoundError:
                continue
    return size, names


def remove_folder(path: str) -> None:
    """Remove a folder with all that is in it. Files are emptied first: who has one open must not keep its blocks alive.

    Folders may be nested to any depth: each is moved to the top before it is emptied, and two are open at a time.

    Raises:
        StorageError: the disk refused; some of it may be gone.
    """
    try:
        top = os.open(path, _FOLDER)
    except FileNotFoundError:
        return
    except OSError as error:
        raise storage_error(path, error) from error
    try:
        while names := _emptied(top):
            for name in names:
                _flatten(name, top)
        os.rmdir(path)
    except FileNotFoundError:
        pass  # another process removes it, too
    except OSError as error:
        raise storage_error(path, error) from error
    finally:
        os.close(top)


def _flatten(name: str, top: int) -> None:
    """Remove a folder right in `top`; the folders in it are moved to `top`."""
    here = os.open(name, _FOLDER, dir_fd=top)
    try:
        for inside in _emptied(here):
            os.rename(inside, f".{os.urandom(8).hex()}", src_dir_fd=here, dst_dir_fd=top)
    finally:
        os.close(here)
    os.rmdir(name, dir_fd=top)


def _emptied(folder: int) -> list[str]:
    """Remove the files right in a folder; the names of the folders in it."""
    with os.scandir(folder) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in found:
        if not is_folder:
            _empty(name, folder)
            os.unlink(name, dir_fd=folder)
    return [name for name, is_folder in found if is_folder]


def _empty(name: str, folder: int) -> None:
    """Free the blocks of a plain file that has no other name; another name means that somebody keeps it."""
    try:
        fd = open_plain(name, os.O_WRONLY, dir_fd=folder)
    except OSError:
        return  # a link, a pipe, a socket: nothing to free
    try:
        if os.fstat(fd).st_nlink == 1:
            os.ftruncate(fd, 0)
    finally:
        os.close(fd)
