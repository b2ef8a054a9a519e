"""Commands that behave, and commands that do their worst: the call always comes back, and nothing is left."""

from __future__ import annotations

import os
import resource
import signal
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.headless import headless, size
from taskyard.core import subprocesses
from taskyard.core.subprocesses import KEPT_BYTES, CommandResult, decode_plain, run_command

#: Nothing here should take this long; a test that does hangs.
SOON = 5.0


def run(command: str, cwd: Path, *, stdin: bytes | None = b"", timeout: float = 30.0) -> CommandResult:
    return run_command(command, cwd=str(cwd), stdin=stdin, timeout=timeout)


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != b"Z"


def pid_in(file: Path) -> int:
    deadline = time.monotonic() + SOON
    while time.monotonic() < deadline:
        if file.exists() and (text := file.read_text(encoding="utf-8")).endswith("\n"):
            return int(text)
        time.sleep(0.005)
    raise AssertionError(f"{file} never got a pid")


def open_descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


@pytest.mark.req("H-02")
def test_a_command_gets_its_input_and_answers_on_both_streams(tmp_path: Path) -> None:
    end = run("cat; echo oh >&2; pwd; exit 3", tmp_path, stdin=b"in\n")
    assert end == CommandResult("exited", end.seconds, 3, None, f"in\n{tmp_path}\n".encode(), b"oh\n", end.stdout_size)


@pytest.mark.req("H-02")
def test_a_flood_of_output_is_cut_and_does_not_fill_memory(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    end = run("yes first | head -c 50000000; yes last | head -c 50000000 >&2", tmp_path)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert (end.exit_code, end.stdout_size, len(end.stdout), len(end.stderr)) == (0, 50_000_000, KEPT_BYTES, KEPT_BYTES)
    assert grown < 8 * 1024  # kilobytes


@pytest.mark.req("H-02")
def test_of_both_streams_together_the_last_part_is_kept(tmp_path: Path) -> None:
    end = run_command(
        "yes | head -c 900000; echo the end >&2", cwd=str(tmp_path), timeout=30, merge_stderr=True, stdin=None
    )
    assert end.stdout.endswith(b"y\nthe end\n")
    assert len(end.stdout) == KEPT_BYTES


@pytest.mark.req("H-02")
@pytest.mark.parametrize("command", ["exit 7", "exec <&-; sleep 0.05; exit 7", "sleep 0.05; exit 7"])
def test_a_command_that_never_reads_a_megabyte_of_input_does_not_hang(command: str, tmp_path: Path) -> None:
    assert run(command, tmp_path, stdin=b"x" * 1_000_000).exit_code == 7


@pytest.mark.req("H-02")
def test_a_megabyte_of_input_arrives_whole_while_output_flows_back(tmp_path: Path) -> None:
    assert run("tee /dev/stderr | wc -c", tmp_path, stdin=b"x" * 1_000_000).stdout.split() == [b"1000000"]


@pytest.mark.req("H-02")
def test_a_daemon_that_keeps_the_pipes_does_not_keep_us(tmp_path: Path) -> None:
    end = run("setsid sh -c 'echo $$ > daemon; exec sleep 30' & echo done", tmp_path)
    daemon = pid_in(tmp_path / "daemon")
    try:
        assert (end.exit_code, end.stdout) == (0, b"done\n")
        assert end.seconds < SOON
    finally:
        os.kill(daemon, signal.SIGKILL)


@pytest.mark.req("H-02")
def test_a_daemon_that_floods_the_pipes_does_not_keep_us(tmp_path: Path) -> None:
    end = run("yes & echo $! > daemon", tmp_path)
    assert (end.cause, end.exit_code) == ("exited", 0)
    assert end.seconds < SOON


@pytest.mark.req("H-02")
def test_the_time_limit_ends_the_whole_group_also_those_who_ignore_sigterm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocesses, "TERM_GRACE", 0.2)
    end = run("trap '' TERM; sh -c 'echo $$ > child; while :; do sleep 1; done' & wait", tmp_path, timeout=0.3)
    assert (end.cause, end.exit_code, end.signal) == ("timeout", None, signal.SIGKILL)
    assert not is_alive(pid_in(tmp_path / "child"))
    assert end.seconds < SOON


@pytest.mark.req("H-02")
def test_the_time_limit_lets_a_command_say_goodbye(tmp_path: Path) -> None:
    end = run("trap 'echo bye; exit 0' TERM; while :; do sleep 0.02; done", tmp_path, timeout=0.2)
    assert (end.cause, end.stdout) == ("timeout", b"bye\n")


@pytest.mark.req("H-02")
def test_a_child_gets_its_grace_when_its_shell_is_gone_already(tmp_path: Path) -> None:
    child = "trap 'sleep 0.2; echo saved > report; exit' TERM; echo $$ > child; while :; do sleep 0.02; done"
    end = run(f'sh -c "{child.replace("$", chr(92) + "$")}" & wait', tmp_path, timeout=0.3)
    assert end.cause == "timeout"
    assert (tmp_path / "report").read_text() == "saved\n"


@pytest.mark.req("H-02")
def test_a_stopped_command_is_ended_too(tmp_path: Path) -> None:
    end = run("kill -STOP $$", tmp_path, timeout=0.2)
    assert (end.cause, end.signal) == ("timeout", signal.SIGTERM)


