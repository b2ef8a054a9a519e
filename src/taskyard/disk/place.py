"""
Which folder this is, whatever it is called here.

The same path may lead to another folder: in a container, in another mount namespace, on a machine made from the same
image. Whoever says "the file is gone" must know that it looked where the other one meant.
"""

from __future__ import annotations

import os

from taskyard.disk import files
from taskyard.errors import Damaged, StorageError

#: A name given to a folder once, by chance: it survives a restart, which device numbers may not.
_NAME = ".place"
_LONGEST = 64


def place_of(folder: str) -> str:
    """What tells `folder` from every other: its given name, its device and inode, and its path."""
    found = os.stat(folder)
    return f"{_given_name(folder)} {found.st_dev}:{found.st_ino} {folder}"


def is_here(place: str, *, restarted: bool = False) -> bool:
    """Whether the path of a place leads to that very folder from here; after a restart its given name decides."""
    name, _, rest = place.partition(" ")
    where, _, folder = rest.partition(" ")
    try:
        found = os.stat(folder)
        if restarted:
            return bool(name) and _read(folder) == name
        return where == f"{found.st_dev}:{found.st_ino}"
    except (OSError, ValueError, StorageError, Damaged):
        return False


def _given_name(folder: str) -> str:
    if (name := _read(folder)) is None:
        try:
            files.create(f"{folder}/{_NAME}", os.urandom(8).hex().encode())
        except FileExistsError:
            pass  # somebody was quicker
        name = _read(folder)
    return name or ""


def _read(folder: str) -> str | None:
    data = files.read(f"{folder}/{_NAME}", most=_LONGEST)
    text = (data or b"").decode("ascii", "replace").strip()
    return text if text.isalnum() else None
