"""What a job takes over from the process that starts it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from taskyard.errors import BadValue
from taskyard.jobs import environment

pytestmark = pytest.mark.req("B-08")


def test_every_change_of_the_environment_is_seen_and_what_was_given_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONE", "1")
    before = environment.current_env()
    monkeypatch.setenv("ONE", "2")
    monkeypatch.setenv("TWO", "\udcff")  # a byte that is no text
    changed = environment.current_env()
    changed["THREE"] = "3"
    monkeypatch.delenv("ONE")

    assert (before["ONE"], "TWO" in before) == ("1", False)
    assert (changed["ONE"], changed["TWO"]) == ("2", "\udcff")
    assert environment.current_env() == dict(os.environ)


def test_an_environment_that_shows_only_what_is_documented_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {"ONE": "1"})
    assert environment.current_env() == {"ONE": "1"}
    os.environ["ONE"] = "2"
    assert environment.current_env() == {"ONE": "2"}


def test_the_umask_is_what_was_set() -> None:
    before = os.umask(0o137)
    try:
        assert environment.read_umask() == 0o137
    finally:
        os.umask(before)


def test_who_is_nowhere_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    assert environment.resolve_cwd(str(tmp_path)) == str(tmp_path)
    with pytest.raises(BadValue, match="was removed"):
        environment.resolve_cwd(None)
