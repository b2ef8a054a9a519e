"""What an agent is at, in a line."""

from __future__ import annotations

import pytest

from taskyard.jobs.agent_reports import agent_line
from taskyard.jobs.model import Job, JobStatus


def agent(status: JobStatus = JobStatus.RUNNING, **facts: object) -> Job:
    return Job("a00000000", "local_agent", status, "Look", facts=facts)


@pytest.mark.req("K-02", "U-01")
def test_it_is_what_it_asks_its_summary_or_what_it_did_last_and_in_the_end_its_answer() -> None:
    did = {"lastActivity": {"toolName": "Edit", "input": {"x": 1, "file_path": "src/\x1b[31ma.py"}}}
    assert agent_line(agent(progress=did)) == "Edit src/\\x1b[31ma.py"
    assert agent_line(agent(progress=did, summary="Fixes\nit.")) == "Fixes it."
    assert agent_line(agent(progress=did, summary="Fixes it.", question="Sure?")) == "Sure?"
    assert agent_line(agent(JobStatus.COMPLETED, summary="Fixes it.", result="Fixed.")) == "Fixed."
    assert agent_line(agent()) == ""
    assert agent_line(agent(progress=[1], summary=3)) == ""
    assert agent_line(Job("b00000000", "local_bash", JobStatus.RUNNING, "x")) is None


def teammate(**facts: object) -> Job:
    return Job("t00000000", "in_process_teammate", JobStatus.RUNNING, "ada", facts=facts)


@pytest.mark.req("K-04", "U-01")
def test_of_a_teammate_it_is_what_it_said_or_did_last_in_words() -> None:
    did = {"lastActivity": {"toolName": "Edit", "input": {"file_path": "a.py"}}}
    said = [
        {"type": "prompt", "text": "Task #1: Port it\nAll of it."},
        {"type": "assistant", "text": "I\x1b[2J begin\nnow."},
    ]
    assert agent_line(teammate(messages=said[:1])) == "> Task #1: Port it"
    assert agent_line(teammate(messages=said, progress=did)) == "I\\x1b[2J begin now."
    assert agent_line(teammate(messages=[*said, {"type": "tool_use", "name": "Edit"}], progress=did)) == "Edit a.py"
    assert agent_line(teammate(messages=[*said, {"type": "tool_use", "name": "Edit"}])) == "[Edit]"
    assert agent_line(teammate(messages=[*said, {"type": "tool_result", "text": "{}"}])) == "I\\x1b[2J begin now."
    assert agent_line(teammate(messages=said, isIdle=True)) == "idle"
    assert agent_line(teammate(messages=said, awaitsApproval=True)) == "waits for approval of its plan"
    assert agent_line(teammate(messages=said, question="Sure?")) == "Sure?"
    assert agent_line(teammate(messages=[1, {"type": 2}, {"type": "assistant", "text": 3}])) == ""
    assert agent_line(teammate(messages="[]", progress=did)) == "Edit a.py"
    ended = teammate(messages=said, result="Completed 1 task: #1.")._replace(status=JobStatus.COMPLETED)
    assert agent_line(ended) == "Completed 1 task: #1."


@pytest.mark.req("K-07", "U-01")
def test_of_a_dream_it_is_its_stage_and_in_the_end_what_came_of_it() -> None:
    job = Job("d00000000", "dream", JobStatus.RUNNING, "Bring the memory in order", facts={"phase": "starting"})
    assert agent_line(job) == "starting"
    facts = {"stage": "prune", "phase": "updating", "touchedCount": 2}
    assert agent_line(job._replace(facts=facts)) == "prune: updating, 2 files so far"
    done = job._replace(status=JobStatus.COMPLETED, facts={**facts, "note": "Nothing was to be improved."})
    assert agent_line(done) == "Nothing was to be improved."
    assert agent_line(job._replace(status=JobStatus.FAILED, facts=facts)) == ""  # its end says why