@pytest.mark.req("H-02")
def test_setting_cancel_ends_the_command(tmp_path: Path) -> None:
    cancel = threading.Event()
    threading.Timer(0.1, cancel.set).start()
    end = run_command("echo $$ > pid; exec sleep 30", cwd=str(tmp_path), timeout=30, cancel=cancel)
    assert end.cause == "cancelled"
    assert not is_alive(pid_in(tmp_path / "pid"))


@pytest.mark.req("H-02")
def test_a_cancelled_call_starts_nothing(tmp_path: Path) -> None:
    cancel = threading.Event()
    cancel.set()
    assert run_command("touch ran", cwd=str(tmp_path), timeout=30, cancel=cancel).cause == "cancelled"
    assert not (tmp_path / "ran").exists()


@pytest.mark.req("H-02")
def test_an_interrupted_caller_leaves_no_process_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupting(threading.Event):
        def is_set(self) -> bool:
            if (tmp_path / "pid").exists():
                raise KeyboardInterrupt
            return False

    with pytest.raises(KeyboardInterrupt):
        run_command("echo $$ > pid; exec sleep 30", cwd=str(tmp_path), timeout=30, cancel=Interrupting())
    assert not is_alive(pid_in(tmp_path / "pid"))


@pytest.mark.req("H-02")
@pytest.mark.parametrize(("command", "cwd"), [("true", "missing"), ("true\0", "."), ("x" * 3_000_000, ".")])
def test_a_command_that_cannot_start_is_an_answer_not_a_crash(command: str, cwd: str, tmp_path: Path) -> None:
    end = run(command, tmp_path / cwd)
    assert end.cause == "not_started"
    assert end.why


@pytest.mark.req("H-02")
def test_a_signal_is_told_as_a_signal(tmp_path: Path) -> None:
    end = run("kill -9 $$", tmp_path)
    assert (end.cause, end.exit_code, end.signal) == ("signal", None, 9)


@pytest.mark.req("L-21")
def test_leftovers_are_ended_where_that_is_asked(tmp_path: Path) -> None:
    end = run_command(
        "sleep 30 & echo $! > child; exit 0", cwd=str(tmp_path), timeout=30, merge_stderr=True, kill_leftovers=True
    )
    assert end.exit_code == 0
    assert not is_alive(pid_in(tmp_path / "child"))


@pytest.mark.req("L-21")
def test_a_group_is_signalled_only_while_its_number_cannot_be_a_strangers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signalled: list[tuple[int, bool]] = []
    kill = os.killpg

    def killpg(group: int, number: int) -> None:
        signalled.append((number, os.path.exists(f"/proc/{group}")))
        kill(group, number)

    monkeypatch.setattr(os, "killpg", killpg)
    run_command("true", cwd=str(tmp_path), timeout=30, kill_leftovers=True)
    assert signalled == [(signal.SIGKILL, True)]


@pytest.mark.req("H-02")
def test_without_pidfds_the_end_is_noticed_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pid: int, flags: int = 0) -> int:
        raise PermissionError(1, "forbidden by the sandbox")

    monkeypatch.setattr(os, "pidfd_open", refuse)
    assert run("exec >&- 2>&-; sleep 0.05; exit 4", tmp_path).exit_code == 4


@pytest.mark.req("H-02")
def test_a_program_that_ignores_its_children_gets_unknown_and_never_a_made_up_zero(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        end = run("exit 2", tmp_path)
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert (end.cause, end.exit_code) == ("unknown", None)


@pytest.mark.req("H-02")
def test_no_descriptor_and_no_zombie_stays(tmp_path: Path) -> None:
    run("true", tmp_path)
    before = open_descriptors()
    for command, timeout in (("true", 30.0), ("sleep 30", 0.05), ("kill -9 $$", 30.0)):
        run(command, tmp_path, stdin=b"x" * 100_000, timeout=timeout)
    assert open_descriptors() == before
    assert not has_ended_child()


def has_ended_child() -> bool:
    """Whether a child of this process ended and nobody took note; one that runs is some fixture's."""
    try:
        return os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return False


@pytest.mark.req("L-21")
@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\x1b[1;31mred\x1b[0m\tx\n", "red\tx\n"),
        (b"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b\x1b(Bc\x1bMd", "abcd"),
        (b"10%\r100%\r\nok\0\x08\x7f", "10%\n100%\nok"),
        (b"\xff\xfe caf\xc3\xa9", "\ufffd\ufffd café"),
        (b"\x1b]0;never closed\nnext line", "\nnext line"),
        ("\x9b31mred".encode(), "red"),
    ],
)
def test_control_codes_do_not_reach_the_reader(data: bytes, text: str) -> None:
    assert decode_plain(data) == text


@pytest.mark.req("L-21")
@given(st.one_of(st.binary(), st.text("\x1b[]0;mPX\x07\x9b\x9d\\ab\r\n\t").map(str.encode)))
def test_no_control_character_survives_whatever_the_bytes(data: bytes) -> None:
    assert all(char in "\n\t" or not (ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0) for char in decode_plain(data))


@pytest.mark.req("H-02")
def test_a_program_whose_main_thread_has_exited_is_killed_at_the_time_limit(tmp_path: Path) -> None:
    written = tmp_path / "written"

    end = run(f"{headless(written, stubborn=True)} & exec sleep 60", tmp_path, timeout=0.5)

    before = size(written)
    time.sleep(0.2)  # as long as forty writes take
    assert end.cause == "timeout" and 0 < before == size(written)
