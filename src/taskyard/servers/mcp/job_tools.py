"""The MCP tools of jobs: Bash, Monitor, Agent and Workflow start them, the others control them.

The others: TaskOutput, TaskStop (KillShell), ListJobs, SendInput.

A foreground call is answered when its job ends or, if that takes too long, with the job's id while the job continues
in the background; where nothing may run in the background it waits until the end. Cancelling such a call stops its
job. Waits are woken by inotify (end, output, record) and never poll. Jobs count to the task their agent works on.

No MCP server can start a model's turn: a notice is piggybacked on the answer to the next call. Claude Code wakes its
model when a background command of its own Bash tool ends, so there a command that waits for the notice is suggested.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import anyio

from taskyard.agents.agent.kind import Agent
from taskyard.errors import JobEnded, UsageError
from taskyard.jobs.agent_reports import agent_line
from taskyard.jobs.environment import check_background, is_background_disabled
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.kind import letter_of
from taskyard.jobs.kinds.monitor import Monitor
from taskyard.jobs.kinds.remote_agent import RemoteAgent
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.kinds.workflow import Workflow
from taskyard.jobs.model import Job
from taskyard.jobs.output import Output, TaskOutput, for_terminal
from taskyard.servers.mcp import tool_definitions, tool_texts
from taskyard.servers.mcp.answers import (
    ToolAnswer,
    agent_data,
    ended_answer,
    job_data,
    jobs_page,
    workflow_data,
)
from taskyard.servers.mcp.callers import Caller, client_name
from taskyard.servers.mcp.calls import DeferredId, ToolCall, ToolSpec
from taskyard.servers.mcp.team_tools import spawn_teammate
from taskyard.storage.async_change_feed import AsyncSubscription, subscribe_async

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.jobs.kind import LaunchSpec
    from taskyard.jobs.kind import Spec as KindSpec


#: Minimum and maximum seconds between two progress messages.
_PROGRESS_EVERY, _MAX_PROGRESS_GAP = 1.0, 5.0

#: Most characters of the output line in a progress message.
_LONGEST_LINE = 200


async def wait_for_job(call: ToolCall, job: Job, seconds: float | None, *, until_it_asks: bool = False) -> Job:
    """Return the job when it ended, or its state after `seconds`, or (`until_it_asks`) as soon as it needs input."""
    waiting = asyncio.ensure_future(call.caller.jobs.wait(job.id, timeout=seconds))
    others = [asyncio.ensure_future(_wait_for_question(call, job))] if until_it_asks else []
    if call.wants_progress:
        others.append(asyncio.ensure_future(_report_progress(call, job)))
    try:
        await asyncio.wait([waiting, *others[: int(until_it_asks)]], return_when=asyncio.FIRST_COMPLETED)
        return waiting.result() if waiting.done() else await asyncio.to_thread(call.caller.jobs.get, job.id)
    finally:
        for task in (waiting, *others):
            task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.gather(waiting, *others, return_exceptions=True)


async def _wait_for_question(call: ToolCall, job: Job) -> None:
    """Wait until the job needs input."""
    with subscribe_async(JobPaths(call.caller.yard.home, job.id).path) as folder:
        while True:
            names = await folder.news()
            if names is None or not {"job.json", "facts.json"}.isdisjoint(names):
                job = await asyncio.to_thread(call.caller.jobs.get, job.id)
                if job.needs_input:
                    return


async def _report_progress(call: ToolCall, job: Job) -> None:
    """Report progress when the job prints something, rate-limited, and at intervals if it does not."""
    began = time.monotonic()
    home = call.caller.yard.home
    with subscribe_async(JobPaths(home, job.id).path) as folder:
        await folder.news()
        while True:
            await asyncio.sleep(_PROGRESS_EVERY)
            await _wait_for_output(folder, _MAX_PROGRESS_GAP - _PROGRESS_EVERY)
            job = await asyncio.to_thread(call.caller.jobs.get, job.id)
            line = await asyncio.to_thread(progress_line, home, job)
            await call.progress(time.monotonic() - began, line or f"{job.description}: {job.status.value}")


async def _wait_for_output(folder: AsyncSubscription, seconds: float) -> None:
    """Wait until something was printed, at most `seconds`."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        names = await folder.news(left)
        if names is None or not {"output", "facts.json"}.isdisjoint(names):
            return


