"""Ending a process by number and start time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from taskyard.agents.lead.members import end_process
from taskyard.core.system import process_start

WAITS = [sys.executable, "-c", "import sys; sys.stdin.read()"]


@pytest.mark.req("M-01")
def test_only_the_very_process_is_ended_never_ourselves_or_those_above() -> None:
    with subprocess.Popen(WAITS, stdin=subprocess.PIPE) as child:
        start = process_start(child.pid)

        assert end_process(child.pid, start + 1)  # of that one nothing is left
        assert child.poll() is None
        assert not end_process(os.getpid(), process_start())
        assert not end_process(os.getppid(), process_start(os.getppid()))
        child.send_signal(signal.SIGSTOP)  # also one that is stopped
        assert end_process(child.pid, start, grace=0.05)
        assert child.wait(10) in (-signal.SIGKILL, -signal.SIGTERM)
