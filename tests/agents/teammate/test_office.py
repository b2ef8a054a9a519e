"""Many teammates in one program: bounded memory each, nothing done twice, and no work while there is none."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.processes import ROOT
from support.scale import scale


@pytest.mark.serial
@pytest.mark.req("K-04", "M-04", "L-18")
def test_hundreds_of_teammates_take_less_than_a_megabyte_each_and_idle_without_the_processor(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench.crowd", str(tmp_path), str(scale(300)), str(scale(500))]
    done = subprocess.run(
        command, cwd=ROOT, input="go\n", capture_output=True, text=True, timeout=scale(1800, least=50), check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["twice"], found["left"]) == (0, 0)
    assert found["mb_each"] < 1
    assert found["idle_percent"] < 1
