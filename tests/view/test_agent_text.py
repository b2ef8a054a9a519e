"""What an agent is at, in a line."""

from __future__ import annotations

import pytest

from taskyard.runtime.model import Job, JobStatus
from taskyard.view.agent_text import agent_line


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