def progress_line(home: str, job: Job) -> str:
    """Return the last complete output line, control characters removed; for an agent, its current activity."""
    line = agent_line(job)
    if line is None:
        line = " ".join(for_terminal(Output(JobPaths(home, job.id)).last_line(whole=True)).split())
    return line if len(line) <= _LONGEST_LINE else line[: _LONGEST_LINE - 1] + "…"


#: The client name that Claude Code sends in `initialize`.
CLAUDE_CODE = "claude-code"

#: Most time the command waits: longer than any job may run.
_LONGEST_WAIT = "2d"


def end_notice_text(call: ToolCall, what: str = "Its end") -> str:
    """Return one or two sentences on how `what` reaches the model, valid for its client."""
    text = f"{what} is reported in the answer to a later Taskyard call; do not poll."
    if client_name(call.context.request_context) == CLAUDE_CODE:
        text += (
            " That does not wake you while you are idle: to be woken, run this now with your own Bash tool and"
            f" run_in_background: {waiting_command(call.caller.name)}"
        )
    return text


def waiting_command(agent: str) -> str:
    """Return the shell command that waits for the next notices of `agent`, prints and acknowledges them."""
    words = [*_taskyard_argv(), "notices", "take", "--by", agent, "--wait", _LONGEST_WAIT, "--xml", "--ack"]
    home = os.environ.get("TASKYARD_HOME")
    return shlex.join([*(["env", f"TASKYARD_HOME={os.path.abspath(home)}"] if home else []), *words])


def _taskyard_argv() -> tuple[str, ...]:
    called = sys.argv[0] if sys.argv else ""
    if os.path.basename(called) == "taskyard" and os.access(called, os.X_OK):
        return (os.path.abspath(called),)
    return (sys.executable, "-P", "-m", "taskyard")


async def _monitor(call: ToolCall, given: tool_definitions.Monitor) -> ToolAnswer:
    spec = Monitor(
        given.command,
        given.mcp_command,
        given.mcp_url,
        given.token_env,
        given.resources or (),
        given.logs,
        given.filter,
        silence=None if given.silence is None else given.silence / 1000,
        timeout=None if given.timeout_ms is None else given.timeout_ms / 1000,
        reconnect=given.reconnect,
        cwd=call.caller.folder,
        name=given.description or None,
        tool_use_id=call.tool_use_id,
    )
    job = await call.caller.jobs.start(spec)
    text = (
        f"Monitor running with ID: {job.id}. Everything it hears is written to: {job.output_file}. "
        f"{end_notice_text(call, 'What it sees, and its end,')}"
    )
    return ToolAnswer(text, job_data(job))


MONITOR_TOOLS: tuple[ToolSpec[Any], ...] = (
    ToolSpec(
        "Monitor",
        tool_texts.MONITOR,
        tool_definitions.Monitor,
        _monitor,
        tool_definitions.JOB,
        destroys=True,
        title="Watch something",
    ),
)


class SpecForTask(NamedTuple):
    """A job specification with the task it is for."""

    inner: KindSpec
    task: str

    @property
    def type(self) -> str:
        """The kind, as in records."""
        return self.inner.type

    @property
    def letter(self) -> str:
        """The first character of its job ids."""
        return letter_of(self.inner)

    def wanted(self) -> LaunchSpec:
        """Return the launch specification for the supervisor."""
        return self.inner.wanted()._replace(task=self.task)


def bind_task(call: ToolCall, spec: KindSpec) -> KindSpec:
    """Bind `spec` to the task that the caller works on, if known."""
    at_work = call.caller.at_work
    return spec if at_work is None else SpecForTask(spec, f"{call.caller.tasks_yard.tasks.name}/{at_work}")


async def run_foreground(call: ToolCall, spec: KindSpec, goes_on: Callable[[Job], ToolAnswer]) -> ToolAnswer:
    """Start a job and return its result; `goes_on` builds the answer if it continues in the background."""
    job = await _start_job(call, spec)
    try:
        job = await wait_for_job(call, job, _foreground_timeout(call), until_it_asks=not is_background_disabled())
        return await (_read_ended_answer(call, job) if job.is_final else _move_to_background(call, job, goes_on))
    except BaseException:  # the call was cancelled: stop its foreground job
        with anyio.CancelScope(shield=True):
            await call.caller.jobs.stop(job.id)
        raise


