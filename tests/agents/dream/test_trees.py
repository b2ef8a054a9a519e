"""Folders read and copied without following a link, within bounds."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from taskyard.agents.dream import staging
from taskyard.errors import StorageError


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    place = tmp_path / "memory"
    (place / "topics").mkdir(parents=True)
    (place / "MEMORY.md").write_text("index")
    (place / "topics" / "a.md").write_text("a")
    (place / "topics" / "a.md").chmod(0o640)
    return place


@pytest.mark.req("K-07")
def test_a_copy_has_the_bytes_and_modes_and_answers_what_is_in_it(memory: Path, tmp_path: Path) -> None:
    found = staging.copy(str(memory), str(tmp_path / "copy"))

    assert (tmp_path / "copy" / "topics" / "a.md").read_text() == "a"
    assert (tmp_path / "copy" / "topics" / "a.md").stat().st_mode & 0o777 == 0o640
    assert sorted(found) == ["MEMORY.md", "topics", "topics/a.md"]
    assert staging.fingerprint(found) == staging.fingerprint(staging.read_tree(str(memory)))
    assert staging.fingerprint(found) == staging.fingerprint(staging.read_tree(str(tmp_path / "copy")))


@pytest.mark.req("K-07")
@pytest.mark.parametrize("change", ["text", "mode", "name", "folder", "link"])
def test_any_change_gives_another_fingerprint(memory: Path, change: str) -> None:
    before = staging.fingerprint(staging.read_tree(str(memory)))
    note = memory / "topics" / "a.md"
    if change == "text":
        seen = note.stat()
        note.write_text("b")
        os.utime(note, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    elif change == "mode":
        note.chmod(0o600)
    elif change == "name":
        note.rename(memory / "topics" / "b.md")
    elif change == "folder":
        (memory / "new").mkdir()
    else:
        (memory / "link").symlink_to("a")
    assert staging.fingerprint(staging.read_tree(str(memory))) != before


@pytest.mark.req("K-07", "O-02")
def test_links_are_never_followed_and_come_back_as_they_were(memory: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("do not read")
    (memory / "file").symlink_to(secret / "key")
    (memory / "topics" / "folder").symlink_to(secret)
    copy = tmp_path / "copy"

    found = staging.copy(str(memory), str(copy))

    assert not os.path.lexists(copy / "file")
    assert not os.path.lexists(copy / "topics" / "folder")
    staging.restore_links(found, str(copy))
    assert (copy / "file").readlink() == secret / "key"
    assert (copy / "topics" / "folder").readlink() == secret
    assert staging.fingerprint(staging.read_tree(str(copy))) == staging.fingerprint(found)


@pytest.mark.req("K-07", "O-02")
def test_a_memory_folder_that_is_itself_a_link_is_refused(memory: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(memory)
    with pytest.raises(StorageError):
        staging.read_tree(str(tmp_path / "link"))


@pytest.mark.req("K-07")
def test_what_is_no_file_is_refused_by_name_and_never_waited_for(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(memory / "pipe\x1b[31m")
    with pytest.raises(StorageError, match="neither a file nor a folder") as refusal:
        staging.read_tree(str(memory))
    assert "\x1b" not in str(refusal.value)
    (memory / "pipe\x1b[31m").unlink()
    with socket.socket(socket.AF_UNIX) as plug:
        monkeypatch.chdir(memory)
        plug.bind("plug")
        with pytest.raises(StorageError, match="neither a file nor a folder"):
            staging.read_tree(str(memory))


@pytest.mark.req("K-07")
def test_bounds_hold_for_bytes_names_and_depth(memory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (memory / "huge").open("wb") as file:
        file.truncate(staging.MOST_BYTES + 1)  # a hole: it takes no room
    with pytest.raises(StorageError, match="bytes"):
        staging.read_tree(str(memory))
    (memory / "huge").unlink()

    monkeypatch.setattr(staging, "MOST_FILES", 20)
    for number in range(20):
        (memory / f"{number}").touch()
    with pytest.raises(StorageError, match="names"):
        staging.copy(str(memory), str(tmp_path / "copy"))

    deep = tmp_path / "deep"
    deep.joinpath(*["d"] * 40).mkdir(parents=True)
    monkeypatch.setattr(staging, "MOST_FILES", 1000)
    with pytest.raises(StorageError, match="deep"):
        staging.read_tree(str(deep))


def test_names_that_are_no_text_are_names_all_the_same(memory: Path, tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(memory) + b"/\xff\x1b\n")).write_text("odd", encoding="utf-8")
    found = staging.copy(str(memory), str(tmp_path / "copy"))
    assert staging.fingerprint(found) == staging.fingerprint(staging.read_tree(str(tmp_path / "copy")))


def test_a_folder_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert staging.read_tree(str(tmp_path / "none")) == {}
