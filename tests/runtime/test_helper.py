"""The command line, started for something that nobody waits for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.wait import until

START = """
import os, sys
from taskyard.runtime.helper import start_helper
start_helper(sys.argv[1], "team", "create", "porters")
try:
    os.waitpid(-1, 0)
except ChildProcessError:
    print("nothing to collect")
"""


@pytest.mark.req("N-08", "H-01")
def test_a_helper_works_in_the_home_it_is_given_and_is_nobodys_child(tmp_path: Path) -> None:
    home = tmp_path / "elsewhere"

    ran = subprocess.run(
        [sys.executable, "-c", START, str(home)], capture_output=True, text=True, timeout=20, check=True
    )

    assert ran.stdout == "nothing to collect\n"
    until(lambda: any(path.is_file() for path in home.rglob("teams/**/*")), timeout=20)
