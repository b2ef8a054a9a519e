"""The view in a real terminal: jobs are started, watched, sent to the background, answered and stopped."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from support.tmux import said, tmux_server
from support.wait import until
from taskyard import config
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell

__all__ = ["tmux_server"]

#: Seconds a slow machine may take for one step.
PATIENCE = 30.0


def screen() -> str:
    return said("capture-pane", "-p", "-t", "yard")


def sees(text: str) -> None:
    """Wait until the terminal shows a text."""
    try:
        until(lambda: text in screen(), timeout=PATIENCE)
    except AssertionError:
        raise AssertionError(f"{text!r} is not on the screen:\n{screen()}") from None


def press(*keys: str) -> None:
    said("send-keys", "-t", "yard", *keys)


def type_in(text: str) -> None:
    said("send-keys", "-t", "yard", "-l", text)
    press("Enter")


def begin() -> None:
    """Show the view in a terminal; what ended it is told there afterwards."""
    command = f"{sys.executable} -m taskyard tui --list release"
    said("new-session", "-d", "-s", "yard", "-x", "120", "-y", "30", f"{command}; echo it ended with $?; exec sleep 60")


def asked_to(number: int) -> None:
    """Send the view a signal."""
    shell = int(said("display-message", "-p", "-t", "yard", "#{pane_pid}"))
    children = Path(f"/proc/{shell}/task/{shell}/children").read_text("utf-8").split()
    os.kill(int(children[0]), number)


def terminal() -> str:
    """Whether it shows a screen of a program's own, reports the mouse, and has a cursor."""
    return said("display-message", "-p", "-t", "yard", "#{alternate_on} #{mouse_any_flag} #{cursor_flag}")


@pytest.mark.timeout(180)
@pytest.mark.req("U-01", "B-11")
def test_a_person_works_with_jobs_in_a_terminal(
    tmux_server: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_STALL_AFTER", "0.5")
    monkeypatch.setenv("PAGER", f"tee {tmp_path / 'paged'}")
    jobs = Jobs(config.home(), settings=config.load_settings(), alone=True)
    begin()
    try:
        sees("1 Tasks")
        sees("No tasks yet. Press a to add one")

        press("r")
        sees("run:")
        type_in("echo it began; exec sleep 300")
        sees(" it began")
        sees("foreground")
        until(lambda: jobs.list()[0].pid is not None, timeout=PATIENCE, what="the command")
        (running,) = jobs.list()
        sees("Ctrl+] moves it to the background")  # the key that works inside tmux
        press("C-]")
        until(lambda: jobs.get(running.id).is_backgrounded, timeout=PATIENCE, what="the background")
        sees("1 shell (2)")
        assert jobs.get(running.id).pid == running.pid

        asking = jobs.start(Shell("printf 'Overwrite? (y/n) '; read said; echo got $said", stdin=True))
        sees("needs input")
        sees("! 1 waits")
        press("2", "g", "Enter")
        sees("! Overwrite? (y/n)")
        type_in("yes")
        until(lambda: jobs.get(asking.id).is_final, timeout=PATIENCE, what="its end")
        sees(" got yes")

        press("o")
        until(lambda: (tmp_path / "paged").exists() and "got yes" in (tmp_path / "paged").read_text(), timeout=PATIENCE)
        sees("2 Background")

        press("2", "g", "x")
        sees("x again to stop")
        press("x", "x")  # on a slow machine the two seconds of the first may be over
        until(lambda: jobs.get(running.id).is_final, timeout=PATIENCE, what="the stop")
        sees("stopped")

        press("q")
        sees("it ended with 0")
    finally:
        if living := [job.id for job in jobs.list()]:
            jobs.stop(*living, grace=0.0)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.req("U-01")
def test_a_signal_ends_the_view_and_the_terminal_is_as_it_was_found(tmux_server: Path, number: signal.Signals) -> None:
    begin()
    sees("1 Tasks")
    assert terminal() == "1 1 0"

    asked_to(number)

    sees(f"it ended with {128 + number}")
    assert terminal() == "0 0 1"


@pytest.mark.timeout(120)
@pytest.mark.req("U-01")
def test_whoever_had_the_terminal_meanwhile_everything_is_drawn_again(
    tmux_server: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAGER", f"{sys.executable} -c 'import time; print(\"a pager\", flush=True); time.sleep(300)'")
    jobs = Jobs(config.home(), settings=config.load_settings(), alone=True)
    ended = jobs.start(Shell("echo it printed this"))
    jobs.wait(ended.id, timeout=PATIENCE)
    begin()
    sees("1 Tasks")

    asked_to(signal.SIGTSTP)
    until(lambda: terminal() == "0 0 1", timeout=PATIENCE, what="the stop")
    asked_to(signal.SIGCONT)
    sees("1 Tasks")

    press("2", "o")
    sees("a pager")
    press("C-c")  # for the pager, not for the view
    sees("1 Tasks")
    press("q")
    sees("it ended with 0")
