"""The view in a real terminal: jobs are started, watched, sent to the background, answered and stopped."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.tmux import said, tmux_server
from support.wait import until
from taskyard import config, paths
from taskyard.kinds.shell import Shell
from taskyard.runtime.jobs import Jobs

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


@pytest.mark.timeout(180)
@pytest.mark.req("U-01", "B-11")
def test_a_person_works_with_jobs_in_a_terminal(
    tmux_server: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_STALL_AFTER", "0.5")
    monkeypatch.setenv("PAGER", f"tee {tmp_path / 'paged'}")
    jobs = Jobs(paths.home(), settings=config.load(), alone=True)
    command = f"{sys.executable} -m taskyard tui --list release"
    said("new-session", "-d", "-s", "yard", "-x", "120", "-y", "30", f"{command}; echo it ended with $?; exec sleep 60")
    try:
        sees("1 Tasks")
        sees("No tasks yet. Press a to add one")

        press("r")
        sees("run:")
        type_in("echo it began; exec sleep 300")
        sees(" it began")
        sees("foreground")
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
