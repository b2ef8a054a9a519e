from __future__ import annotations

import os
from pathlib import Path

import pytest

from taskyard.a2a_server.letters import MOST, Letters, new
from taskyard.errors import StorageError, UsageError
from taskyard.runtime.folder import JobFolder


@pytest.fixture
def folder(tmp_path: Path) -> JobFolder:
    (tmp_path / "jobs" / "a00000001").mkdir(parents=True)
    return JobFolder(str(tmp_path), "a00000001")


def test_a_message_is_begun_then_done_and_one_that_was_refused_was_never_sent(folder: JobFolder) -> None:
    letters = Letters(folder)
    assert letters.read() == {}
    for name in ("one", "two"):
        letters.begin(new(name, "blue", asked=7, question="Which?"))
    letters.done("one")
    letters.refused("two")

    [found] = letters.read().values()
    assert (found.id, found.text, found.asked, found.question, found.is_done) == ("one", "blue", 7, "Which?", True)
    assert os.stat(f"{folder.path}/a2a.jsonl").st_mode & 0o777 == 0o600


def test_what_a_dying_writer_left_half_spoils_nothing_after_it(folder: JobFolder) -> None:
    path = Path(folder.path) / "a2a.jsonl"
    path.write_bytes(b'{"id": "half", "te')
    letters = Letters(folder)
    letters.begin(new("whole", "blue", asked=0, question=""))
    path.write_bytes(path.read_bytes() + b'[]\n{"id": 3}\n\xff\xfe\n')

    assert list(letters.read()) == ["whole"]


def test_messages_to_a_task_are_bounded(folder: JobFolder) -> None:
    letters = Letters(folder)
    for number in range(MOST):
        letters._append(new(str(number), "x", asked=0, question="")._asdict())

    with pytest.raises(UsageError, match=str(MOST)):
        letters.begin(new("more", "x", asked=0, question=""))


def test_a_link_in_its_place_is_not_followed(folder: JobFolder, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("")
    os.symlink(target, f"{folder.path}/a2a.jsonl")

    with pytest.raises(StorageError):
        Letters(folder).done("one")
    assert target.read_text() == ""
