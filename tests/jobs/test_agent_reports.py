"""How far agents are, for whoever started them: what is new, once, and that nobody needs to look."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from support.cli import taskyard
from support.mcp_server import Model, talk
from support.wait import until
from taskyard.agents.agent.kind import Agent
from taskyard.jobs.agent_reports import format_report, take_reports
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.model import Job, JobStatus

pytestmark = pytest.mark.req("N-05")

PROGRAM = """
import itertools, json, sys
def say(**event): print(json.dumps(event), flush=True)
for line in itertools.chain(["x"], sys.stdin):
    say(type='tool', name='Edit', input={})
    say(type='usage', input_tokens=100, output_tokens=10)
"""


def job(tools: int, tokens: int, **facts: object) -> Job:
    progress = {"toolUseCount": tools, "tokenCount": tokens}
    known = {"progress": progress, **facts}
    return Job("a00000000", "local_agent", JobStatus.RUNNING, "Look", output_file="/x/output", facts=known)


def test_it_says_what_is_new_and_that_nobody_needs_to_look() -> None:
    assert format_report(job(3, 1200), {}) == (
        "Agent a00000000 progress: 3 new tools used, 1200 new tokens. The agent is still running. You usually do not"
        " need to read /x/output unless you need specific details right away. You will receive a notification when the"
        " agent is done."
    )
    told = {"lastReportedToolCount": 2, "lastReportedTokenCount": 1200}
    assert "progress: 1 new tool used. The agent" in str(format_report(job(3, 1200), told))
    assert "It says of itself: Mends &lt;x&gt;. You" in str(format_report(job(3, 1200, summary="Mends <x>."), told))


def test_it_says_nothing_when_nothing_is_new_whatever_the_record_holds() -> None:
    told = {"lastReportedToolCount": 3, "lastReportedTokenCount": 1200}
    assert format_report(job(3, 1200), told) is None
    assert format_report(job(0, 0), {"lastReportedToolCount": "many"}) is None
    assert format_report(job(1, 900), told) is None  # a conversation that was shortened


def test_what_was_reported_stands_on_the_record_and_comes_once(tmp_path: Path) -> None:
    jobs = Jobs(str(tmp_path / "home"), agent="ada")
    started = jobs.start(Agent("go", command=[sys.executable, "-c", PROGRAM, "{prompt}"]))

    def counted() -> tuple[int, int]:
        progress: Any = jobs.get(started.id).facts.get("progress") or {"toolUseCount": 0, "tokenCount": 0}
        return progress["toolUseCount"], progress["tokenCount"]

    try:
        until(lambda: counted() == (1, 110))
        (first,) = take_reports(jobs.home, "ada", every=0.0)
        assert "1 new tool used, 110 new tokens" in first
        assert jobs.get(started.id).facts["lastReportedToolCount"] == 1
        assert take_reports(jobs.home, "ada", every=0.0) == []
        assert take_reports(jobs.home, "bob", every=0.0) == []
        jobs.send(started.id, "more\n")
        until(lambda: counted() == (2, 120))
        assert take_reports(jobs.home, "ada") == []  # not at every call
        assert take_reports(jobs.home, "ada", exclude=[started.id], every=0.0) == []
        (second,) = take_reports(jobs.home, "ada", every=0.0)
        assert "1 new tool used, 10 new tokens" in second
    finally:
        jobs.stop(started.id)
        jobs.close()


def test_it_rides_on_the_next_answer_of_the_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_AGENT_COMMAND", shlex.join([sys.executable, "-c", PROGRAM, "{prompt}"]))

    async def body(model: Model) -> None:
        job_id = (await model.call("Agent", prompt="go", run_in_background=True)).data["task_id"]
        while len(texts := (await model.call("TaskList")).texts) == 1:
            pass
        assert texts[1].startswith(f"[Agent {job_id} progress: 1 new tool used")
        assert (await model.call("TaskList")).texts == ["No tasks found"]
        await model.call("TaskStop", task_id=job_id)

    talk(body)


def test_a_model_in_claude_code_hears_it_at_the_beginning_of_a_turn() -> None:
    jobs = Jobs(os.environ["TASKYARD_HOME"])
    started = jobs.start(Agent("go", command=[sys.executable, "-c", PROGRAM, "{prompt}"]))
    try:
        until(lambda: "progress" in jobs.get(started.id).facts)
        assert taskyard("hook", "PostToolUse", stdin=b"{}").out == ""
        assert f"Agent {started.id} progress: 1 new tool used" in taskyard("hook", "UserPromptSubmit", stdin=b"{}").out
        assert taskyard("hook", "UserPromptSubmit", stdin=b"{}").out == ""
    finally:
        jobs.stop(started.id)
        jobs.close()
