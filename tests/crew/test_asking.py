"""What a program that has members is told, and its first word."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from taskyard.crew import asking
from taskyard.crew.wish import Wish
from taskyard.errors import Damaged, StorageError

WISH = Wish("crew", command=("my-agent", "--key", "secret"))


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
    path = asking.written(home, WISH, ["ada"], place={"TASKYARD_TASKS_DIR": str(tmp_path / "tasks")})
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600

    before = dict(os.environ)
    try:
        monkeypatch.chdir("/")
        os.environ.clear()
        os.environ["TERM"] = "of the window"
        taken = asking.take(path, surroundings=True)
        found, place = dict(os.environ), os.getcwd()
    finally:
        os.environ.clear()
        os.environ.update(before)

    assert (taken.wish, taken.names, place) == (WISH, ("ada",), str(tmp_path))
    assert (found["API_KEY"], found["TERM"], "TASKYARD_JOB" in found) == ("secret", "of the window", False)
    assert found["TASKYARD_TASKS_DIR"] == str(tmp_path / "tasks")
    assert not os.path.exists(path)
    with pytest.raises(Damaged):
        asking.take(path, surroundings=True)


def test_the_first_word_counts_and_nothing_stays(home: str) -> None:
    path = asking.written(home, WISH, ["ada"], place={})
    assert asking.heard(path) is None
    asking.say(f"{path}.said", error="no engine")
    asking.say(f"{path}.said", jobs={"ada": "t00000000"})
    assert asking.heard(path) == {"error": "no engine"}
    asking.forget(path)
    assert os.listdir(f"{home}/starting") == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"wish": {}}', '{"wish": {}, "env": {}, "cwd": "/", "names": []}'])
def test_what_is_no_request_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "request.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises((Damaged, StorageError)):
        asking.take(str(path), surroundings=True)


def test_what_somebody_left_long_ago_is_removed(home: str) -> None:
    old = asking.written(home, WISH, ["ada"], place={})
    os.utime(old, (1, 1))
    new = asking.written(home, WISH, ["ben"], place={})
    assert os.listdir(f"{home}/starting") == [os.path.basename(new)]
