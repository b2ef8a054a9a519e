"""`taskyard limits`: rate limits are listed, and a person lifts one early."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

import taskyard as library
from support.cli import process, taskyard
from support.job_cli import ended
from support.wait import until

_PROGRAM = """
import json, pathlib, sys
sys.stdin.read()
mark = pathlib.Path({mark!r})
if not mark.exists():
    mark.touch()
    print(json.dumps({{"type": "limited", "seconds": {seconds}, "text": "429 quota used up"}}), flush=True)
    sys.exit(1)
print("Done at last.")
"""


def limited_once(folder: Path, *, seconds: int) -> str:
    """The command of an agent whose first turn meets a rate limit of so many seconds."""
    program = folder / "limited.py"
    program.write_text(_PROGRAM.format(mark=str(folder / "asked"), seconds=seconds), encoding="utf-8")
    return shlex.join([sys.executable, str(program)])


@pytest.mark.req("Q-01")
def test_an_agent_continues_at_once_when_a_person_lifts_its_rate_limit(tmp_path: Path) -> None:
    command = limited_once(tmp_path, seconds=3600)
    assert taskyard("limits").out == "No account is rate-limited.\n"
    job = taskyard("agent", "Go", "--engine", "command", "--command", command, "-d", "-q").out.strip()
    until(lambda: taskyard("limits", "--json").data, what="the limit is listed")

    [limit] = taskyard("limits", "--json").data
    assert limit["reason"] == "429 quota used up"
    assert limit["account"] in taskyard("limits").out
    with library.open() as yard:
        assert list(yard.jobs.rate_limits()) == [limit["account"]]
        assert not yard.jobs.get(job).is_final
        assert taskyard("limits", "clear", "somebody-else").code == 4
        assert taskyard("limits", "clear").code == 2

        lifted = taskyard("limits", "clear", limit["provider"])

        assert lifted.out == f"Lifted the rate limit of {limit['account']}.\n"
        assert yard.jobs.wait(job, timeout=20).status.value == "completed"
        assert not yard.jobs.lift_rate_limit(limit["account"])
    assert taskyard("limits", "--json").data == []


def workflow(folder: Path, command: str, **limits: float) -> str:
    """The file of a workflow with one agent step; `limits` are the timeouts of the two, in seconds."""
    step: dict[str, object] = {
        "id": "write",
        "agent": {"prompt": "Go", "engine": "command", "command": shlex.split(command)},
    }
    whole: dict[str, object] = {"name": "limited"}
    for what, seconds in limits.items():
        (step if what == "step" else whole)["timeout"] = f"{seconds}s"
    file = folder / "limited.json"
    file.write_text(json.dumps({**whole, "steps": [step]}), encoding="utf-8")
    return str(file)


@pytest.mark.req("Q-01", "K-05")
def test_the_timeout_of_an_agent_step_does_not_run_during_a_rate_limit(tmp_path: Path) -> None:
    file = workflow(tmp_path, limited_once(tmp_path, seconds=4), step=3)

    done = process("workflow", "run", file, "--json")

    assert (done.code, done.data["status"]) == (0, "completed"), done
    assert done.data["duration_ms"] > 4_000  # longer than the step may take without the wait


@pytest.mark.req("Q-01", "K-05")
def test_the_timeout_of_a_whole_workflow_runs_during_a_rate_limit_of_its_step(tmp_path: Path) -> None:
    file = workflow(tmp_path, limited_once(tmp_path, seconds=3600), whole=4)

    job = taskyard("workflow", "run", "-d", file).out.strip()
    over = ended(job)
    assert (over["status"], over["cause"]) == ("killed", "timeout")
    assert taskyard("ps", "--json").data == []  # its step is stopped with it
    assert taskyard("limits", "clear", "--all").code == 0 and (tmp_path / "asked").exists()  # which had met the limit
    resumed = process("workflow", "resume", job, "--json")
    assert (resumed.code, resumed.data["status"]) == (0, "completed"), resumed
