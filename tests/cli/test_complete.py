"""What could stand where the cursor is."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from support.cli import taskyard
from support.job_cli import ended, is_running, job, started
from support.jobs import kill_keeper
from support.wait import until
from taskyard import config
from taskyard.cli.complete import _KINDS, SCRIPTS, candidates
from taskyard.cli.main import COMMANDS, Command, CommandEntry, ResolvedCommand, load_entry
from taskyard.cli.parser import Parser
from taskyard.jobs.jobs import Jobs

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


@pytest.fixture
def jobs() -> Iterator[dict[str, str]]:
    """One job of each sort, by what it is."""
    found = {"over": started("--name", "Is over", "--", "true")}
    ended(found["over"])
    found["runs"] = started("--name", "Build: all", "--", "sleep", "60")
    found["asks"] = started("--name", "Asks", "--stdin", "--", "cat")
    found["stands"] = started("--name", "Stands still", "--", "sleep", "60")
    found["waits"] = started("--name", "Waits", "--stdin", "--after", found["runs"], "--", "cat")
    until(lambda: is_running(found["asks"]) and is_running(found["stands"]) and is_running(found["runs"]))
    until(lambda: job(found["waits"])["status"] == "pending")
    assert taskyard("pause", found["stands"]).code == 0
    yield found
    taskyard("stop", "--all", "--grace", "0")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (("logs", ""), {"runs", "asks", "stands", "waits", "over"}),
        (("wait", ""), {"runs", "asks", "stands", "waits", "over"}),
        (("stop", ""), {"runs", "asks", "stands", "waits"}),
        (("stop", "--grace", "1s", ""), {"runs", "asks", "stands", "waits"}),
        (("pause", ""), {"runs", "asks"}),
        (("resume", ""), {"stands"}),
        (("send", ""), {"asks"}),
        (("run", "-d", "--after", ""), {"runs", "asks", "stands", "waits"}),
        (("run", "-d", "--", ""), set[str]()),
        (("run", "--", "ls", "--a"), set[str]()),
    ],
)
def test_ids_of_jobs_are_those_that_a_verb_could_be_about(
    line: tuple[str, ...], expected: set[str], jobs: dict[str, str]
) -> None:
    names = {job_id: name for name, job_id in jobs.items()}

    assert {names[text] for text in words(*line)} == expected


def test_ids_of_jobs_come_with_what_they_are_the_living_first(jobs: dict[str, str]) -> None:
    lines = taskyard("__complete", "--", "logs", "").lines

    assert lines[-1] == f"{jobs['over']}\tdone: Is over"
    assert f"{jobs['runs']}\trunning: Build: all" in lines
    assert taskyard("__complete", "--", "logs", jobs["runs"][:5]).lines == [f"{jobs['runs']}\trunning: Build: all"]
    assert words("send", jobs["asks"], "") == []  # what is sent is not ours to know


def test_looking_at_a_lost_job_in_passing_does_not_close_its_books(jobs: dict[str, str]) -> None:
    found = Jobs(config.home())
    kill_keeper(found, found.get(jobs["stands"]))

    until(lambda: jobs["stands"] not in words("stop", ""))
    assert not os.path.exists(f"{config.home()}/jobs/{jobs['stands']}/end.json")


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
def test_shells_really_complete_ids_of_jobs(jobs: dict[str, str]) -> None:
    assert _bash("taskyard send ''") == [jobs["asks"]]
    _zsh(f"taskyard stop {jobs['runs'][:-3]}", until=f"taskyard stop {jobs['runs']} ".encode())
    script = f"{SCRIPTS['fish']}\ncomplete -C 'taskyard resume '"
    done = subprocess.run(["fish", "-c", script], capture_output=True, text=True, timeout=30, check=True)
    assert f"{jobs['stands']}\tpaused: Stands still" in done.stdout


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


def test_only_a_list_is_completed_by_the_names_of_lists() -> None:
    assert "x" in words("agent", "P", "--list", "")
    for option in ("--engine", "--name", "--model", "--command"):
        assert "x" not in words("agent", "P", option, ""), option
    assert "command" in words("agent", "P", "--engine", "")
    assert "damaged-task" in words("doctor", "--fix", "")
    assert "x" not in words("doctor", "--fix", "")


def test_no_option_of_any_command_takes_names_of_lists_for_something_else() -> None:
    wrong = [
        (*found.words, action.option_strings or action.dest)
        for found in every_command()
        for action in Parser(found).known
        if _KINDS.get(str(action.metavar)) == "lists" and "list" not in action.dest and found.words[0] != "lists"
    ]
    assert wrong == []


def every_command() -> Iterator[ResolvedCommand]:
    def below(table: Mapping[str, CommandEntry], lead: tuple[str, ...]) -> Iterator[ResolvedCommand]:
        for name, row in table.items():
            inner = load_entry(row)
            here = (*lead, name) if name else lead
            if isinstance(inner, Command):
                yield ResolvedCommand(here, inner, row.help)
            else:
                yield from below(inner, here)

    yield from below(COMMANDS, ())
