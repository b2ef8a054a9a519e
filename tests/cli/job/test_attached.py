"""`taskyard run` at a terminal: what is shown, which keys do what, and how the terminal is left."""

from __future__ import annotations

import json
import os
import signal
import sys
import termios
import time
from pathlib import Path

import pytest

from support.cli import taskyard
from support.job_cli import ended, job
from support.jobs import marked
from support.terminal import Terminal, before_hang_up, on_a_terminal
from support.wait import until
from taskyard.core.system import stat_fields

CTRL_B, CTRL_C, CTRL_D, CTRL_G, CTRL_Z, CTRL_BRACKET = b"\x02", b"\x03", b"\x04", b"\x07", b"\x1a", b"\x1d"

#: What takes the status line away, from a line's beginning.
ERASED = b"\r\x1b[K"


def the_job() -> str:
    (found,) = taskyard("ps", "--all", "--json").data
    job_id: str = found["id"]
    return job_id


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A pipe that a command waits at."""
    path = tmp_path / "gate"
    os.mkfifo(path)
    return path


def moves(terminal: Terminal, key: bytes) -> None:
    """Press the key, and see that the run ends and its job does not."""
    terminal.type(key)
    terminal.shows(b"Running in the background")
    assert terminal.ended() == 0
    assert job(the_job())["status"] == "running"


@pytest.mark.req("B-11", "K-01")
def test_a_key_moves_it_to_the_background_and_the_command_does_not_notice() -> None:
    script = (
        "trap 'echo hit' INT TERM HUP TSTP TTOU TTIN CONT PIPE; echo pid $$; while read -r line; do echo $line; done"
    )
    with on_a_terminal("run", "--stdin", "--", script) as terminal:
        before = terminal.attributes
        terminal.shows(b"pid ")
        here = the_job()
        until(lambda: job(here)["pid"], what="its record to say who it is")
        pid = job(here)["pid"]
        moves(terminal, CTRL_B)
        assert terminal.attributes == before

    moved = job(here)
    assert (moved["pid"], moved["attempt"], moved["backgrounded"]) == (pid, 1, True)
    assert taskyard("send", here, "after", "--eof").code == 0
    assert ended(here)["status"] == "completed"
    assert taskyard("logs", here).lines == [f"pid {pid}", "after"]
    until(lambda: [notice["task_id"] for notice in taskyard("notices", "--json").data] == [here])


@pytest.mark.req("B-11")
@pytest.mark.parametrize(
    ("env", "key", "name"),
    [
        ({}, CTRL_B, b"Ctrl+B"),
        ({"TMUX": "/tmp/tmux-0/default,1,0"}, CTRL_BRACKET, b"Ctrl+]"),
        ({"TASKYARD_BACKGROUND_KEY": "^G", "TMUX": "x"}, CTRL_G, b"Ctrl+G"),
    ],
)
def test_after_two_seconds_a_hint_names_the_key_that_works(env: dict[str, str], key: bytes, name: bytes) -> None:
    with on_a_terminal("run", "--", "sleep", "60", env=env) as terminal:
        began = time.monotonic()
        terminal.shows(name + b" moves it to the background")
        assert time.monotonic() - began > 1.9
        moves(terminal, key)


@pytest.mark.req("B-11")
def test_the_key_is_a_setting_of_the_settings_file(outside: Path) -> None:
    folder = outside / ".config" / "taskyard"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text('background_key = "Ctrl+G"\n', encoding="utf-8")

    with on_a_terminal("run", "--", "echo up; sleep 60") as terminal:
        terminal.shows(b"up")
        moves(terminal, CTRL_G)


@pytest.mark.req("B-11")
@pytest.mark.parametrize("key", ["ctrl+c", "Ctrl+Z", "x+y", "F1", "ctrl+", "^[", "\x02"])
def test_a_key_that_cannot_be_is_refused_with_those_that_can(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_BACKGROUND_KEY", key)

    ran = taskyard("run", "--json", "--", "true")

    assert (ran.code, ran.error["code"], ran.error["field"]) == (2, "bad_value", "background_key")
    assert "such as Ctrl+G" in ran.error["message"]


@pytest.mark.req("B-11")
@pytest.mark.parametrize("env", [{"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1"}, {"TASKYARD_BACKGROUND_KEY": "off"}])
def test_where_nothing_may_go_to_the_background_the_key_does_nothing_and_no_hint_names_it(env: dict[str, str]) -> None:
    with on_a_terminal("run", "--", "echo up; sleep 2.5; echo down", env=env) as terminal:
        terminal.shows(b"up")
        terminal.type(CTRL_B)
        assert terminal.ended() == 0

    assert b"down" in terminal.seen and b"to the background" not in terminal.seen
    if "TASKYARD_BACKGROUND_KEY" not in env:
        assert b"switched off here (CLAUDE_CODE_DISABLE_BACKGROUND_TASKS)" in terminal.seen
    assert job(the_job())["backgrounded"] is False


@pytest.mark.req("B-09", "B-11")
def test_ctrl_c_stops_it_with_everything_it_started_and_says_that_nothing_is_left() -> None:
    with on_a_terminal("run", "--", "(setsid sleep 9382.5 &); echo up; sleep 9382.5") as terminal:
        before = terminal.attributes
        terminal.shows(b"up")
        terminal.type(CTRL_C)
        assert terminal.ended() == 130
        assert terminal.attributes == before

    assert b"stopped by Ctrl+C" in terminal.seen and b"no process is left" in terminal.seen
    assert marked("9382.5") == []
    here = job(the_job())
    assert (here["cause"], here["stopped_by"], here["proof"]) == ("stopped", "Ctrl+C", "proved")


@pytest.mark.req("B-09")
def test_a_second_ctrl_c_does_not_wait_for_a_command_that_will_not_go() -> None:
    script = "trap 'echo no' TERM; echo up; while :; do sleep 9388.5 & wait; done"
    with on_a_terminal("run", "--grace", "60s", "--", script) as terminal:
        terminal.shows(b"up")
        terminal.type(CTRL_C)
        terminal.shows(b"stopping; press Ctrl+C again to kill")
        terminal.shows(b"no\r\n")
        began = time.monotonic()
        terminal.type(CTRL_C)
        assert terminal.ended() == 130

    assert time.monotonic() - began < 10
    assert job(the_job())["signal"] == signal.SIGKILL
    assert marked("9388.5") == []


@pytest.mark.req("B-11")
def test_while_nothing_is_printed_one_line_says_how_it_stands_and_is_gone_before_output_goes_on(gate: Path) -> None:
    with on_a_terminal("run", "--", f"echo up; read -r _ < {gate}; echo down") as terminal:
        terminal.shows(b"no output for ")
        gate.write_text("\n", encoding="utf-8")
        assert terminal.ended() == 0
    here = the_job()

    lines, _, rest = terminal.seen.split(b"up\r\n", 1)[1].rpartition(ERASED)
    assert rest == b"down\r\n"
    drawn = [line.decode().removeprefix("\x1b[90m").split(" · ") for line in lines.split(ERASED)]
    ages = [int(words[0].removeprefix(f"{here} running ").removesuffix("s")) for words in drawn]
    assert ages[0] >= 2 and ages == sorted(ages) and len(ages) >= 3
    assert drawn[0][1:] == ["Ctrl+B moves it to the background", "Ctrl+C stops it\x1b[0m"]
    assert drawn[-1][1].startswith("no output for ")


@pytest.mark.req("B-11")
def test_below_an_unfinished_line_the_status_does_not_move_the_cursor(gate: Path) -> None:
    script = f"printf 'Go on? '; read -r _ < {gate}; echo yes"
    with on_a_terminal("run", "--", script, env={"NO_COLOR": "1"}) as terminal:
        terminal.shows(b"Ctrl+C stops it")
        gate.write_text("\n", encoding="utf-8")
        assert terminal.ended() == 0

    begin, drawn, rest = terminal.seen.partition(b"\r\n" + the_job().encode())
    assert begin == b"Go on? " and drawn
    assert rest.endswith(ERASED + b"\x1b[A\x1b[8Gyes\r\n")


@pytest.mark.req("B-11")
@pytest.mark.parametrize("words", [["-q"], ["--json"]])
def test_who_wants_no_words_gets_none(words: list[str]) -> None:
    with on_a_terminal("run", *words, "--", "echo up; sleep 2.3; echo down") as terminal:
        assert terminal.ended() == 0

    if words == ["-q"]:
        assert terminal.seen == b"up\r\ndown\r\n"
    else:
        # The status line, on stderr, is erased where the answer stands.
        answer = terminal.seen.replace(b"\r\n", b"\n").splitlines()[-1].removeprefix(b"\x1b[K")
        assert json.loads(answer)["data"]["status"] == "completed"


@pytest.mark.req("B-11")
def test_on_a_terminal_that_cannot_erase_the_hint_comes_once_and_no_line_moves(gate: Path) -> None:
    with on_a_terminal("run", "--", f"echo up; read -r _ < {gate}; echo down", env={"TERM": "dumb"}) as terminal:
        terminal.shows(b"Ctrl+B moves it to the background")
        with pytest.raises(AssertionError):
            terminal.shows(b"Ctrl+B moves", times=2, timeout=1.3)
        gate.write_text("\n", encoding="utf-8")
        assert terminal.ended() == 0

    assert terminal.seen.count(b"Ctrl+B moves it to the background") == 1
    assert b"\x1b" not in terminal.seen
    assert [line[:4] for line in terminal.seen.splitlines()] == [b"up", the_job().encode()[:4], b"down"]


@pytest.mark.req("B-11")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("pty", [[], ["--pty"]])
def test_whatever_ends_it_the_terminal_is_as_it_was(number: int, pty: list[str]) -> None:
    with on_a_terminal("run", *pty, "--", "echo up; sleep 9389.5") as terminal:
        before = terminal.attributes
        terminal.shows(b"up")
        assert terminal.attributes != before
        terminal.child.send_signal(number)
        assert terminal.ended() == 128 + number
        assert terminal.attributes == before
    here = job(the_job())

    if number == signal.SIGTERM:
        assert (here["status"], here["stopped_by"], marked("9389.5")) == ("killed", "SIGTERM", [])
    else:  # the terminal is gone, its jobs are not
        assert (here["status"], here["backgrounded"]) == ("running", True)


@pytest.mark.req("B-11")
@pytest.mark.parametrize("leads", [True, False], ids=["told by the kernel", "told by nobody"])
@pytest.mark.parametrize(
    ("words", "script"),
    [
        ([], "echo up; sleep 9389.7"),
        ([], "echo up; while sleep 0.01; do echo more; done"),
        (["--stdin"], "echo up; cat; echo 9389.7"),
        (["--pty"], "echo up; while sleep 0.01; do echo more; done"),
    ],
)
def test_a_terminal_that_goes_away_leaves_the_job_in_the_background(words: list[str], script: str, leads: bool) -> None:
    child, ours = before_hang_up(["run", *words, "--", script], until_shown=b"up", leads=leads)
    os.close(ours)

    code = child.wait(timeout=20)

    here = job(the_job())
    assert (code, here["status"], here["backgrounded"]) == (129, "running", True)
    assert here["takes_input"] is bool(words)


@pytest.mark.req("B-11")
def test_where_nothing_may_go_to_the_background_a_terminal_that_goes_away_ends_the_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TASKYARD_DISABLE_BACKGROUND_TASKS", "1")
    child, ours = before_hang_up(["run", "--", "echo up; while sleep 0.01; do echo more; done"], until_shown=b"up")
    os.close(ours)

    code = child.wait(timeout=20)

    here = job(the_job())
    assert (code, here["status"], here["stopped_by"]) == (129, "killed", "SIGHUP")


@pytest.mark.req("B-11")
def test_also_when_we_fail_the_terminal_is_as_it_was_and_the_job_goes_on(tmp_path: Path) -> None:
    broken = """
