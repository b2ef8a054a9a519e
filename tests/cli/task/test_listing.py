"""`task list`: the rows that were asked for, once or live."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys

import pytest

from support.cli import LONGEST, start, taskyard
from support.terminal import shown

pytestmark = pytest.mark.req("T-05")


@pytest.fixture
def five() -> None:
    taskyard("task", "add", "done")
    taskyard("task", "done", "1")
    taskyard("task", "add", "doing", "--label", "x,y")
    taskyard("task", "start", "2", "--by", "ada")
    taskyard("task", "add", "ready")
    taskyard("task", "add", "blocked", "--blocked-by", "3")
    taskyard("task", "add", "given", "--owner", "bob", "--label", "y")


@pytest.mark.usefixtures("five")
@pytest.mark.parametrize(
    ("words", "ids"),
    [
        ((), ["2", "3", "5", "4"]),
        (("--all",), ["1", "2", "3", "5", "4"]),
        (("--status", "completed"), ["1"]),
        (("--status", "pending,in_progress"), ["2", "3", "5", "4"]),
        (("--owner", "bob"), ["5"]),
        (("--label", "x", "--label", "z"), ["2"]),
        (("--ready",), ["3"]),
        (("--ready", "--label", "y"), []),
    ],
)
def test_filters_choose_the_same_in_words_and_in_json(words: tuple[str, ...], ids: list[str]) -> None:
    in_json, quiet = taskyard("task", "list", *words, "--json"), taskyard("task", "list", *words, "-q")

    assert [task["id"] for task in in_json.data] == ids
    assert quiet.out.split() == ids


@pytest.mark.usefixtures("five")
def test_rows_show_owner_blockers_and_how_many_are_done() -> None:
    lines = [line.rstrip() for line in taskyard("task", "list").lines]

    assert lines[0].startswith("◐ 2  doing    @ada  ")
    assert lines[1] == "○ 3  ready"
    assert lines[3].startswith("◌ 4  blocked") and lines[3].endswith("waits for 3")
    assert lines[4] == "✓ 1 done   (--all shows them)"


def test_watching_without_a_terminal_tells_each_change_on_a_line_and_ends_when_all_is_done() -> None:
    taskyard("task", "add", "A")
    child = start("task", "list", "--watch", "--until-done")
    assert child.stdout is not None
    first = child.stdout.readline()

    taskyard("task", "start", "1", "--by", "ada")
    taskyard("task", "done", "1", "--by", "ada")
    out, err = child.communicate(timeout=LONGEST)

    assert first == "○ 1  A\n"
    assert [line.split("  ")[1:] for line in out.splitlines()] == [
        ["ada", "start", "#1 A"],
        ["ada", "complete", "#1 A"],
    ]
    assert child.returncode == 0, err


def test_watching_in_json_answers_anew_at_each_change() -> None:
    taskyard("task", "add", "A")
    child = start("task", "list", "--watch", "--json", "--until-done", "--all")
    assert child.stdout is not None
    first = json.loads(child.stdout.readline())

    taskyard("task", "done", "1")
    out, _ = child.communicate(timeout=LONGEST)

    assert first["data"][0]["status"] == "pending"
    assert json.loads(out.splitlines()[-1])["data"][0]["status"] == "completed"


def test_watching_on_a_terminal_draws_anew_and_ctrl_c_ends_it_with_130() -> None:
    taskyard("task", "add", "A")
    ours, theirs = pty.openpty()
    child = subprocess.Popen([sys.executable, "-m", "taskyard", "task", "list", "--watch"], stdin=theirs, stdout=theirs)
    os.close(theirs)
    try:
        seen = shown(ours, b"A")
        taskyard("task", "add", "Second")
        seen += shown(ours, b"Second")
        child.send_signal(signal.SIGINT)
        assert child.wait(LONGEST) == 130
    finally:
        child.kill()
        os.close(ours)
    assert seen.count(b"\x1b[H\x1b[2J") >= 2
