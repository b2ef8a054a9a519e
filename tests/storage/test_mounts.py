"""Whether a folder is on another machine's disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from taskyard.storage.locks import is_network_fs

TABLE = r"""
21 1 4095:39 / / rw,relatime shared:1 - ext4 /dev/vda rw
36 21 4095:40 / /mnt rw - nfs4 server:/export rw
37 36 4095:41 / /mnt/local\040disk rw shared:2 - tmpfs tmpfs rw
38 21 4095:42 / /home/me/far rw - fuse.sshfs me@far: rw
39 21 4095:43 / /home/me/far/\134040 rw - ext4 /dev/vdb rw
broken line
"""


@pytest.mark.req("L-02")
@pytest.mark.parametrize(
    ("folder", "wanted"),
    [
        ("/srv", False),
        ("/mnt", True),
        ("/mnt/a/b", True),
        ("/mnt2", False),
        ("/mnt/local disk/x", False),
        ("/home/me", False),
        ("/home/me/far/tasks", True),
        ("/home/me/far/\\040/x", False),
    ],
)
def test_the_nearest_mount_decides(tmp_path: Path, folder: str, wanted: bool) -> None:
    (tmp_path / "mountinfo").write_text(TABLE)

    assert is_network_fs(folder, table=str(tmp_path / "mountinfo")) is wanted


@pytest.mark.req("L-02")
@pytest.mark.parametrize(("kind", "wanted"), [("nfs4", True), ("ext4", False)])
def test_the_device_of_the_folder_decides_wherever_it_is_mounted(tmp_path: Path, kind: str, wanted: bool) -> None:
    number = tmp_path.stat().st_dev
    line = f"40 21 {os.major(number)}:{os.minor(number)} / /elsewhere rw - {kind} server:/export rw\n"
    (tmp_path / "mountinfo").write_text(TABLE + line)

    assert is_network_fs(str(tmp_path), table=str(tmp_path / "mountinfo")) is wanted


@pytest.mark.req("L-02")
@pytest.mark.parametrize(("told", "wanted"), [("1", True), ("0", False)])
def test_those_who_know_better_decide(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, told: str, wanted: bool) -> None:
    monkeypatch.setenv("TASKYARD_NETWORK_FS", told)

    assert is_network_fs(str(tmp_path)) is wanted


def test_without_a_mount_table_a_disk_counts_as_ours(tmp_path: Path) -> None:
    assert not is_network_fs("/mnt", table=str(tmp_path / "no"))
