"""The examples run as they are, offline."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from support.repo import ROOT
from taskyard.jobs.notices import Outbox


@pytest.mark.req("C-01", "N-07", "T-05")
def test_the_agent_loop_works_through_its_script_and_reads_every_notice() -> None:
    command = [sys.executable, str(ROOT / "examples" / "agent_loop.py")]

    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert "<status>completed</status>" in done.stdout
    assert done.stdout.rstrip().endswith("assistant: All tests pass.")
    assert Outbox(os.environ["TASKYARD_HOME"], None).waiting() == []


def test_the_agent_loop_itself_is_short_enough_to_read() -> None:
    source = (ROOT / "examples" / "agent_loop.py").read_text(encoding="utf-8")
    loop = source[source.index("def tools_of") : source.index("def scripted")]
    assert len(loop.rstrip().splitlines()) <= 60
