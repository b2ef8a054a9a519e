"""Racers start together, and one that fails is named, not waited for."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from bench.processes import Failed, environment, race, wall

RACER = """
import json, sys, time
print('{"ready": true}', flush=True)
assert sys.stdin.readline() == "go\\n"
t0 = time.monotonic_ns()
print(json.dumps({"t0": t0, "t1": time.monotonic_ns()}), flush=True)
"""


def racer(code: str = RACER) -> list[str]:
    return [sys.executable, "-c", code]


def test_nobody_starts_before_all_are_ready(tmp_path: Path) -> None:
    late = "import time; time.sleep(0.3)" + RACER
    answers = race([racer(), racer(late), racer()], home=str(tmp_path))
    assert wall(answers) < 0.25


def test_a_racer_without_an_answer_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="exit code 3"):
        race([racer(), racer("import sys; sys.exit(3)")], home=str(tmp_path))


def test_an_overdue_racer_is_ended(tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(Failed, match="no answer"):
        race([racer("import time; time.sleep(60)")], home=str(tmp_path), limit=0.3)
    assert time.monotonic() - began < 10


def test_measured_processes_see_none_of_the_callers_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_LIST", "somebody's")
    monkeypatch.setenv("CLAUDE_CODE_TASK_LIST_ID", "other")
    env = environment(str(tmp_path))
    assert env["HOME"] == str(tmp_path)
    assert env["TASKYARD_HOME"].startswith(str(tmp_path) + os.sep)
    assert not {"TASKYARD_LIST", "CLAUDE_CODE_TASK_LIST_ID"} & env.keys()