import sys
from taskyard.cli.attach import LiveOutput
def fail(self): raise OSError(28, "No space left on device")
LiveOutput.draw_status = lambda self, *keys: fail(self)
from taskyard.cli.main import main
sys.exit(main(["run", "--", "sleep", "9390.5"]))
"""
    with on_a_terminal(argv=[sys.executable, "-c", broken]) as terminal:
        before = terminal.attributes
        assert terminal.ended() == 1
        assert terminal.attributes == before

    assert b"Cannot write the output" in terminal.seen
    here = job(the_job())
    assert (here["status"], here["backgrounded"]) == ("running", True)


@pytest.mark.req("B-11")
def test_in_the_background_of_a_shell_it_leaves_the_terminal_alone_and_takes_it_when_it_comes_back() -> None:
    script = f"{sys.executable} -m taskyard run -- 'echo up; sleep 60'"
    with on_a_terminal(argv=["bash", "--norc", "--noediting", "-i"], env={"PS1": "$ "}) as terminal:
        terminal.type(script.encode() + b" &\n")
        terminal.shows(b"up\r\n")
        assert reads_lines(terminal)
        terminal.type(b"fg\n")
        until(lambda: not reads_lines(terminal))
        terminal.type(CTRL_Z)
        terminal.shows(b"Stopped")
        assert reads_lines(terminal)
        terminal.type(b"fg\n")
        until(lambda: not reads_lines(terminal))
        terminal.type(CTRL_B)
        terminal.shows(b"Running in the background")
        until(lambda: reads_lines(terminal))


def reads_lines(terminal: Terminal) -> bool:
    """Whether it is as shells leave it to programs."""
    flags: int = terminal.attributes[3]
    return bool(flags & termios.ICANON and flags & termios.ECHO)


@pytest.mark.req("B-11", "O-01")
def test_lines_typed_into_an_attached_run_reach_a_command_that_reads() -> None:
    with on_a_terminal("run", "--stdin", "--", "while read -r line; do echo got $line; done; echo over") as terminal:
        until(lambda: taskyard("ps", "--json").data)
        terminal.type(b"one\n")
        terminal.shows(b"got one")
        terminal.type(CTRL_D)
        terminal.shows(b"over")
        assert terminal.ended() == 0


@pytest.mark.req("B-11", "O-01")
def test_keys_and_the_window_of_the_terminal_reach_a_job_with_a_terminal_of_its_own() -> None:
    reads_keys = "stty raw -echo; echo raw; dd bs=1 count=5 2>/dev/null | od -An -c"
    script = f"stty size; {reads_keys}; stty sane; echo sane; read -r x; stty size; sleep 60"
    with on_a_terminal("run", "--pty", "--", script, rows=33, columns=77) as terminal:
        before = terminal.attributes
        terminal.shows(b"33 77\r\nraw")
        terminal.type(b"\x1b[A" + CTRL_C + CTRL_D)
        terminal.shows(b"033   [   A 003 004")
        terminal.shows(b"sane\r\n")
        terminal.resize(40, 90)
        terminal.type(b"\r")
        terminal.shows(b"40 90\r\n")
        moves(terminal, CTRL_B)
        assert terminal.attributes == before


@pytest.mark.req("B-11")
def test_ctrl_c_in_a_job_with_a_terminal_of_its_own_is_the_commands() -> None:
    with on_a_terminal("run", "--pty", "--", "trap 'echo caught; exit 7' INT; echo up; sleep 60 & wait") as terminal:
        terminal.shows(b"up")
        terminal.type(CTRL_C)
        assert terminal.ended() == 7

    assert b"caught" in terminal.seen
    assert job(the_job())["cause"] == "exited"


@pytest.mark.req("B-11")
def test_what_a_full_screen_program_switched_on_is_switched_off_when_we_leave_it() -> None:
    script = r"printf '\033[?1049h\033[?25l\033[?1000;1006h\033[?2004h\033[?2004lfull'; sleep 60"
    with on_a_terminal("run", "--pty", "--", script) as terminal:
        terminal.shows(b"full")
        moves(terminal, CTRL_B)

    after = terminal.seen.split(b"full")[1]
    assert after.startswith(b"\x1b[?1006l\x1b[?1000l\x1b[?25h\x1b[?1049l\x1b[0m")
    assert b"?2004" not in after


@pytest.mark.req("B-13")
@pytest.mark.parametrize("words", [["-q"], ["--pty"]])
def test_watching_a_silent_job_costs_next_to_nothing(words: list[str]) -> None:
    with on_a_terminal("run", *words, "--", "echo up; sleep 60") as terminal:
        terminal.shows(b"up")
        before = cpu_seconds(terminal.child.pid)
        with pytest.raises(AssertionError):
            terminal.shows(b"never", timeout=4)

        assert cpu_seconds(terminal.child.pid) - before < 0.2


def cpu_seconds(pid: int) -> float:
    fields = stat_fields(str(pid))
    assert fields is not None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.req("B-12")
def test_while_it_waits_for_its_turn_the_line_says_for_what(monkeypatch: pytest.MonkeyPatch) -> None:
    first = taskyard("run", "-d", "--json", "--", "sleep", "60").data["id"]
    with on_a_terminal("run", "--name", "Next", "--after", first, "--", "echo now") as terminal:
        terminal.shows(b"pending 2s \xc2\xb7 waits for job " + first.encode())
        os.kill(job(first)["pid"], signal.SIGKILL)
        assert terminal.ended() == 125

    assert b"which failed" in terminal.seen and b"now" not in terminal.seen
