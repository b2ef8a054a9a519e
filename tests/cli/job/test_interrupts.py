"""Ctrl+C on a terminal ends what runs in its foreground, and nothing else."""

from __future__ import annotations

import os
import pty
import sys

import pytest

from support.cli import taskyard
from support.jobs import marked
from support.terminal import shown
from support.wait import until

SESSION = f"""
{sys.executable} -m taskyard run -d -- sleep 9411.5
{sys.executable} -m taskyard run -- 'echo up; sleep 9412.5'
echo ended with $?
"""


@pytest.mark.req("B-09", "B-11")
def test_ctrl_c_on_the_terminal_ends_the_attached_job_and_no_other_of_the_same_session() -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "dumb"
        os.execvp("bash", ["bash", "--norc", "-ic", SESSION])
    try:
        shown(terminal, b"up")
        os.write(terminal, b"\x03")
        shown(terminal, b"ended with 130")
        (job,) = taskyard("ps", "--json").data
        assert (job["description"], len(marked("sleep\x009411.5"))) == ("sleep 9411.5", 1)
    finally:
        os.close(terminal)
        os.kill(pid, 9)
        os.waitpid(pid, 0)

    until(lambda: marked("sleep\x009412.5") == [])
    (job,) = taskyard("ps", "--json").data
    assert job["status"] == "running"  # also after the terminal is gone
    stopped = taskyard("stop", job["id"], "--json")
    assert (stopped.code, stopped.data["outcome"]) == (0, "stopped")
    again = taskyard("stop", job["id"], "--json")
    assert (again.code, again.data["outcome"]) == (0, "already_ended")
