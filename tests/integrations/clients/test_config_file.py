"""Somebody's configuration file: replaced whole, or left alone."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from support.cli import taskyard
from support.clients import codex_config, copies, found, given
from support.killing import killed_before
from taskyard.cli.main import main
from taskyard.errors import BadConfig, Busy, Conflict
from taskyard.integrations.clients import setup


def test_a_file_that_changed_since_it_was_read_is_left_alone(tmp_path: Path) -> None:
    file = given(tmp_path / "a.json", "{}")
    seen = setup.read_config_file(str(file))
    given(file, '{"new": 1}')

    with pytest.raises(Conflict, match="changed by another process meanwhile"):
        setup.write_config_file(seen, b"ours")

    assert file.read_text("utf-8") == '{"new": 1}'
    assert list(tmp_path.glob("*.tmp")) == []


def test_a_file_that_appeared_meanwhile_is_left_alone(tmp_path: Path) -> None:
    seen = setup.read_config_file(str(tmp_path / "a.json"))
    given(tmp_path / "a.json", "theirs")
    with pytest.raises(Conflict):
        setup.write_config_file(seen, b"ours")


def test_a_program_that_is_writing_is_waited_for_and_then_respected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup, "_PATIENCE", 0.05)
    file = given(tmp_path / "a.json", "{}")
    (tmp_path / "a.json.lock").mkdir()

    with pytest.raises(Busy):
        setup.write_config_file(setup.read_config_file(str(file)), b"ours", locked=True)
    (tmp_path / "a.json.lock").rmdir()
    setup.write_config_file(setup.read_config_file(str(file)), b"ours", locked=True)

    assert (file.read_bytes(), (tmp_path / "a.json.lock").exists()) == (b"ours", False)


def test_copies_of_one_second_do_not_replace_each_other(tmp_path: Path) -> None:
    file = given(tmp_path / "a", "0")
    for number in range(1, 4):
        setup.write_config_file(setup.read_config_file(str(file)), str(number).encode())

    assert sorted(copy.read_text("utf-8") for copy in copies(file)) == ["0", "1", "2"]
    assert {copy.stat().st_mode & 0o777 for copy in copies(file)} == {0o600}


def test_another_users_file_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = given(tmp_path / "a.json", "{}")
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(BadConfig, match="belongs to user"):
        setup.read_config_file(str(file))


def test_killed_anywhere_a_file_is_the_old_or_the_new_one_and_can_be_had_back() -> None:
    text = 'model = "x"'
    for number in range(1_000):
        given(codex_config(), text)
        was_killed = killed_before(number, _command("install", "codex", "--yes"))

        now = codex_config().read_text("utf-8")
        assert now == text or found(codex_config())["mcp_servers"]["taskyard"]
        assert taskyard("uninstall", "codex", "--yes").code == 0
        assert codex_config().read_text("utf-8") == text
        if not was_killed:
            break
    assert number > 10


def _command(*words: str) -> Callable[[], Callable[[], object]]:
    def act() -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            main(words)

    return lambda: act
