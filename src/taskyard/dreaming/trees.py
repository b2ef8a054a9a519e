"""
Folders read and copied without following a link, within bounds.

Every step is relative to a folder that is held open, so a link planted meanwhile leads nowhere. What is read is what
is remembered: the tree that a copy answers with describes the very bytes that were copied.
"""

from __future__ import annotations

import os
import stat
from itertools import islice

from taskyard.disk.files import storage_error, write_all
from taskyard.errors import StorageError, shown
from taskyard.plain_file import NotPlain, create_plain, open_plain
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    Tree = Mapping[str, "Entry"]

#: A memory is some dozens of notes; far more than that is something else.
MOST_FILES = 10_000
MOST_BYTES = 100_000_000
_DEEPEST = 32

FILE, FOLDER, LINK = "file", "folder", "link"

_DIR = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK = 1 << 20


class Entry(NamedTuple):
    """One name in a tree."""

    kind: str
    mode: int
    size: int = 0
    content: str = ""  #: of a file its hash, of a link where it leads
    names: int = 1  #: of a file: how many it has

    @property
    def essence(self) -> tuple[str, int, str]:
        """What makes it another one if it differs."""
        return self.kind, self.mode, self.content


def read(path: str) -> dict[str, Entry]:
    """All that is in a folder, by path relative to it; empty if there is no such folder.

    Raises:
        StorageError: it is too large, or holds what is neither file nor folder nor link.
    """
    return _taken(path, None)


def copy(path: str, target: str) -> dict[str, Entry]:
    """Copy a folder's files to `target`, a new folder, and answer what is in it. Links are named, and not copied.

    Raises:
        StorageError: as for `read`.
    """
    os.mkdir(target, 0o700)
    return _taken(path, target)


def fingerprint(tree: Tree) -> str:
    """One short text for all of a tree; another for any other."""
    import hashlib

    hashed = hashlib.sha256()
    for name in sorted(tree):
        hashed.update(repr((name, tree[name].essence)).encode("utf-8", "surrogatepass"))
    return hashed.hexdigest()


def signature(path: str) -> dict[str, tuple[int, int, int]]:
    """A quick look at a folder's files: what differs from an earlier look was changed. Bounded as all of it is."""
    found: dict[str, tuple[int, int, int]] = {}
    waiting = [(path, "")]
    while waiting and len(found) < MOST_FILES:
        folder, prefix = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append((entry.path, f"{prefix}{entry.name}/"))
                    else:
                        seen = entry.stat(follow_symlinks=False)
                        found[prefix + entry.name] = seen.st_mtime_ns, seen.st_size, seen.st_ino
        except OSError:
            continue  # gone while we look: the next look tells
    return found


def put_links(tree: Tree, target: str) -> None:
    """Make the links of `tree` in `target` as they were, where nothing else has taken their place."""
    for name, entry in sorted(tree.items()):
        place = os.path.join(target, name)
        if entry.kind == LINK and os.path.isdir(os.path.dirname(place)) and not os.path.lexists(place):
            os.symlink(entry.content, place)


class _Walk:
    """One walk through a folder, with what is left of its bounds."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.found: dict[str, Entry] = {}
        self.room = MOST_BYTES

    def folder(self, here: int, there: int | None, prefix: str) -> None:
        """Take in an open folder, and copy it into another."""
        with os.scandir(here) as entries:
            names = [entry.name for entry in islice(entries, MOST_FILES + 1)]
        if prefix.count("/") > _DEEPEST or len(self.found) + len(names) > MOST_FILES:
            raise StorageError(self.root, f"it has more than {MOST_FILES:,} names or is more than {_DEEPEST} deep")
        for name in names:
            self._entry(name, here, there, prefix + name)

    def _entry(self, name: str, here: int, there: int | None, path: str) -> None:
        mode = os.stat(name, dir_fd=here, follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            self.found[path] = Entry(LINK, 0, content=os.readlink(name, dir_fd=here))
        elif stat.S_ISDIR(mode):
            self.found[path] = Entry(FOLDER, stat.S_IMODE(mode) & 0o777)
            self._below(name, here, there, path)
        elif stat.S_ISREG(mode):
            self.found[path] = self._file(name, here, there, path)
        else:
            raise StorageError(self.root, f"{shown(path)} in it is neither a file nor a folder")

    def _below(self, name: str, here: int, there: int | None, path: str) -> None:
        inner = os.open(name, _DIR, dir_fd=here)
        try:
            target = None
            if there is not None:
                os.mkdir(name, 0o700, dir_fd=there)
                target = os.open(name, _DIR, dir_fd=there)
            try:
                self.folder(inner, target, path + "/")
                if target is not None:
                    os.fchmod(target, self.found[path].mode | 0o700)
            finally:
                if target is not None:
                    os.close(target)
        finally:
            os.close(inner)

    def _file(self, name: str, here: int, there: int | None, path: str) -> Entry:
        import hashlib

        hashed, size = hashlib.sha256(), 0
        try:
            fd = open_plain(name, dir_fd=here)
        except NotPlain as error:
            raise StorageError(self.root, f"{shown(path)} in it changed while it was read") from error
        try:
            seen = os.fstat(fd)
            mode = stat.S_IMODE(seen.st_mode) & 0o777
            copied = None if there is None else create_plain(name, mode, dir_fd=there)
            try:
                while chunk := os.read(fd, _CHUNK):
                    size += len(chunk)
                    if size > self.room:
                        raise StorageError(self.root, f"it holds more than {MOST_BYTES:,} bytes")
                    hashed.update(chunk)
                    if copied is not None:
                        write_all(copied, chunk)
                if copied is not None:
                    os.fchmod(copied, mode)
                    os.utime(copied, ns=(seen.st_atime_ns, seen.st_mtime_ns))
            finally:
                if copied is not None:
                    os.close(copied)
        finally:
            os.close(fd)
        self.room -= size
        return Entry(FILE, mode, size, hashed.hexdigest(), seen.st_nlink)


def _taken(path: str, target: str | None) -> dict[str, Entry]:
    walk = _Walk(path)
    try:
        here = os.open(path, _DIR)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise storage_error(path, error) from error
    try:
        there = None if target is None else os.open(target, _DIR)
        try:
            walk.folder(here, there, "")
        finally:
            if there is not None:
                os.close(there)
    except OSError as error:
        raise storage_error(path, error) from error
    finally:
        os.close(here)
    return walk.found
