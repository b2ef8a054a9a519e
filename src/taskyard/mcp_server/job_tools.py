"""The tools of background jobs: Bash, TaskOutput, TaskStop (KillShell), ListJobs, SendInput."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from taskyard.kinds.shell import Shell
from taskyard.mcp_server import arguments, foreground, schemas, words
from taskyard.mcp_server.answers import Answer
from taskyard.mcp_server.calls import Call, Spec
from taskyard.mcp_server.for_task import for_task
from taskyard.mcp_server.listing import job_facts, jobs_page
from taskyard.mcp_server.results import agent_data
from taskyard.mcp_server.task_ids import TaskId
from taskyard.mcp_server.told import when_it_ends
from taskyard.mcp_server.waiting import waited
from taskyard.runtime.background import check_background
from taskyard.runtime.model import Job
from taskyard.runtime.task_output import TaskOutput


async def _bash(call: Call, given: arguments.Bash) -> Answer:
    wants_background = isinstance(given, arguments.BackgroundBash) and given.run_in_background
    spec = Shell(
        given.command,
        cwd=call.caller.folder,
        name=given.description or None,
        timeout=None if given.timeout is None else given.timeout / 1000,
        stdin=given.stdin,
        tool_use_id=call.tool_use_id,
    )
    if wants_background:
        check_background()
        job = await call.caller.jobs.start(for_task(call, spec))
        return started(call, job)
    return await foreground.run(call, spec, lambda job: started(call, job, waited=True))


def started(call: Call, job: Job, *, waited: bool = False) -> Answer:
    """What a background start answers: the id, where the output goes, and how its end is told."""
    first = "It takes longer: it goes on in the background" if waited else "Command running in background"
    text = f"{first} with ID: {job.id}. Output is being written to: {job.output_file}. {when_it_ends(call)}"
    if job.waits_for:
        text += f" It waits for {job.waits_for}."
    if job.needs_input:
        text += " It seems to wait for input: TaskOutput shows what it asks."
    return Answer(text, job_facts(job))


async def _output(call: Call, given: arguments.TaskOutput) -> Answer:
    seconds = given.timeout / 1000 if given.block else 0.0
    until = time.time() + seconds
    job = await asyncio.to_thread(call.caller.jobs.get, given.task_id)
    at_once = seconds if call.defer_after is None else min(call.defer_after, seconds)
    if not job.is_final and at_once:
        job = await waited(call, job, at_once)
    if not job.is_final and at_once < seconds:
        later = TaskId(job.id, round(until * 1000), given.timeout, given.transcript)
        return Answer("", job_facts(job), deferred=str(later))
    found = await call.caller.jobs.output(job.id, transcript=given.transcript)
    return shown(found, blocked=given.block)


def shown(found: TaskOutput, *, blocked: bool) -> Answer:
    """What TaskOutput answers: how the job stands, and what it printed."""
    got = "success" if found.job.is_final else ("timeout" if blocked else "not_ready")
    data = job_facts(found.job) | {
        "output": found.output,
        "was_truncated": found.was_truncated,
        "retrieval_status": got,
        **_of_kind(found.job),
    }
    return Answer(output_text(data), data)


def output_text(data: dict[str, object]) -> str:
    """A job for a model: what is known of it, a line each, then what it printed."""
    head = [f"{name}: {_word(data[name])}" for name in _HEAD if name in data]
    return "\n".join([*head, "output:", str(data["output"])])


_HEAD = (
    "retrieval_status",
    "task_id",
    "task_type",
    "status",
    "description",
    "exitCode",
    "needs_input",
    "waiting",
    "disconnected",
    "summary",
    "error_text",
)


def _word(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _of_kind(job: Job) -> dict[str, object]:
    """What its kind adds: a shell its exit code, an agent what it was asked and answered."""
    if job.type == "local_bash":
        end = job.end
        facts: dict[str, object] = {"exitCode": end.exit_code if end is not None else None}
        if end is not None and end.cause != "exited":
            facts |= {"cause": end.cause, "signal": end.signal}
        return facts
    added = {name: job.facts.get(name) for name in ("prompt", "result")}
    facts = {name: value for name, value in added.items() if isinstance(value, str)}
    if isinstance(error := job.facts.get("error"), str) or (error := job.end.error if job.end else ""):
        facts["error_text"] = error
    return facts | (agent_data(job) if job.type in ("local_agent", "remote_agent") else {})


async def _stop(call: Call, given: arguments.TaskStop) -> Answer:
    return await _stopped(call, given.task_id)


async def _kill(call: Call, given: arguments.KillShell) -> Answer:
    return await _stopped(call, given.shell_id)


async def _stopped(call: Call, job_id: str) -> Answer:
    (done,) = await call.caller.jobs.stop(job_id)
    job, end = done.job, done.job.end
    if job.is_final:
        await call.caller.jobs.output(job.id, limit=1)  # whoever hears of the end here needs no notice of it
    shown = job.command or job.description
    first = {
        "stopped": "Successfully stopped task",
        "already_ended": f"Task had already ended ({job.status.value})",
        "timeout": "Task was asked to stop and has not ended yet",
    }.get(done.outcome, "Task was stopped, but not all of it is known to be gone")
    data: dict[str, object] = {
        "message": f"{first}: {job.id} ({shown})",
        "task_id": job.id,
        "task_type": job.type,
        "command": shown,
    }
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    proof = {
        "outcome": done.outcome,
        "survivors": list(end.survivors) if end else [],
        "kept": list(end.kept) if end else [],
    }
    hints: list[str] = []
    if end is not None and end.survivors:
        hints.append(f"Still there: processes {', '.join(map(str, end.survivors))}.")
    if end is not None and end.kept:
        hints.append(f"Left running, as they were to be kept: {', '.join(end.kept)}.")
    return Answer(text, data | proof, tuple(hints), is_error=done.outcome == "timeout")


async def _list(call: Call, given: arguments.ListJobs) -> Answer:
    jobs = await asyncio.to_thread(call.caller.jobs.list, ended=given.all)
    last = await asyncio.to_thread(call.caller.jobs.get, given.after) if given.after else None
    return jobs_page(jobs, ended=given.all, last=last)


async def _send(call: Call, given: arguments.SendInput) -> Answer:
    await call.caller.jobs.answer(given.task_id, given.text + "\n")
    return Answer(f"Typed into {given.task_id}.", {"task_id": given.task_id})


def job_tools(*, in_foreground: bool) -> tuple[Spec[Any], ...]:
    """The tools; `in_foreground`: nothing may run in the background, and Bash cannot be asked for it."""
    about = words.BASH_IN_FOREGROUND if in_foreground else words.BASH
    takes = arguments.Bash if in_foreground else arguments.BackgroundBash
    return (
        Spec("Bash", about, takes, _bash, schemas.JOB, destroys=True, title="Run a command"),
        Spec(
            "TaskOutput",
            words.TASK_OUTPUT,
            arguments.TaskOutput,
            _output,
            schemas.OUTPUT,
            reads=True,
            title="Read a job's output",
        ),
        Spec(
            "TaskStop",
            words.TASK_STOP,
            arguments.TaskStop,
            _stop,
            schemas.STOPPED,
            destroys=True,
            repeats=True,
            title="Stop a job",
        ),
        Spec(
            "KillShell",
            words.KILL_SHELL,
            arguments.KillShell,
            _kill,
            schemas.STOPPED,
            destroys=True,
            repeats=True,
            title="Stop a job",
        ),
        Spec("ListJobs", words.LIST_JOBS, arguments.ListJobs, _list, schemas.JOBS, reads=True, title="Look at jobs"),
        Spec("SendInput", words.SEND_INPUT, arguments.SendInput, _send, schemas.TYPED, title="Answer a job"),
    )
