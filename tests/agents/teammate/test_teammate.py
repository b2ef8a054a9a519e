"""Teammates on real programs, in processes of their own and inside others; and what their deaths leave behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import taskyard
from support.model_server import provider, refuses, says
from support.teams import team
from support.wait import until
from taskyard import BadName, BadValue, EngineNotFound, Job, TaskStatus, Teammate, UsageError, Yard
from taskyard.jobs.job_dir import JobPaths, supervisor_pid

#: Seconds that only guard against hanging.
_SOON = 20.0

#: A program that hosts a teammate whose work never ends, and says so.
_HOST = """
import asyncio, taskyard
from taskyard import Teammate; from taskyard.agents import teammate as teamwork

async def work(turn):
    print("begun", flush=True)
    await asyncio.sleep(3600)

async def main():
    async with taskyard.open_async(list="crew", agent="host") as yard:
        job = await yard.jobs.start(teamwork.Working(Teammate("ada", "crew", prompt="Be brief. " * 50), work))
        print(job.id, flush=True)
        await asyncio.sleep(3600)

asyncio.run(main())
"""


@pytest.fixture
def yard() -> Iterator[Yard]:
    """A team with a lead and an empty list."""
    with taskyard.open(list="crew", agent="lead") as found:
        found.teams.create("crew", lead="lead")
        yield found
        found.jobs.stop(*[job.id for job in found.jobs.list()], grace=0.1)


def teammate(*command: str, name: str = "ada", **more: object) -> Teammate:
    return Teammate(name, "crew", command=command, is_inside=False, **more)  # type: ignore[arg-type]


def transcript(yard: Yard, job: Job) -> list[dict[str, object]]:
    text = Path(JobPaths(yard.home, job.id).transcript).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def trackers(yard: Yard) -> dict[str, str]:
    """Each tracker with its status."""
    return {task.subject: task.status.value for task in yard.tasks.list(internal=True) if task.is_internal}


@pytest.mark.req("K-04", "B-12")
@pytest.mark.parametrize("is_inside", [True, False], ids=["inside a program", "below a keeper"])
def test_a_model_with_a_key_and_a_limit_works_by_the_settings(monkeypatch: pytest.MonkeyPatch, is_inside: bool) -> None:
    async def worked() -> Job:
        async with team() as yard:
            yard.tasks.create("Say hello")
            yard.tasks.create("Say goodbye")
            job = await yard.jobs.start(Teammate("ada", "crew", engine="model", is_inside=is_inside))
            return await yard.jobs.wait(job.id, timeout=50)

    monkeypatch.setenv("TASKYARD_AGENT_MODEL", "openai-chat:gpt-4o")
    monkeypatch.setenv("TASKYARD_AGENT_TOOLS", "0")
    with provider(refuses(429, "slow down", retry_after="0"), says("Done.")) as served_by:
        monkeypatch.setenv("OPENAI_BASE_URL", served_by.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        job = asyncio.run(worked())

    assert (job.facts["completed"], job.facts["failed"], job.facts["model"]) == (["1", "2"], [], "openai-chat:gpt-4o")
    lines = [json.loads(line) for line in Path(job.output_file).read_text(encoding="utf-8").splitlines()]
    assert ["slow down" in line["text"] for line in lines if line["type"] == "limited"] == [True]
    assert "Say hello" not in str(served_by.requests[-1]["messages"]), "each task is a conversation of its own"
    assert {tool["function"]["name"] for tool in served_by.requests[-1]["tools"]} == {"Read", "Edit", "Write"}


@pytest.mark.req("K-04", "M-04", "O-03")
def test_a_program_works_on_each_task_and_its_words_are_the_transcript(yard: Yard) -> None:
    yard.tasks.create("Count the stars", description="All of them.")
    job = yard.jobs.run(teammate("cat", prompt="Be brief."), timeout=_SOON)

    assert (job.status.value, job.id[0], job.type) == ("completed", "t", "in_process_teammate")
    assert job.facts["result"] == "Completed 1 task: #1. It ended because every task is completed."
    assert job.facts["identity"] == {
        "agentId": "ada@crew", "agentName": "ada", "teamName": "crew", "color": "red",
    }  # fmt: skip
    assert os.readlink(job.output_file) == "transcript.jsonl"
    said = "\n".join(str(line["text"]) for line in transcript(yard, job) if line["type"] == "assistant")
    assert said.startswith("You are ada, a teammate in team crew. You share the task list 'crew' with the others.")
    assert "Be brief.\n\nTask #1: Count the stars\n\nAll of them." in said
    shown = job.facts["messages"]
    assert isinstance(shown, list)
    assert (shown[0]["type"], shown[0]["task"]) == ("prompt", "1")
    assert list(yard.notices().take()) == []  # no model hears of its end


@pytest.mark.req("Q-01", "K-04")
def test_the_time_for_a_task_does_not_run_during_a_rate_limit(yard: Yard, tmp_path: Path) -> None:
    task, mark = yard.tasks.create("Count the stars"), tmp_path / "asked"
    limited = json.dumps({"type": "limited", "seconds": 3, "text": "429 quota used up"})
    script = f"if [ -e {mark} ]; then echo done; else touch {mark}; echo '{limited}'; exit 1; fi"

    job = yard.jobs.run(teammate("sh", "-c", script, task_timeout=2.0), timeout=_SOON)

    assert (job.facts["completed"], job.facts["failed"]) == ([task.id], []), transcript(yard, job)
    assert job.end is not None and (job.end.duration_ms or 0) > 3_000


@pytest.mark.req("K-04", "L-09", "L-15")
def test_what_its_programs_do_on_the_list_is_its_own_doing(yard: Yard) -> None:
    task = yard.tasks.create("Done by the program itself")
    other = yard.tasks.create("Taken beside it", requires=["hands"])
    ours = f"{sys.executable} -P -m taskyard task"
    job = yard.jobs.start(teammate("sh", "-c", f"{ours} done {task.id} && {ours} start {other.id} && sleep 300"))
    until(lambda: yard.tasks.get(other.id).owner == "ada", timeout=_SOON)
    assert yard.tasks.get(task.id).is_done
    assert {change.act.by for change in yard.tasks.log(task.id)} == {"lead", "ada"}
    yard.jobs.stop(job.id)
    back = yard.tasks.get(other.id)
    assert (back.owner, back.status) == (None, TaskStatus.PENDING)


@pytest.mark.req("L-12", "L-10", "B-08")
def test_when_the_host_is_killed_its_teammate_is_lost_and_its_task_and_tracker_are_settled(yard: Yard) -> None:
    task = yard.tasks.create("In hand")
    host = subprocess.Popen([sys.executable, "-c", _HOST], stdout=subprocess.PIPE, text=True)
    assert host.stdout is not None
    job_id = host.stdout.readline().strip()
    assert host.stdout.readline() == "begun\n"
    tracker = next(task for task in yard.tasks.list(internal=True) if task.is_internal)
    assert (tracker.subject, tracker.status, tracker.owner) == ("ada", TaskStatus.IN_PROGRESS, None)
    assert (tracker.active_form, tracker.description) == (None, ("Be brief. " * 50)[:100])
    assert yard.tasks.get(task.id).owner == "ada"

    host.kill()
    host.wait()
    host.stdout.close()
    ended = yard.jobs.get(job_id)
    assert (ended.status.value, ended.end and ended.end.cause) == ("failed", "lost")
    back = yard.tasks.get(task.id)
    assert (back.owner, back.status) == (None, TaskStatus.PENDING)
    assert trackers(yard) == {"ada": "completed"}
    assert [seen.liveness for seen in yard.teams.members("crew") if seen.member.name == "ada"] == ["dead"]
    # Another of that name takes its place, and does the work.
    again = yard.jobs.run(teammate("true"), timeout=_SOON)
    assert again.facts["completed"] == [task.id]


@pytest.mark.req("L-10", "L-12", "K-04")
@pytest.mark.parametrize("victim", ["keeper", "process"])
def test_when_its_own_process_is_killed_its_tasks_go_back_and_its_tracker_is_completed(yard: Yard, victim: str) -> None:
    task = yard.tasks.create("In hand")
    job = yard.jobs.start(teammate("sleep", "300"))
    until(lambda: yard.tasks.get(task.id).owner == "ada", timeout=_SOON)
    pid = supervisor_pid(JobPaths(yard.home, job.id)) if victim == "keeper" else yard.jobs.get(job.id).pid
    assert pid
    os.kill(pid, signal.SIGKILL)
    assert yard.jobs.wait(job.id, timeout=_SOON).status.value == "failed"
    until(lambda: yard.tasks.get(task.id).owner is None, timeout=_SOON)
    until(lambda: trackers(yard) == {"ada": "completed"}, timeout=_SOON)


@pytest.mark.req("L-12")
def test_trackers_count_for_nothing(yard: Yard) -> None:
    job = yard.jobs.start(teammate("true", until="stopped"))
    until(lambda: yard.jobs.get(job.id).facts.get("isIdle"), timeout=_SOON)
    assert trackers(yard) == {"ada": "in_progress"}
    assert yard.tasks.list() == ()
    assert yard.tasks.claim_next(check_busy=True) is None
    yard.jobs.stop(job.id)
    assert trackers(yard) == {"ada": "completed"}


@pytest.mark.req("K-04", "M-02")
def test_a_question_of_its_program_is_answered_by_what_is_sent_or_mailed(yard: Yard) -> None:
    yard.tasks.create("Ask")
    script = """echo '{"type": "question", "text": "Which port?"}'; read answer; echo "chosen: $answer" """
    job = yard.jobs.start(teammate("sh", "-c", script, "{prompt}"))
    until(lambda: yard.jobs.get(job.id).needs_input, timeout=_SOON)
    assert yard.jobs.get(job.id).facts["question"] == "Which port?"
    yard.mail.send("lead", "ada", "8080")
    ended = yard.jobs.wait(job.id, timeout=_SOON)
    assert ended.facts["completed"] == ["1"]
    assert "chosen: 8080" in [line.get("text") for line in transcript(yard, ended)]


@pytest.mark.req("K-02", "K-04")
def test_its_progress_is_what_its_engine_tells(yard: Yard) -> None:
    yard.tasks.create("Count")
    events = [
        {"type": "tool", "name": "Bash", "input": {"command": "ls"}},
        {"type": "usage", "input_tokens": 100, "output_tokens": 7},
        {"type": "result", "text": "done"},
    ]
    lines = "\n".join(json.dumps(event) for event in events)
    job = yard.jobs.run(teammate("printf", "%s\n", lines), timeout=_SOON)
    progress = job.facts["progress"]
    assert isinstance(progress, dict)
    assert (progress["toolUseCount"], progress["tokenCount"]) == (1, 107)
    assert progress["lastActivity"] == {"toolName": "Bash", "input": {"command": "ls"}}


@pytest.mark.req("M-01", "K-04")
def test_a_name_that_a_living_member_has_is_refused_and_nothing_is_left_of_the_second(yard: Yard) -> None:
    first = yard.jobs.start(teammate("true", until="stopped"))
    until(lambda: yard.jobs.get(first.id).facts.get("isIdle"), timeout=_SOON)
    second = yard.jobs.run(teammate("true"), timeout=_SOON)
    assert second.end is not None
    assert "ada" in second.end.error
    assert [member.name for member in yard.teams.get("crew").members] == ["lead", "ada"]
    assert trackers(yard) == {"ada": "in_progress"}
    assert yard.jobs.get(first.id).status.value == "running"


@pytest.mark.req("K-04")
@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"name": ""}, BadName),
        ({"team": "a" * 300}, BadName),
        ({"until": "tomorrow"}, BadValue),
        ({"task_timeout": 0}, BadValue),
        ({"labels": "docs"}, BadValue),
        ({"capabilities": ["x"] * 51}, BadValue),
        ({"cwd": "/nowhere/at/all"}, BadValue),
        ({"on_parent_exit": "explode"}, BadValue),
        ({"engine": "steam"}, EngineNotFound),
        ({"command": ()}, UsageError),
    ],
)
def test_what_cannot_be_is_refused_before_anything_begins(fields: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error):
        Teammate("ada", "crew", command=("true",))._replace(**fields).wanted()  # type: ignore[arg-type]
