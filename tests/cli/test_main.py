"""The front door: what is named is found, and every end has its number."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.cli import LONGEST, process, start, taskyard
from support.wait import until
from taskyard.cli import main as main_module

pytestmark = pytest.mark.req("T-05")


@pytest.mark.req("L-14")
def test_options_of_every_command_may_stand_before_or_after_its_name() -> None:
    taskyard("--list", "here", "task", "add", "A")
    taskyard("task", "--list", "here", "add", "B")
    taskyard("task", "add", "C", "--list=here")

    assert [task["subject"] for task in taskyard("--json", "task", "list", "--list", "here").data] == ["A", "B", "C"]
    assert taskyard("task", "list", "--list", "elsewhere", "--json").data == []


@pytest.mark.parametrize(
    ("words", "near"),
    [(("tsk", "list"), "task"), (("task", "lst"), "list"), (("task", "finish"), "Available")],
)
def test_an_unknown_command_is_refused_and_names_the_nearest(words: tuple[str, ...], near: str) -> None:
    ran = taskyard(*words)

    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith("Error: ") and near in ran.err


def test_a_group_without_a_verb_names_its_verbs() -> None:
    ran = taskyard("task")

    assert ran.code == 2
    assert "add, list, show" in ran.err


def test_without_a_command_the_overview_names_them_all_and_hides_what_is_for_programs() -> None:
    ran = taskyard()

    assert ran.code == 0
    for name, row in main_module.COMMANDS.items():
        assert (f"  {name} " in ran.out) is not row.hidden
    assert "130  interrupted" in ran.out


def test_the_version_is_told_also_in_json() -> None:
    from taskyard import __version__

    assert taskyard("--version").out == f"taskyard {__version__}\n"
    assert taskyard("--version", "--json").data == {"version": __version__}


@pytest.mark.parametrize(
    ("words", "code", "name"),
    [
        (("task", "show", "99"), 4, "not_found"),
        (("task", "show", "x"), 2, "bad_id"),
        (("task", "add", ""), 2, "bad_text"),
        (("task", "add", "A", "--nonsense"), 2, "usage"),
        (("task", "next"), 2, "usage"),
        (("task", "done", "1"), 4, "not_found"),
        (("task", "list", "--status", "soon"), 2, "bad_value"),
        (("task", "list", "--list", "x" * 201), 2, "bad_name"),
    ],
)
def test_an_error_ends_with_the_code_of_its_class_in_words_and_in_json(
    words: tuple[str, ...], code: int, name: str
) -> None:
    in_words, in_json = taskyard(*words), taskyard(*words, "--json")

    assert (in_words.code, in_json.code) == (code, code)
    assert in_words.err.startswith("Error: ") and in_words.out == ""
    assert in_json.error["code"] == name and in_json.err == ""
    assert f"Error: {in_json.error['message']}\n" == in_words.err


def test_the_facts_of_an_error_are_in_its_json() -> None:
    taskyard("task", "add", "A")
    taskyard("task", "claim", "1", "--by", "ada")

    error = taskyard("task", "claim", "1", "--by", "bob", "--json").error

    assert (error["code"], error["task_id"], error["owner"]) == ("already_claimed", "1", "ada")


def test_json_after_two_dashes_is_text() -> None:
    assert taskyard("task", "add", "--", "--json").code == 0
    assert taskyard("task", "show", "--", "9", "--json").err.startswith("Error: ")


def test_a_bug_shows_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.environ["PYTHONPATH"])
    code = (
        "import taskyard.cli.main as m, taskyard.yard as a; a.open = None; raise SystemExit(m.main(['task', 'list']))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LONGEST, check=False)

    assert done.returncode == 1
    assert "Traceback" in done.stderr and "TypeError" in done.stderr


def test_what_came_from_outside_cannot_act_on_the_terminal() -> None:
    ran = taskyard("task", "show", "\x1b[31m7")

    assert "\x1b" not in ran.err


def test_a_reader_that_goes_away_ends_it_quietly() -> None:
    for number in range(30):
        taskyard("task", "add", f"Task {number} {'x' * 1900}")
    child = start("task", "export")
    assert child.stdout is not None and child.stderr is not None
    child.stdout.close()

    assert child.wait(LONGEST) == 141
    assert child.stderr.read() == ""
    child.stderr.close()


def test_a_full_disk_behind_standard_output_is_an_error() -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        child = start("lists", "use", "x", stdout=full.fileno())
        _, err = child.communicate(timeout=LONGEST)

    assert child.returncode == 1
    assert err == "Error: Cannot write the output: No space left on device.\n"


def test_a_closed_standard_output_is_no_error() -> None:
    done = subprocess.run(
        f"{sys.executable} -m taskyard task list >&-", shell=True, capture_output=True, timeout=LONGEST, check=False
    )

    assert done.returncode == 0, done.stderr


def test_an_interrupt_ends_with_130_and_without_a_traceback(tmp_path: Path) -> None:
    taskyard("task", "add", "A")
    child = start("task", "next", "--by", "ada", "--require", "x", "--wait", "--label", "none")
    until(lambda: Path(f"/proc/{child.pid}/task").exists() and _sleeps(child.pid), what="it to wait")

    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=LONGEST)

    assert child.returncode == 130
    assert err == ""


def _sleeps(pid: int) -> bool:
    """Whether the process has its watching thread and so waits for events."""
    return len(os.listdir(f"/proc/{pid}/task")) > 1


def test_no_colour_and_ascii_are_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    taskyard("task", "add", "A")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in taskyard("task", "done", "1", "--force").out
    assert "\x1b[" not in taskyard("task", "list", "--all", "--no-color").out
    monkeypatch.setenv("TASKYARD_ASCII", "1")
    assert taskyard("task", "list", "--all", "--no-color").out.startswith("+ 1  A")


def test_glyphs_an_encoding_lacks_are_escaped_not_fatal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    taskyard("task", "add", "Grün")

    assert process("task", "show", "1").lines[0] == "o 1  Gr\\xfcn"
