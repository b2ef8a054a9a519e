"""What could stand where the cursor is."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.cli import taskyard
from taskyard.cli.complete import candidates
from taskyard.cli.completions import SCRIPTS

pytestmark = pytest.mark.req("T-05")


@pytest.fixture(autouse=True)
def tasks() -> None:
    taskyard("task", "add", "Write: the\tnotes", "--label", "docs", "--list", "x")
    taskyard("task", "add", "Ship it", "--owner", "ada", "--list", "x")
    taskyard("task", "add", "Old", "--list", "x")
    taskyard("task", "done", "3", "--list", "x")


def words(*line: str) -> list[str]:
    return [text for text, _ in candidates(line)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (("ta",), ["task"]),
        (("--list", "x", "task", "re"), ["reopen", "release", "renew", "reset", "restore"]),
        (("task", "--list", "x", "done", ""), ["1", "2"]),
        (("task", "--list", "x", "reopen", ""), ["3"]),
        (("task", "--list", "x", "show", "3"), ["3"]),
        (("task", "--list=x", "add", "S", "--blocked-by", ""), ["1", "2", "3"]),
        (("task", "--list=x", "add", "S", "--blocked-by", "1", ""), ["1", "2", "3"]),
        (("task", "--list=x", "add", "S", "--blocked-by", "1,"), ["1,1", "1,2", "1,3"]),
        (("task", "--list=x", "block", "2", "--on=1"), ["--on=1"]),
        (("task", "list", "--list", ""), ["x"]),
        (("--list", ""), ["x"]),
        (("task", "list", "--list", "x", "--owner", ""), ["ada"]),
        (("--list", "x", "--by", ""), ["ada"]),
        (("task", "list", "--list", "x", "--label", "d"), ["docs"]),
        (("task", "list", "--status", "p"), ["pending"]),
        (("task", "list", "--wa"), ["--watch"]),
        (("task", "export", "--format", "m"), ["markdown", "mermaid"]),
        (("task", "rm", "--list", "x", "1", ""), ["1", "2", "3"]),
        (("lists", ""), ["use"]),
        (("lists", "use", ""), ["x"]),
        (("completions", ""), ["bash", "zsh", "fish"]),
        (("task", "add", ""), []),
        (("nonsense", ""), []),
        (("__comp",), []),
    ],
)
def test_candidates_fit_the_place(line: tuple[str, ...], expected: list[str]) -> None:
    assert words(*line) == expected


def test_ids_come_with_their_subjects_on_one_safe_line() -> None:
    ran = taskyard("__complete", "--", "task", "--list", "x", "claim", "")

    assert ran.lines == ["1\tWrite: the notes", "2\tShip it"]


def test_tab_never_fails_and_makes_nothing(tmp_path: Path) -> None:
    ran = taskyard("__complete", "--", "task", "--tasks-dir", str(tmp_path / "gone"), "done", "")

    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert os.listdir(tmp_path) == []


@pytest.fixture
def path_with_taskyard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = tmp_path / "bin" / "taskyard"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m taskyard "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}:{os.environ['PATH']}")


def _bash(line: str) -> list[str]:
    """What bash offers at the end of `line`."""
    script = f"""
        eval "$(taskyard completions bash)"
        COMP_WORDS=({line}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
        _taskyard 2>/dev/null
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=30, check=True)
    return done.stdout.split()


@pytest.mark.usefixtures("path_with_taskyard")
def test_bash_really_completes() -> None:
    assert _bash("taskyard ta") == ["task"]
    assert _bash("taskyard task --list x done ''") == ["1", "2"]


def _zsh(line: str, *, until: bytes) -> None:
    """Type `line` and a tab into a real zsh, and wait for it to show `until`."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "dumb", "PS1": "> "}
    shell = subprocess.Popen(
        ["zsh", "-f", "-i"], stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True
    )
    os.close(theirs)
    try:
        os.write(ours, b'autoload -Uz compinit; compinit -u -D; eval "$(taskyard completions zsh)"; echo rea""dy\n')
        _shown(ours, b"ready")
        os.write(ours, line.encode() + b"\t")
        _shown(ours, until)
    finally:
        shell.kill()
        shell.wait()
        os.close(ours)


def _shown(terminal: int, text: bytes) -> None:
    deadline, seen = time.monotonic() + 30, b""
    while text not in seen:
        assert select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))[0], seen
        seen += os.read(terminal, 4096)


@pytest.mark.usefixtures("path_with_taskyard")
def test_zsh_really_completes() -> None:
    _zsh("taskyard task li", until=b"taskyard task list ")
    _zsh("taskyard task --list x done ", until=b"Write: the notes")


@pytest.mark.usefixtures("path_with_taskyard")
def test_fish_really_completes() -> None:
    script = f"{SCRIPTS['fish']}\ncomplete -C 'taskyard task --list x done '"
    done = subprocess.run(["fish", "-c", script], capture_output=True, text=True, timeout=30, check=True)

    assert "1\tWrite: the notes" in done.stdout


@pytest.mark.parametrize("shell", SCRIPTS)
def test_every_script_asks_for_candidates_with_the_words_as_arguments(shell: str) -> None:
    script = taskyard("completions", shell).out

    assert "__complete -- " in script and script == SCRIPTS[shell]
    assert taskyard("completions", "tcsh").code == 2
