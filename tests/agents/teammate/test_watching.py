"""What a teammate's work takes, told per task; and that a provider with too much to do is heard of by all."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import taskyard
from support.cli import process
from taskyard import Teammate, Yard
from taskyard.agents.engines.provider import account_of
from taskyard.jobs.rate_limit import RateStateFile

#: Counts tokens by the task's number, uses a tool, has a job done, and costs a cent for each task.
_AGENT = """
import re, subprocess, sys
number = int(re.search(r"Task #(\\d+)", sys.stdin.read())[1])
subprocess.run([sys.executable, "-P", "-m", "taskyard", "run", "--quiet", "--", "true"], check=True)
print('{"type": "limited", "seconds": 0.5, "why": "too many requests"}')
print('{"type": "usage", "input_tokens": %d, "output_tokens": 1}' % (number * 100))
print('{"type": "tool", "name": "Edit", "input": {}}')
print('{"type": "cost", "usd": 0.01}')
"""


@pytest.fixture
def yard() -> Iterator[Yard]:
    with taskyard.open(list="crew", agent="lead") as found:
        yield found
        found.jobs.stop(*[job.id for job in found.jobs.list()], grace=0.1)


@pytest.mark.req("U-05", "B-12")
def test_each_task_knows_what_it_took_and_the_teammate_what_all_took(yard: Yard, tmp_path: Path) -> None:
    agent = tmp_path / "agent.py"
    agent.write_text(_AGENT, encoding="utf-8")
    command = (sys.executable, str(agent))
    for subject in ("Light", "Heavy"):
        yard.tasks.create(subject)

    job = yard.jobs.run(Teammate("ada", "crew", command=command, is_inside=False), timeout=60)

    assert job.status.value == "completed"
    usage = job.facts["usage"]
    assert isinstance(usage, dict)
    assert (usage["total_tokens"], usage["tool_uses"], job.facts["costUsd"]) == (302, 2, 0.02)
    for number, tokens in (("1", 101), ("2", 201)):
        took = process("task", "show", number, "--list", "crew", "--json").data["took"]
        assert (took["jobs"], took["tokens"], took["tools"]) == (2, tokens, 1)  # its share of ada, and ada's shell
        assert took["cost_usd"] == pytest.approx(0.01)
        assert 0 < took["duration_ms"] < usage["duration_ms"] + 10_000
    with RateStateFile(yard.home, account_of("command", command, None, os.environ).key, timeout=10) as file:
        assert file.read(time.time()).provider == "agent"
