"""Renames that look before they leap."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from taskyard.core import files


@pytest.fixture(params=["as the kernel offers it", "without renameat2"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the kernel can swap; both ways keep the promises they share."""
    can = bool(request.param == "as the kernel offers it")
    if not can:
        monkeypatch.setattr(files, "_renameat2", lambda *_: errno.ENOSYS)
    return can


@pytest.mark.req("L-02")
def test_swapping_puts_the_new_file_in_place_and_shows_what_was_there(tmp_path: Path, kernel: bool) -> None:
    (tmp_path / "new").write_text("new")
    (tmp_path / "current").write_text("old")

    swapped = files.swap(str(tmp_path / "new"), str(tmp_path / "current"))

    assert (tmp_path / "current").read_text() == "new"
    assert swapped is kernel
    assert (tmp_path / "new").exists() is kernel
    if kernel:
        assert (tmp_path / "new").read_text() == "old"


@pytest.mark.req("L-11")
def test_swapping_never_brings_back_what_was_deleted(tmp_path: Path, kernel: bool) -> None:
    (tmp_path / "new").write_text("new")

    with pytest.raises(FileNotFoundError):
        files.swap(str(tmp_path / "new"), str(tmp_path / "current"))

    assert not (tmp_path / "current").exists()


@pytest.mark.req("L-02")
def test_placing_never_replaces(tmp_path: Path, kernel: bool) -> None:
    (tmp_path / "new").write_text("new")
    files.rename_noreplace(str(tmp_path / "new"), str(tmp_path / "a"))
    (tmp_path / "new").write_text("newer")

    with pytest.raises(FileExistsError):
        files.rename_noreplace(str(tmp_path / "new"), str(tmp_path / "a"))

    assert (tmp_path / "a").read_text() == "new"
    assert (tmp_path / "new").read_text() == "newer"


def test_other_refusals_of_the_kernel_are_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_rename_with_flag", lambda *_: errno.EROFS)

    with pytest.raises(OSError, match="Read-only"):
        files.swap(str(tmp_path / "a"), str(tmp_path / "b"))
    with pytest.raises(OSError, match="Read-only"):
        files.rename_noreplace(str(tmp_path / "a"), str(tmp_path / "b"))


@pytest.mark.req("K-07")
def test_folders_change_places_or_nothing_happens(tmp_path: Path, kernel: bool) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()

    assert files.try_swap(str(tmp_path / "one"), str(tmp_path / "other")) is kernel

    assert (tmp_path / "one" / ("other" if kernel else "one")).exists()
    assert (tmp_path / "other" / ("one" if kernel else "other")).exists()


def test_what_is_not_there_changes_places_with_nothing(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    with pytest.raises(FileNotFoundError):
        files.try_swap(str(tmp_path / "one"), str(tmp_path / "other"))
