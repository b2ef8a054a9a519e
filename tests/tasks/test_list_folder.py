"""One list's folder."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from taskyard.errors import StorageError
from taskyard.tasks.list_folder import ListFolder


def modes(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): stat.filemode(path.lstat().st_mode) for path in folder.rglob("*")}


@pytest.mark.req("L-02")
def test_what_others_share_is_theirs_to_read_and_what_is_ours_is_private(tmp_path: Path) -> None:
    folder = ListFolder(str(tmp_path), "plan")
    assert not folder.exists()
    folder.make()
    folder.make()

    assert folder.exists()
    assert modes(tmp_path) == {
        "plan": "drwxr-xr-x",
        "plan/.lock": "-rw-r--r--",
        "plan/.taskyard": "drwx------",
        "plan/.taskyard/leases": "drwx------",
        "plan/.taskyard/log": "drwx------",
        "plan/.taskyard/tmp": "drwx------",
    }


@pytest.mark.req("L-03")
def test_everything_called_like_a_task_counts_for_the_next_id(tmp_path: Path) -> None:
    folder = ListFolder(str(tmp_path), "plan")
    folder.make()
    for name in ("3.json", "x.json", "4.txt", "9999999999.json", "٣.json"):
        (tmp_path / "plan" / name).touch()
    (tmp_path / "plan" / "20.json").mkdir()

    assert sorted(folder.ids_on_disk()) == [3, 20]


@pytest.mark.req("L-02")
def test_a_link_in_its_place_is_no_list(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "plan").symlink_to(tmp_path / "real")
    folder = ListFolder(str(tmp_path), "plan")

    for attempt in (folder.exists, folder.make):
        with pytest.raises(StorageError, match="symbolic link"):
            attempt()
    assert list((tmp_path / "real").iterdir()) == []
