"""Whether a folder is on a network file system, where kernel locks may lie."""

from __future__ import annotations

import os

_NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "9p", "ceph", "glusterfs", "lustre", "gpfs", "beegfs", "ncpfs"}
    | {"davfs", "virtiofs", "fuse.sshfs", "fuse.s3fs", "fuse.rclone", "fuse.glusterfs", "fuse.cephfs"}
    | {"fuse.gcsfuse", "fuse.davfs2"}
)


_TABLE = "/proc/self/mountinfo"


def is_network(folder: str, *, table: str = _TABLE) -> bool:
    """Whether `folder` lives on another machine's disk, as far as the mount table tells.

    `TASKYARD_NETWORK_FS=1` (or `0`) decides for those who know better.
    """
    if told := os.environ.get("TASKYARD_NETWORK_FS"):
        return told == "1"
    device = _device(folder)
    if table == _TABLE and (known := _known.get(device)) is not None:
        return known
    found = _looked_up(folder, device, table)
    if table == _TABLE and device:
        _known[device] = found
    return found


#: The answer for each device this process met: what a device is does not change while it is in use.
_known: dict[str, bool] = {}


def _looked_up(folder: str, device: str, table: str) -> bool:
    try:
        with open(table, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.readlines()
    except OSError:
        return False
    for line in lines:
        if device and device in line.partition(" - ")[0]:
            return _mount(line)[1] in _NETWORK
    # Some file systems show their files another device than their mount: then the longest path decides.
    path = os.path.realpath(folder)
    best, kind = "", ""
    for line in lines:
        mount, fs = _mount(line)
        if mount and _contains(mount, path) and len(mount) >= len(best):
            best, kind = mount, fs
    return kind in _NETWORK


def _device(folder: str) -> str:
    """The device of `folder` as the table writes it; spaces within its paths are escaped."""
    try:
        number = os.stat(folder).st_dev
    except OSError:
        return ""
    return f" {os.major(number)}:{os.minor(number)} "


def _mount(line: str) -> tuple[str, str]:
    """Mount point and type of one line: `36 35 98:0 /mnt1 /mnt2 rw master:1 - ext3 /dev/root rw`."""
    before, _, after = line.partition(" - ")
    fields = before.split(" ")
    if len(fields) < 5 or not after:
        return "", ""
    mount = fields[4]
    for code in ("\\040", "\\011", "\\012", "\\134"):  # how the table writes space, tab, newline, backslash
        mount = mount.replace(code, chr(int(code[1:], 8)))
    return mount, after.split(" ", 1)[0]


def _contains(mount: str, path: str) -> bool:
    return path == mount or path.startswith(mount if mount.endswith("/") else mount + "/")
