"""Small files: whole or not at all, never through a planted link."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from taskyard.core import files
from taskyard.errors import Damaged, StorageError


@pytest.mark.req("L-02")
@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 70_000, 3_000_000])
def test_what_is_written_is_read_whatever_its_size(tmp_path: Path, size: int) -> None:
    path = str(tmp_path / "a")
    files.create(path, b"x" * size)

    assert files.read(path) == b"x" * size


def test_a_file_that_is_not_there_reads_as_none(tmp_path: Path) -> None:
    assert files.read(str(tmp_path / "a")) is None


@pytest.mark.parametrize(("size", "most"), [(11, 10), (65_536, 65_535), (200_000, 100_000)])
def test_a_file_above_the_limit_is_damaged_not_read(tmp_path: Path, size: int, most: int) -> None:
    (tmp_path / "a").write_bytes(b"x" * size)

    with pytest.raises(Damaged, match="larger than"):
        files.read(str(tmp_path / "a"), most=most)


@pytest.mark.parametrize("size", [10, 65_536])
def test_a_file_at_the_limit_is_read(tmp_path: Path, size: int) -> None:
    (tmp_path / "a").write_bytes(b"x" * size)

    assert files.read(str(tmp_path / "a"), most=size) == b"x" * size


def test_a_planted_link_is_neither_read_nor_written_through(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s")
    (tmp_path / "a").symlink_to(tmp_path / "secret")

    with pytest.raises(StorageError, match="symbolic link"):
        files.read(str(tmp_path / "a"))
    with pytest.raises(FileExistsError):
        files.create(str(tmp_path / "a"), b"x")
    files.replace(str(tmp_path / "a"), b"new")

    assert (tmp_path / "secret").read_text() == "s"
    assert not (tmp_path / "a").is_symlink()


def test_creating_refuses_what_exists_and_leaves_it(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")

    with pytest.raises(FileExistsError):
        files.create(str(tmp_path / "a"), b"new")

    assert (tmp_path / "a").read_text() == "old"


def test_a_folder_that_is_read_as_a_file_is_an_error_in_words(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="it is a folder"):
        files.read(str(tmp_path))


def test_a_write_the_disk_refuses_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "no space")

    (tmp_path / "a").write_text("old")
    monkeypatch.setattr(os, "write", full)

    with pytest.raises(StorageError, match="the disk is full"):
        files.replace(str(tmp_path / "a"), b"new", sync=True)

    assert [p.name for p in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "old"


def test_every_byte_is_written_however_small_the_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: whole(fd, data[:3]))

    files.create(str(tmp_path / "a"), b"0123456789", sync=True)

    assert (tmp_path / "a").read_bytes() == b"0123456789"


def test_a_file_that_cannot_take_its_place_is_taken_away_again(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()

    with pytest.raises(StorageError):
        files.replace(str(tmp_path / "a"), b"x")

    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_files_are_private_unless_told_otherwise(tmp_path: Path) -> None:
    files.create(str(tmp_path / "a"), b"")
    files.replace(str(tmp_path / "b"), b"")

    assert {p.stat().st_mode & 0o777 for p in tmp_path.iterdir()} == {0o600}


@pytest.mark.parametrize("kind", ["file", "link to a file", "link to a folder", "dangling link"])
def test_a_folder_that_is_something_else_is_refused(tmp_path: Path, kind: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    path = tmp_path / "x"
    if kind == "file":
        path.write_text("")
    else:
        path.symlink_to(tmp_path / kind.split()[-1])

    with pytest.raises(StorageError, match=r"not a folder|symbolic link"):
        files.make_folder(str(path))


def test_a_folder_below_a_file_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(StorageError, match="part of the path is a file"):
        files.make_folder(str(tmp_path / "file" / "x"))


@pytest.mark.req("M-02")
def test_every_folder_made_on_the_way_to_a_private_one_is_private_too(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        files.make_private_folder(str(tmp_path / "a" / "b" / "c"))
        files.make_folder(str(tmp_path / "open" / "b"), mode=0o755)
    finally:
        os.umask(before)

    assert [(tmp_path / part).stat().st_mode & 0o777 for part in ("a", "a/b", "a/b/c")] == [0o700] * 3
    assert [(tmp_path / part).stat().st_mode & 0o777 for part in ("open", "open/b")] == [0o755] * 2


def test_a_private_folder_is_made_private_and_made_so_again(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b"
    files.make_private_folder(str(path))
    assert path.stat().st_mode & 0o777 == 0o700

    path.chmod(0o755)
    files.make_private_folder(str(path))

    assert path.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_cannot_be_made_private_is_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    tmp_path.chmod(0o755)
    monkeypatch.setattr(os, "chmod", refuses)
    with pytest.raises(StorageError, match=r"(?i)read-only"):
        files.make_private_folder(str(tmp_path))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_private_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    os.chown(tmp_path, 65534, -1)

    with pytest.raises(StorageError, match="belongs to user 65534"):
        files.make_private_folder(str(tmp_path))


def test_an_error_without_a_known_reason_still_says_what_the_kernel_said() -> None:
    assert "Input/output" in str(files.storage_error("p", OSError(errno.EIO, "x")))
    assert "p:" in str(files.storage_error("p", OSError()))
