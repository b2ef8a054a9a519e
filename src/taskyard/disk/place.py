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

_NETWORK = "/sys/class/net"


def place_of(folder: str) -> str:
    """What tells `folder` from every other: its given name with the machine's print, device and inode, and path."""
    found = os.stat(folder)
    return f"{_given_name(folder)}.{machine_print()} {found.st_dev}:{found.st_ino} {folder}"


def is_here(place: str, *, restarted: bool = False) -> bool:
    """Whether the path of a place leads to that very folder from here.

    After a restart its given name decides, and that this is the same machine: a copy of the disk has the same names.
    """
    name, _, rest = place.partition(" ")
    name, _, machine = name.partition(".")
    where, _, folder = rest.partition(" ")
    try:
        found = os.stat(folder)
        if restarted:
            return bool(name) and _read(folder) == name and machine in ("", machine_print())
        return where == f"{found.st_dev}:{found.st_ino}"
    except (OSError, ValueError, StorageError, Damaged):
        return False


def machine_print() -> str:
    """What tells this machine from a copy of it that has the same machine id; the same after a restart.

    Its host name and the built-in network adapters. Where either was changed, it counts as another machine, and what
    was held before the restart as held by somebody unknown.
    """
    global _print
    if _print is None:
        import zlib  # not for those who never claim

        _print = f"{zlib.crc32(' '.join([os.uname().nodename, *_adapters()]).encode()):08x}"
    return _print


_print: str | None = None


def _adapters() -> list[str]:
    """The addresses of the network adapters that are part of the machine: not virtual, not plugged in, not random."""
    found: list[str] = []
    try:
        for name in sorted(os.listdir(_NETWORK)):
            device = f"{_NETWORK}/{name}/device"
            if not os.path.exists(device) or "/usb" in os.path.realpath(device):
                continue
            if _line(f"{_NETWORK}/{name}/addr_assign_type") == "0":
                found.append(_line(f"{_NETWORK}/{name}/address"))
    except OSError:
        pass
    return found


def _line(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.readline().strip()
    except OSError:
        return ""


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
