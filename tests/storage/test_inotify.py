"""The kernel's file events."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from taskyard.storage.inotify import CREATE, DELETE, Inotify


@pytest.mark.req("L-18")
def test_events_are_there_as_soon_as_the_writing_call_has_returned(tmp_path: Path) -> None:
    queue = Inotify()
    number = queue.add(str(tmp_path))
    assert queue.read() == []

    (tmp_path / "ü.json").write_text("")
    (tmp_path / "ü.json").unlink()

    found = queue.read()
    assert {(at, name) for at, _, name in found} == {(number, "ü.json")}
    assert found[0][1] & CREATE
    assert found[-1][1] & DELETE
    queue.close()


@pytest.mark.req("L-18")
def test_a_folder_taken_off_the_queue_says_no_more(tmp_path: Path) -> None:
    queue = Inotify()
    queue.remove(queue.add(str(tmp_path)))
    queue.read()
    (tmp_path / "a").write_text("")

    assert queue.read() == []
    queue.close()


def test_only_folders_that_exist_can_be_followed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    queue = Inotify()

    with pytest.raises(FileNotFoundError):
        queue.add(str(tmp_path / "no"))
    with pytest.raises(NotADirectoryError):
        queue.add(str(tmp_path / "file"))

    queue.close()
    with pytest.raises(OSError):
        os.fstat(queue.fd)
