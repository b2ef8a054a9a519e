"""`taskyard tui` from a shell: what it shows once for programs, and what it says where it cannot be."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.cli import taskyard
from support.terminal import screen_of


@pytest.mark.req("T-01", "U-03")
def test_with_json_what_it_would_show_is_printed_once() -> None:
    taskyard("task", "add", "Build", "--list", "release")
    taskyard("task", "add", "Ship", "--blocked-by", "1", "--list", "release")
    shown = taskyard("tui", "--list", "release", "--json").data

    assert (shown["list"], shown["task_order"], shown["headline"]) == ("release", ["1", "2"], "1 ready")
    assert shown["tasks"]["2"]["note"] == "waits for 1"


def test_without_a_terminal_it_says_what_to_use_instead() -> None:
    refused = taskyard("tui")

    assert refused.code == 2
    assert "needs a terminal" in refused.err
    assert "taskyard tui --json" in refused.err


def test_on_a_dumb_terminal_it_says_so_and_draws_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    screen = screen_of("tui")

    assert b"needs a terminal that is not dumb (TERM). `taskyard tui --json`" in screen.replace(b"\r\n", b" ")
    assert b"\x1b[?1049h" not in screen


def test_without_textual_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "textual").mkdir()
    (tmp_path / "textual" / "__init__.py").write_text("raise ModuleNotFoundError(name='textual')", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{':'.join(filter(None, sys.path))}")

    assert b"[tui]'" in screen_of("tui")


def test_a_key_that_is_none_is_refused_before_anything_is_shown(outside: Path) -> None:
    folder = outside / ".config" / "taskyard"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text('[keys]\nclam = "C"\n', encoding="utf-8")
    screen = screen_of("tui")

    assert b"Error: [keys] cannot be 'clam': expected 'claim'." in screen
    assert b"\x1b[?1049h" not in screen
