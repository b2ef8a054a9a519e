"""Agents on the engines `acp` and `model`, as jobs: started, asked, answered and stopped from anywhere."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import taskyard
from support import acp_agent
from support.cli import process
from support.model_server import calls, provider, refuses, says
from support.wait import until
from taskyard.agents.agent.kind import Agent
from taskyard.errors import UsageError
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.jobs import Jobs

#: A model that is a function: writes a file, adds a task, runs a command, answers with what came of them.
FUNCTION = """
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

async def answer(messages, info):
    if len(messages) == 1:
        yield {0: DeltaToolCall("Write", '{"file_path": "a.txt", "content": "hello\\\\n"}', tool_call_id="1")}
    elif len(messages) == 3:
        yield {
            0: DeltaToolCall("Bash", '{"command": "cat a.txt; echo by $TASKYARD_AGENT"}', tool_call_id="2"),
            1: DeltaToolCall("TaskCreate", '{"subject": "Look at a.txt"}', tool_call_id="3"),
        }
    else:
        yield " | ".join(str(part.content) for part in messages[-1].parts)

model = FunctionModel(stream_function=answer)
"""

#: One whose command never ends.
ENDLESS = FUNCTION.replace("cat a.txt; echo by $TASKYARD_AGENT", "sleep 777")


def agent(behaviour: str) -> list[str]:
    return [sys.executable, acp_agent.__file__, behaviour]


def transcript(jobs: Jobs, job_id: str) -> list[dict[str, Any]]:
    text = Path(JobPaths(jobs.home, job_id).transcript).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.req("O-08", "B-07")
def test_what_an_agent_asks_permission_for_is_answered_from_anywhere(jobs: Jobs) -> None:
    job = jobs.start(Agent("go", engine="acp", command=agent("asks")))
    until(lambda: jobs.get(job.id).needs_input, timeout=30)
    assert str(jobs.get(job.id).facts["question"]).startswith("Run make\n")

    assert jobs.send(job.id, "allow once\n")

    job = jobs.wait(job.id, timeout=30)
    assert (job.status.value, job.facts["result"], job.needs_input) == ("completed", "once", False)


@pytest.mark.req("K-08", "B-09")
def test_a_stop_is_a_cancel_and_then_the_end_with_proof(jobs: Jobs, tmp_path: Path) -> None:
    job = jobs.start(Agent("go", engine="acp", command=agent("lasts"), cwd=str(tmp_path)))
    until(lambda: any(line["type"] == "tool_use" for line in transcript(jobs, job.id)), timeout=30)

    (stopped,) = jobs.stop(job.id)

    assert (stopped.outcome, stopped.job.status.value) == ("stopped", "killed")
    assert (tmp_path / "cancelled").exists()


@pytest.mark.req("K-02", "T-05")
def test_an_agent_of_the_protocol_uses_the_shared_list_under_its_own_name() -> None:
    command = " ".join(agent("uses"))
    done = process("agent", "Fix the roof", "--engine", "acp", "--command", command, "--name", "bo")
    assert done.code == 0, done.err
    assert "Task #1 created successfully: Fix the roof / Claimed task #1 for bo." in done.out
    with taskyard.open() as yard:
        assert [(task.subject, task.owner) for task in yard.tasks.list()] == [("Fix the roof", None)]  # given back


@pytest.mark.req("K-02")
def test_a_model_of_ones_own_works_with_files_commands_and_the_list(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text(FUNCTION, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", ":".join(filter(None, sys.path)))
    work = tmp_path / "work"
    work.mkdir()

    job = jobs.run(Agent("go", engine="model", model="python:mine:model", name="bo", cwd=str(work)), timeout=50)

    assert job.status.value == "completed", job.end
    assert job.facts["result"] == "hello\nby bo\n | Task #1 created successfully: Look at a.txt"
    progress: Any = job.facts["progress"]
    assert progress["toolUseCount"] == 3
    assert all(isinstance(line, dict) for line in transcript(jobs, job.id))


@pytest.mark.req("K-08", "B-09")
def test_a_command_of_a_model_ends_with_it(jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(ENDLESS, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", ":".join(filter(None, sys.path)))
    job = jobs.start(Agent("go", engine="model", model="python:mine:model", cwd=str(tmp_path)))
    until(lambda: [one for one in jobs.list() if one.parent == job.id], timeout=30)
    (command,) = [one for one in jobs.list() if one.parent == job.id]

    (stopped,) = jobs.stop(job.id)

    assert stopped.outcome == "stopped"
    until(lambda: jobs.get(command.id).is_final, timeout=30)


@pytest.mark.req("O-03", "B-08")
def test_what_breaks_in_code_of_ones_own_is_told_and_the_transcript_stays_json(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text("import os\nmodel = os.environ['NO_SUCH_VARIABLE']\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", ":".join([str(tmp_path), *filter(None, sys.path)]))
    job = jobs.run(Agent("go", engine="model", model="python:mine:model"), timeout=50)

    assert job.end is not None
    assert (job.end.cause, job.end.error) == ("error", "KeyError: 'NO_SUCH_VARIABLE'")
    lines = transcript(jobs, job.id)
    assert [line["type"] for line in lines] == ["prompt", "stderr"]
    assert "Traceback" in lines[1]["text"]


@pytest.mark.req("B-10", "N-02")
def test_a_limit_of_a_provider_is_on_the_record_and_in_the_transcript(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_AGENT_MODEL", "openai-chat:gpt-4o")
    monkeypatch.setenv("TASKYARD_AGENT_TOOLS", "0")
    with provider(refuses(429, "slow down", retry_after="0"), calls("Read", file_path="x"), says("Done.")) as served_by:
        monkeypatch.setenv("OPENAI_BASE_URL", served_by.url)
        job = jobs.run(Agent("go", engine="model"), timeout=50)

    assert (job.status.value, job.facts["result"], job.facts["model"]) == ("completed", "Done.", "openai-chat:gpt-4o")
    limited: Any = job.facts["limited"]
    assert (limited["times"], "slow down" in limited["why"]) == (1, True)
    assert [line["type"] for line in transcript(jobs, job.id)] == [
        "prompt", "limited", "tool_use", "tool_result", "assistant",
    ]  # fmt: skip
    usage: Any = job.facts["usage"]
    assert usage["total_tokens"] == 1050
    assert isinstance(job.facts["costUsd"], float)


@pytest.mark.req("B-01")
def test_what_an_engine_needs_is_said_before_anything_is_started(jobs: Jobs) -> None:
    for spec, words in (
        (Agent("go", engine="model"), "needs a model"),
        (Agent("go", engine="model", model="anthropic:claude-sonnet-4-5"), "ANTHROPIC_API_KEY"),
        (Agent("go", engine="acp"), "needs a program that speaks"),
    ):
        with pytest.raises(UsageError, match=words):
            jobs.start(spec)
    assert jobs.list(ended=True) == []
    jobs.stop(jobs.start(Agent("go", engine="model", model="openai:x", env={"OPENAI_API_KEY": "k", "PATH": ""})).id)
