"""The command line, started for something that nobody waits for."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.jobs import marked
from support.wait import until

START = """
import os, sys
from taskyard.jobs.helper_process import start_helper
start_helper(sys.argv[1], "team", "create", "porters")
try:
    os.waitpid(-1, 0)
except ChildProcessError:
    print("nothing to collect")
"""


HOLD = """
import fcntl, os, sys
from taskyard.jobs.helper_process import start_helper
lock = os.open(sys.argv[2], os.O_RDWR | os.O_CREAT)
os.set_inheritable(lock, True)
fcntl.flock(lock, fcntl.LOCK_EX)
start_helper(sys.argv[1], "events", "-f", "--tasks-dir", sys.argv[2])
"""


@pytest.mark.req("N-08", "H-01")
def test_a_helper_works_in_the_home_it_is_given_and_is_nobodys_child(tmp_path: Path) -> None:
    home = tmp_path / "elsewhere"

    ran = subprocess.run(
        [sys.executable, "-c", START, str(home)], capture_output=True, text=True, timeout=20, check=True
    )

    assert ran.stdout == "nothing to collect\n"
    until(lambda: any(path.is_file() for path in home.rglob("teams/**/*")), timeout=20)


@pytest.mark.req("N-08")
def test_a_helper_holds_nothing_that_its_starter_has_open(tmp_path: Path) -> None:
    home, lock = tmp_path / "elsewhere", tmp_path / "lock"

    subprocess.run([sys.executable, "-c", HOLD, str(home), str(lock)], timeout=20, check=True)

    try:
        with lock.open() as mine:
            fcntl.flock(mine, fcntl.LOCK_EX | fcntl.LOCK_NB)  # refused while the helper has it open
    finally:
        for pid in marked(f"--tasks-dir\0{lock}"):
            os.kill(pid, signal.SIGKILL)
