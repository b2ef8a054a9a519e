"""`taskyard ps`: what runs, how it stands and what it printed last."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.cli import LONGEST, taskyard
from support.job_cli import ended, is_running, job, prints, started
from support.job_outputs import ended_by_hand
from support.terminal import Terminal, on_a_terminal
from support.wait import until
from taskyard import config
from taskyard.core.system import now_ms
from taskyard.jobs.output import Output

TASKYARD = f"{sys.executable} -m taskyard"


@pytest.mark.req("B-03", "B-07")
def test_a_row_says_what_a_job_is_how_it_stands_and_what_it_printed_last() -> None:
    speaks = started("--name", "Speak", "--", "echo one; printf 'two\\rthree\\n\\n'; sleep 60")
    prints(speaks, "three")

    ran = taskyard("ps")

    assert re.fullmatch(rf"◐ {speaks}  running  \ds  Speak  three\n", ran.out), ran
    assert job(speaks)["last_line"] == "three"
    assert taskyard("ps", "-q").lines == [speaks]


@pytest.mark.req("B-03", "B-12", "B-14")
def test_pending_paused_and_asking_jobs_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_STALL_AFTER", "0.2")
    asks = started("--stdin", "--", "printf 'Overwrite? (y/n) '; read -r x")
    naps = started("--", "sleep", "60")
    waits = started("--after", naps, "--", "true")
    until(lambda: is_running(naps))
    taskyard("pause", naps)
    until(lambda: job(asks)["needs_input"])

    rows = {line.split()[1]: line for line in taskyard("ps").lines}

    assert "needs input" in rows[asks] and rows[asks].endswith("Overwrite? (y/n)")
    assert " paused " in rows[naps] and rows[naps].startswith("! ")
    assert " pending " in rows[waits] and rows[waits].endswith(f"waits for job {naps}")
    begin = [rows[asks].index("printf"), rows[naps].index("sleep 60"), rows[waits].index("true")]
    assert len(set(begin)) == 1  # columns stand below each other
    taskyard("send", asks, "y")
    assert ended(asks)["needs_input"] is False


@pytest.mark.req("B-07")
def test_jobs_inside_a_job_stand_below_it() -> None:
    outer = started("--name", "Outer", "--", f"{TASKYARD} run -d --name Inner -- sleep 60; sleep 60")
    until(lambda: len(taskyard("ps", "--json").data) == 2)
    later = started("--name", "Later", "--", "sleep", "60")

    lines = taskyard("ps").lines

    assert [line.split()[1] for line in lines[::2]] == [outer, later]
    assert "  Outer" in lines[0] and "  └ Inner" in lines[1]
    (inner,) = [row for row in taskyard("ps", "--json").data if row["parent"] == outer]
    assert inner["depth"] == 1


@pytest.mark.req("B-08")
def test_all_shows_how_those_that_are_over_ended() -> None:
    ends = {
        started("--name", "Fine", "--", "true"): "done",
        started("--name", "Bad", "--", "echo the reason; exit 3"): "exit 3",
        started("--name", "Crash", "--", "kill -SEGV $$"): "signal 11",
        started("--name", "Long", "--timeout", "0.1s", "--", "sleep", "60"): "timed out",
        started("--name", "None", "--", "no-such-command"): "failed",
    }
    for job_id in ends:
        ended(job_id)

    assert taskyard("ps").out == ""
    rows = taskyard("ps", "--all").lines
    assert {line.split()[1]: re.split(r"  +", line)[1] for line in rows} == ends
    assert any(line.endswith("the reason") for line in rows)
    assert taskyard("ps", "--all", "--no-color").lines == rows


@pytest.mark.req("O-05")
def test_what_was_printed_last_is_read_for_what_is_shown_and_only_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        folder = ended_by_hand(config.home(), at=now_ms(), size=0)
        Path(folder.output).write_bytes(b"x" * 1_000_000 + b"\nlast %d\n" % number)
    read: list[int] = []

    def counted(self: Output, most: int, whole: object = Output.tail_bytes) -> object:
        read.append(most)
        return whole(self, most)  # type: ignore[operator]

    monkeypatch.setattr(Output, "tail_bytes", counted)

    assert (taskyard("ps").code, read) == (0, [])
    assert (len(taskyard("ps", "--all", "-q").lines), read) == (3, [])
    assert sorted(row["last_line"] for row in taskyard("ps", "--all", "--json").data) == ["last 0", "last 1", "last 2"]
    assert len(read) == 3 and max(read) <= 4096


def test_what_a_job_prints_and_is_called_cannot_act_on_the_terminal() -> None:
    folder = ended_by_hand(config.home(), at=now_ms(), size=0)
    Path(folder.output).write_bytes(b"fine\n\x1b]0;owned\x07\x1b[2Jevil\xe2\x80\xae \x00\xff")
    record = json.loads(Path(folder.record).read_text(encoding="utf-8"))
    Path(folder.record).write_text(json.dumps({**record, "description": "\x1b[2Jname\nx"}), encoding="utf-8")

    (line,) = taskyard("ps", "--all").lines

    assert "\\x1b[2Jname x  evil\\u202e \ufffd" in line and "owned" not in line


@pytest.mark.req("U-05")
def test_what_a_job_has_cost_stands_in_a_column_where_one_has() -> None:
    cheap = ended_by_hand(config.home(), at=now_ms(), size=0)
    dear = ended_by_hand(config.home(), at=now_ms() + 1, size=0)
    record = json.loads(Path(dear.record).read_text(encoding="utf-8"))
    Path(dear.record).write_text(json.dumps({**record, "facts": {"costUsd": 12.345}}), encoding="utf-8")

    rows = {line.split()[1]: line for line in taskyard("ps", "--all").lines}

    assert "  $12.35  made by hand" in rows[dear.id]
    assert rows[cheap.id].index("made") == rows[dear.id].index("made")
    assert (job(dear.id)["cost_usd"], job(cheap.id)["cost_usd"]) == (12.345, None)


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
def test_rows_are_as_wide_as_the_window(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    chatty = started("--name", "A name that says a lot about what it is " * 3, "--", f"echo {'word ' * 60}; sleep 60")
    prints(chatty, "word")

    (line,) = taskyard("ps").lines

    assert len(line) <= max(columns, 45) and "…" in line
    assert ("word" in line) == (columns >= 60)


def test_without_any_job_it_says_how_to_start_one() -> None:
    ran = taskyard("ps")

    assert (ran.code, ran.out) == (0, "")
    assert "taskyard run -d" in ran.err
    assert taskyard("ps", "--json").data == []


@pytest.mark.req("B-07")
def test_on_a_terminal_watching_draws_anew_what_changes_and_no_colour_means_none() -> None:
    first = started("--name", "First", "--", "echo hello; sleep 60")
    with on_a_terminal("ps", "--watch", env={"NO_COLOR": "1"}) as terminal:
        terminal.shows(b"hello")
        second = started("--name", "Second", "--", "sleep", "60")
        terminal.shows(b"2 shells")
        terminal.shows(b"Second")
        taskyard("stop", first)
        terminal.reads(
            lambda: b"First" not in frame(terminal) and second.encode() in frame(terminal), what="Second alone"
        )
        terminal.type(b"\x03")
        assert terminal.ended() == 130

    assert b"\x1b[3" not in terminal.seen


def frame(terminal: Terminal) -> bytes:
    """What the screen shows now."""
    return terminal.seen.split(b"\x1b[H\x1b[2J")[-1]


@pytest.mark.req("B-07")
def test_elsewhere_watching_tells_of_each_change_once() -> None:
    command = [sys.executable, "-m", "taskyard", "ps", "--watch"]
    first = started("--name", "First", "--", "sleep", "60")
    until(lambda: is_running(first))
    watcher = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert watcher.stdout is not None
    assert first in watcher.stdout.readline()
    second = started("--name", "Second", "--", "sleep", "60")
    assert f"{second}  Second  running" in watcher.stdout.readline()
    os.kill(job(first)["pid"], signal.SIGKILL)

    line = watcher.stdout.readline()
    watcher.send_signal(signal.SIGINT)
    rest, _ = watcher.communicate(timeout=LONGEST)

    assert f"{first}  First  failed: killed by SIGKILL" in line
    assert (watcher.returncode, rest) == (130, "")


@pytest.mark.req("B-07")
def test_watching_in_json_gives_the_whole_answer_at_each_change() -> None:
    command = [sys.executable, "-m", "taskyard", "ps", "--watch", "--json"]
    watcher = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert watcher.stdout is not None
    assert json.loads(watcher.stdout.readline())["data"] == []

    first = started("--", "sleep", "60")
    found = json.loads(watcher.stdout.readline())["data"]
    watcher.send_signal(signal.SIGINT)
    watcher.communicate(timeout=LONGEST)

    assert [row["id"] for row in found] == [first]


@pytest.mark.req("U-02")
def test_on_a_terminal_the_last_line_says_what_runs_in_the_background_in_the_words_of_every_screen() -> None:
    started("--name", "First", "--", "sleep", "60")
    with on_a_terminal("ps", env={"NO_COLOR": "1"}) as terminal:
        terminal.shows(b"\r\n1 shell\r\n")