async def _start_job(call: ToolCall, spec: KindSpec) -> Job:
    """Start a foreground job; shielded from cancellation, so that its id is known and it can be stopped."""
    started: list[Job] = []
    with anyio.CancelScope(shield=True):
        started.append(await call.caller.jobs.start(bind_task(call, spec), backgrounded=False))
    return started[0]


def _foreground_timeout(call: ToolCall) -> float | None:
    """Return how long to wait for a foreground job; None (until its end) if background jobs are disabled."""
    if is_background_disabled():
        return None
    return call.patience if call.defer_after is None else min(call.defer_after, call.patience)


async def _read_ended_answer(call: ToolCall, job: Job) -> ToolAnswer:
    return ended_answer(await call.caller.jobs.output(job.id))


async def _move_to_background(call: ToolCall, job: Job, goes_on: Callable[[Job], ToolAnswer]) -> ToolAnswer:
    """Move the job to the background; with deferred tasks it also outlives this process."""
    try:
        await call.caller.jobs.to_background(job.id, keep=call.defer_after is not None)
    except JobEnded:
        return await _read_ended_answer(call, job)
    job = await asyncio.to_thread(call.caller.jobs.get, job.id)
    return await _read_ended_answer(call, job) if job.is_final else goes_on(job)._replace(deferred=job.id)


async def _bash(call: ToolCall, given: tool_definitions.Bash) -> ToolAnswer:
    wants_background = isinstance(given, tool_definitions.BackgroundBash) and given.run_in_background
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
        job = await call.caller.jobs.start(bind_task(call, spec))
        return started_answer(call, job)
    return await run_foreground(call, spec, lambda job: started_answer(call, job, waited=True))


def started_answer(call: ToolCall, job: Job, *, waited: bool = False) -> ToolAnswer:
    """Answer a background start: the id, the output file, and how its end is reported."""
    first = "It takes longer: it goes on in the background" if waited else "Command running in background"
    text = f"{first} with ID: {job.id}. Output is being written to: {job.output_file}. {end_notice_text(call)}"
    if job.waits_for:
        text += f" It waits for {job.waits_for}."
    if job.needs_input:
        text += " It seems to wait for input: TaskOutput shows what it asks."
    return ToolAnswer(text, job_data(job))


async def _output(call: ToolCall, given: tool_definitions.TaskOutput) -> ToolAnswer:
    seconds = given.timeout / 1000 if given.block else 0.0
    until = time.time() + seconds
    job = await asyncio.to_thread(call.caller.jobs.get, given.task_id)
    at_once = seconds if call.defer_after is None else min(call.defer_after, seconds)
    if not job.is_final and at_once:
        job = await wait_for_job(call, job, at_once)
    if not job.is_final and at_once < seconds:
        later = DeferredId(job.id, round(until * 1000), given.timeout, given.transcript)
        return ToolAnswer("", job_data(job), deferred=str(later))
    found = await call.caller.jobs.output(job.id, transcript=given.transcript)
    return output_answer(found, blocked=given.block)


def output_answer(found: TaskOutput, *, blocked: bool) -> ToolAnswer:
    """Answer TaskOutput: the job's state and output."""
    got = "success" if found.job.is_final else ("timeout" if blocked else "not_ready")
    data = job_data(found.job) | {
        "output": found.output,
        "was_truncated": found.was_truncated,
        "retrieval_status": got,
        **_kind_data(found.job),
    }
    return ToolAnswer(output_text(data), data)


def output_text(data: dict[str, object]) -> str:
    """Format a job for a model: one line per field, then the output."""
    head = [f"{name}: {_field_text(data[name])}" for name in _OUTPUT_FIELDS if name in data]
    return "\n".join([*head, "output:", str(data["output"])])


