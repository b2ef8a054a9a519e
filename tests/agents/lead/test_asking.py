"""What a program that has members is told, and its first word."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from taskyard.agents.lead import members
from taskyard.agents.lead.members import MemberSpec
from taskyard.errors import Damaged, StorageError

WISH = MemberSpec("crew", command=("my-agent", "--key", "secret"))


@pytest.fixture
def home(tmp_path: Path) -> str:
    return str(tmp_path / "home")


@pytest.mark.req("M-01")
def test_a_request_is_private_is_taken_once_and_brings_its_surroundings(
    home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_KEY", "secret")
    monkeypatch.setenv("TASKYARD_JOB", "t00000000")
    monkeypatch.setenv("TERM", "before")
    monkeypatch.chdir(tmp_path)
    path = members.write_request(home, WISH, ["ada"], place={"TASKYARD_TASKS_DIR": str(tmp_path / "tasks")})
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600

    before = dict(os.environ)
    try:
        monkeypatch.chdir("/")
        os.environ.clear()
        os.environ["TERM"] = "of the window"
        taken = members.take_request(path, surroundings=True)
        found, place = dict(os.environ), os.getcwd()
    finally:
        os.environ.clear()
        os.environ.update(before)

    assert (taken.wish, taken.names, place) == (WISH, ("ada",), str(tmp_path))
    assert (found["API_KEY"], found["TERM"], "TASKYARD_JOB" in found) == ("secret", "of the window", False)
    assert found["TASKYARD_TASKS_DIR"] == str(tmp_path / "tasks")
    assert not os.path.exists(path)
    with pytest.raises(Damaged):
        members.take_request(path, surroundings=True)


def test_the_first_word_counts_and_nothing_stays(home: str) -> None:
    path = members.write_request(home, WISH, ["ada"], place={})
    assert members.read_response(path) is None
    members.write_response(f"{path}.said", error="no engine")
    members.write_response(f"{path}.said", jobs={"ada": "t00000000"})
    assert members.read_response(path) == {"error": "no engine"}
    members.remove_request(path)
    assert os.listdir(f"{home}/starting") == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"wish": {}}', '{"wish": {}, "env": {}, "cwd": "/", "names": []}'])
def test_what_is_no_request_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "request.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises((Damaged, StorageError)):
        members.take_request(str(path), surroundings=True)


def test_what_somebody_left_long_ago_is_removed(home: str) -> None:
    old = members.write_request(home, WISH, ["ada"], place={})
    os.utime(old, (1, 1))
    new = members.write_request(home, WISH, ["ben"], place={})
    assert os.listdir(f"{home}/starting") == [os.path.basename(new)]