_OUTPUT_FIELDS = (
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


def _field_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _kind_data(job: Job) -> dict[str, object]:
    """Return the fields of its kind: exit code of a shell, prompt and result of an agent."""
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


async def _stop(call: ToolCall, given: tool_definitions.TaskStop) -> ToolAnswer:
    return await _stop_job(call, given.task_id)


async def _kill(call: ToolCall, given: tool_definitions.KillShell) -> ToolAnswer:
    return await _stop_job(call, given.shell_id)


async def _stop_job(call: ToolCall, job_id: str) -> ToolAnswer:
    (done,) = await call.caller.jobs.stop(job_id)
    job, end = done.job, done.job.end
    if job.is_final:
        await call.caller.jobs.output(job.id, limit=1)  # marks the end as read: no notice is needed
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
    return ToolAnswer(text, data | proof, tuple(hints), is_error=done.outcome == "timeout")


async def _list(call: ToolCall, given: tool_definitions.ListJobs) -> ToolAnswer:
    jobs = await asyncio.to_thread(call.caller.jobs.list, ended=given.all)
    last = await asyncio.to_thread(call.caller.jobs.get, given.after) if given.after else None
    return jobs_page(jobs, ended=given.all, last=last)


async def _send(call: ToolCall, given: tool_definitions.SendInput) -> ToolAnswer:
    await call.caller.jobs.answer(given.task_id, given.text + "\n")
    return ToolAnswer(f"Typed into {given.task_id}.", {"task_id": given.task_id})


def job_tools(*, in_foreground: bool) -> tuple[ToolSpec[Any], ...]:
    """Return the tools; `in_foreground`: background jobs are disabled, and Bash does not offer them."""
    about = tool_texts.BASH_IN_FOREGROUND if in_foreground else tool_texts.BASH
    takes = tool_definitions.Bash if in_foreground else tool_definitions.BackgroundBash
    return (
        ToolSpec("Bash", about, takes, _bash, tool_definitions.JOB, destroys=True, title="Run a command"),
        ToolSpec(
            "TaskOutput",
            tool_texts.TASK_OUTPUT,
            tool_definitions.TaskOutput,
            _output,
            tool_definitions.OUTPUT,
            reads=True,
            title="Read a job's output",
        ),
        ToolSpec(
            "TaskStop",
            tool_texts.TASK_STOP,
            tool_definitions.TaskStop,
            _stop,
            tool_definitions.STOPPED,
            destroys=True,
            repeats=True,
            title="Stop a job",
        ),
        ToolSpec(
            "KillShell",
            tool_texts.KILL_SHELL,
            tool_definitions.KillShell,
            _kill,
            tool_definitions.STOPPED,
            destroys=True,
            repeats=True,
            title="Stop a job",
        ),
        ToolSpec(
            "ListJobs",
            tool_texts.LIST_JOBS,
            tool_definitions.ListJobs,
            _list,
            tool_definitions.JOBS,
            reads=True,
            title="Look at jobs",
        ),
        ToolSpec(
            "SendInput",
            tool_texts.SEND_INPUT,
            tool_definitions.SendInput,
            _send,
            tool_definitions.TYPED,
            title="Answer a job",
        ),
    )


async def _workflow(call: ToolCall, given: tool_definitions.Workflow) -> ToolAnswer:
    spec = await asyncio.to_thread(_workflow_spec, call.caller, given)
    if given.timeout is not None:
        spec = spec._replace(timeout=given.timeout / 1000)
    if isinstance(given, tool_definitions.BackgroundWorkflow) and given.run_in_background:
        check_background()
        return _workflow_started_answer(call, await call.caller.jobs.start(bind_task(call, spec)))
    return await run_foreground(call, spec, lambda job: _workflow_started_answer(call, job, waited=True))


def _workflow_spec(caller: Caller, given: tool_definitions.Workflow) -> Workflow:
    """Build the specification from exactly one of a file, a definition and a run to resume."""
    if sum(each is not None for each in (given.path, given.definition, given.resume_from)) != 1:
        raise UsageError("A workflow is a file (path), a definition, or a run to go on with (resume_from): give one.")
    yard = caller.tasks_yard
    if given.resume_from is not None:
        return Workflow.resume(given.resume_from, failed=given.failed, home=yard.home)
    if given.path is not None:
        spec = Workflow.read(os.path.join(caller.folder or "", given.path), env=given.env)
    else:
        spec = Workflow(given.definition or {}, given.env or {})
    return spec._replace(cwd=caller.folder, task_list=yard.tasks.name, tasks_dir=yard.tasks_dir)


def _workflow_started_answer(call: ToolCall, job: Job, *, waited: bool = False) -> ToolAnswer:
    """Answer while it runs: the id, the log file, and how its end is reported."""
    first = "It takes longer: the workflow goes on in the background" if waited else "Workflow running in background"
    text = f"{first} with ID: {job.id}. What happens is being written to: {job.output_file}. {end_notice_text(call)}"
    if job.waits_for:
        text += f" It waits for {job.waits_for}."
    return ToolAnswer(text, job_data(job) | workflow_data(job))


def workflow_tools(*, in_foreground: bool) -> tuple[ToolSpec[Any], ...]:
    """Return the tool; `in_foreground`: background jobs are disabled and not offered."""
    takes = tool_definitions.Workflow if in_foreground else tool_definitions.BackgroundWorkflow
    about = tool_texts.WORKFLOW_IN_FOREGROUND if in_foreground else tool_texts.WORKFLOW
    return (
        ToolSpec("Workflow", about, takes, _workflow, tool_definitions.WORKFLOW, destroys=True, title="Run a workflow"),
    )


async def _agent(call: ToolCall, given: tool_definitions.Agent) -> ToolAnswer:
    if given.team_name is not None:
        return await spawn_teammate(call, given)
    spec = _remote_agent_spec(call, given) if given.remote is not None else _local_agent_spec(call, given)
    if isinstance(given, tool_definitions.BackgroundAgent) and given.run_in_background:
        check_background()
        return _agent_started_answer(call, await call.caller.jobs.start(bind_task(call, spec)))
    return await run_foreground(call, spec, lambda job: _agent_started_answer(call, job, waited=True))


def _local_agent_spec(call: ToolCall, given: tool_definitions.Agent) -> Agent:
    if given.remote_task_type is not None:
        raise UsageError("remote_task_type is for an agent elsewhere: give remote, or leave it out.")
    return Agent(
        given.prompt,
        engine=given.engine or "",
        agent_type=given.subagent_type,
        name=given.name,
        description=given.description or None,
        model=given.model,
        timeout=None if given.timeout is None else given.timeout / 1000,
        cwd=call.caller.folder,
        worktree=given.isolation == "worktree",
        max_tokens=given.max_tokens,
        max_cost=given.max_cost,
        tool_use_id=call.tool_use_id,
    )


#: Arguments that apply to local agents only.
_LOCAL_ONLY = ("engine", "model", "isolation", "max_tokens", "max_cost")


def _remote_agent_spec(call: ToolCall, given: tool_definitions.Agent) -> RemoteAgent:
    if odd := [name for name in _LOCAL_ONLY if getattr(given, name) is not None]:
        raise UsageError(f"{odd[0]} is about an agent that works here: leave it out, or remote.")
    return RemoteAgent(
        given.prompt,
        given.remote or "",
        remote_task_type=given.remote_task_type or "remote-agent",
        name=given.name,
        description=given.description or None,
        timeout=None if given.timeout is None else given.timeout / 1000,
        tool_use_id=call.tool_use_id,
    )


def _agent_started_answer(call: ToolCall, job: Job, *, waited: bool = False) -> ToolAnswer:
    """Answer while it works: the id, how to reach it, and how its end is reported."""
    first = "It takes longer: the agent goes on in the background" if waited else "Agent running in background"
    name = job.facts.get("name") or job.id
    written = "what it says" if job.type == "remote_agent" else "its transcript"
    text = (
        f"{first} with ID: {job.id}. Do not do its work meanwhile. SendMessage to {name} tells it something;"
        f" {written} is being written to: {job.output_file}. {end_notice_text(call, 'Its answer')}"
    )
    if job.waits_for:
        text += f" It waits for {job.waits_for}."
    if job.needs_input:
        text += f" It asks: {job.facts.get('question')} SendInput answers it."
    return ToolAnswer(text, job_data(job) | agent_data(job))


def agent_tools(*, in_foreground: bool) -> tuple[ToolSpec[Any], ...]:
    """Return the tool; `in_foreground`: background jobs are disabled and not offered."""
    takes = tool_definitions.Agent if in_foreground else tool_definitions.BackgroundAgent
    about = tool_texts.AGENT_IN_FOREGROUND if in_foreground else tool_texts.AGENT
    return (
        ToolSpec(
            "Agent", about, takes, _agent, tool_definitions.AGENT, destroys=True, title="Have an agent do something"
        ),
    )
