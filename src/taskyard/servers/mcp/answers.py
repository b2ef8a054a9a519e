"""Answers of tools: text for models, optional data, refusals with advice, and bounded pages.

A client gives its model either the text or, if present, `structuredContent`: Claude Code and Codex the latter alone,
Gemini CLI and opencode the former. So answers have text only, unless the setting `mcp_structured` is on; then
`structuredContent` repeats under `notes` what the text has beyond the data.

Gemini CLI parses the first text of an answer without `structuredContent` as JSON and uses the value for it. A value
that is not an object (a command that prints `1` or `[1]`) fails its own check, and its model reads that error instead
of the text. So answers to Gemini CLI always have `structuredContent`; its model reads the text alone.

A refusal is an answer marked as an error, with the fact and advice. The fact is the same as on the command line; the
advice names tools where users have commands. Texts written by others are truncated, since a model's context is limited.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, cast

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, CallToolResult, TextContent
from pydantic import PrivateAttr, ValidationError

from taskyard import errors
from taskyard.core.values import as_list, as_object, is_id
from taskyard.errors import BadValue, Conflict, NotFound, TaskyardError, UsageError
from taskyard.jobs.job_text import disconnect_reason, state_text
from taskyard.jobs.model import Job, cost_usd
from taskyard.jobs.output import TaskOutput
from taskyard.tasks import text as tasks_text
from taskyard.tasks.model import Listing, Task
from taskyard.tasks.text import hidden_line, task_json, unfinished_blockers

#: Most characters of one text in an answer, as much as a model is given of a job's output.
LONGEST_TEXT = 32_000

#: Most characters of text that the caller has just written itself.
LONGEST_ECHO = 2_000

#: Most characters of attached data, as JSON.
_LONGEST_DATA = 8_000


def truncate(text: str, longest: int = LONGEST_TEXT) -> str:
    """Truncate a long `text` and note how much was left out."""
    if len(text) <= longest:
        return text
    return f"{text[:longest]}\n[… {len(text) - longest:,} more characters were left out.]"


def limit_data(data: Mapping[str, object]) -> dict[str, object]:
    """Return attached data; if it is too large, its keys only."""
    size = len(json.dumps(dict(data), default=str))
    if size <= _LONGEST_DATA:
        return dict(data)
    return {"left_out": f"{size:,} characters", "keys": [key[:100] for key in list(data)[:50]]}


def task_data(task: Task, *, longest: int = LONGEST_TEXT) -> dict[str, object]:
    """Return a task as data, within the limits."""
    return {
        **task_json(task),
        "description": truncate(task.description, longest),
        "metadata": limit_data(task.metadata),
    }


_TAKE_ANOTHER = "take another: TaskClaim without a taskId"


def error_text(error: TaskyardError) -> str:
    """Return a refusal in words that a model can act on."""
    advise = _ADVICE.get(type(error))
    if advise is None:
        return str(error)
    return f"{error.fact} {advise(error)}".rstrip()


def format_call(tool: str, **fields: object) -> str:
    """Format a call as a model writes it."""
    return f"{tool} {json.dumps(fields, ensure_ascii=False)}"


def _reopen_advice(task_id: str, what: str) -> str:
    return f"{format_call('TaskUpdate', taskId=task_id, status='pending')} {what}."


def _claimed_advice(error: errors.AlreadyClaimed) -> str:
    if error.instance is not None:
        return f"That is another session under your name: {_TAKE_ANOTHER}."
    return f"Ask {error.owner!r} (SendMessage), or {_TAKE_ANOTHER}."


def _transition_advice(error: errors.BadTransition) -> str:
    return _reopen_advice(error.task_id, "opens it first") if error.was == "completed" else ""


def _busy_advice(error: errors.AgentBusy) -> str:
    back = format_call("TaskUpdate", taskId=error.tasks[0], status="pending", owner="")
    return f"Complete that first, or give it back: {back}."


def _lease_lost_advice(error: errors.LeaseLost) -> str:
    return f"{format_call('TaskGet', taskId=error.task_id)} shows how it stands; {_TAKE_ANOTHER}."


def _untrusted_advice(error: errors.Untrusted) -> str:
    return f"Only a person can trust it, with `{error.how}`: ask for that."


def _no_task_advice(error: errors.TaskNotFound) -> str:
    if error.restorable:
        return f"It was removed. A person can bring it back with `taskyard task restore {error.task_id}`."
    return f"{_nearest_text(error.nearest, '#')}TaskList shows those there are."


def _no_job_advice(error: errors.JobNotFound) -> str:
    return f"{_nearest_text(error.nearest)}{format_call('ListJobs', all=True)} shows those there are."


def _no_recipient_advice(error: errors.RecipientNotFound) -> str:
    if error.recipient == "*":
        return "Nobody else is here yet: do it yourself, or leave it on the list (TaskCreate)."
    return f"{_nearest_text(error.nearest)}TaskList shows who works here; * sends it to everyone else."


def _nothing_free_advice(error: errors.NothingFree) -> str:
    if not error.open:
        return "If there is more to do, add it with TaskCreate; else the work is done."
    return "TaskList shows who has what and what waits for what: look again when something of it is completed."


def _no_input_advice(error: errors.NoInput) -> str:
    if error.why == "takes no input":
        return "Only a command that was started with stdin takes any: stop it, and run it in Bash with stdin."
    return f"See what it does: {format_call('TaskOutput', task_id=error.job_id, block=False)}."


def _nearest_text(names: Sequence[str], sign: str = "") -> str:
    return f"Nearest: {', '.join(f'{sign}{name}' for name in names)}. " if names else ""


#: Advice by exact error class; subclasses do not inherit it.
_ADVICE: dict[type[TaskyardError], Callable[[Any], str]] = {
    errors.AlreadyClaimed: _claimed_advice,
    errors.AlreadyResolved: lambda error: _reopen_advice(error.task_id, "opens it again"),
    errors.BadTransition: _transition_advice,
    errors.AgentBusy: _busy_advice,
    errors.LeaseLost: _lease_lost_advice,
    errors.Untrusted: _untrusted_advice,
    errors.TaskNotFound: _no_task_advice,
    errors.JobNotFound: _no_job_advice,
    errors.RecipientNotFound: _no_recipient_advice,
    errors.NothingFree: _nothing_free_advice,
    errors.NoInput: _no_input_advice,
    errors.JobEnded: lambda error: (
        f"Use {error.continued_as}." if error.continued_as else "If it is needed again, start it again."
    ),
    errors.BackgroundDisabled: lambda _: "Run it in the foreground: without run_in_background.",
    errors.Damaged: lambda _: "A person can run `taskyard doctor`, which explains what can be done.",
    errors.ListNotFound: lambda error: _nearest_text(error.nearest),
}


#: The key of notice records in `_meta`.
NOTICES = "taskyard/notices"

#: Most faults that one refusal lists.
_MOST_FAULTS = 5


class ToolAnswer(NamedTuple):
    """One answer, before conversion to the protocol."""

    text: str
    data: Mapping[str, object]
    hints: tuple[str, ...] = ()  #: further blocks of text: consequences, what to do next
    is_error: bool = False
    deferred: str | None = None  #: the id of a deferred call that continues; None if it is complete


class DeferrableResult(CallToolResult):
    """A tool result that may be deferred."""

    _deferred: str | None = PrivateAttr(default=None)

    @property
    def deferred(self) -> str | None:
        """The id of the deferred call, or None."""
        return self._deferred

    def defer(self, task_id: str | None) -> None:
        """Set the id of the deferred call."""
        self._deferred = task_id


def tool_result(
    answer: ToolAnswer,
    *,
    structured: bool,
    piggybacked: Sequence[str] = (),
    notices: Sequence[Mapping[str, object]] = (),
) -> DeferrableResult:
    """Convert an answer to a protocol result.

    Args:
        answer: The tool's answer.
        structured: Whether to send data beside the text.
        piggybacked: Texts to append.
        notices: The notices in it, for programs: no client shows `_meta` to a model.
    """
    notes = [text for text in (*answer.hints, *piggybacked) if text]
    data: dict[str, Any] = {**answer.data, **({"notes": notes} if notes else {})}
    made = DeferrableResult(
        content=[TextContent(type="text", text=text) for text in (answer.text, *notes) if text],
        structured_content=data if structured else None,
        is_error=answer.is_error,
        _meta={NOTICES: list(notices)} if notices else None,
    )
    made.defer(answer.deferred)
    return made


def refusal(error: TaskyardError, *, text: str | None = None) -> ToolAnswer:
    """Convert an expected error to an answer; with `text`, wording that models know comes first."""
    facts = {name: _json_value(value) for name, value in error.facts().items()}
    said = error_text(error)
    data = {"error": {**facts, "code": error.code, "message": said}}
    return ToolAnswer(said, data, is_error=True) if text is None else ToolAnswer(text, data, (said,), is_error=True)


def protocol_error(error: TaskyardError) -> MCPError:
    """Convert an error to a protocol error, for requests that are not tool calls."""
    theirs = isinstance(error, (UsageError, NotFound, Conflict))
    return MCPError(INVALID_PARAMS if theirs else INTERNAL_ERROR, error_text(error), refusal(error).data["error"])


def invalid_arguments(tool: str, fields: Iterable[str], error: ValidationError) -> ToolAnswer:
    """Return the answer to invalid arguments: which are wrong, and what is expected."""
    known = list(fields)
    faults = list(dict.fromkeys(_fault_text(tool, known, item) for item in error.errors()))
    shown = faults[:_MOST_FAULTS]
    if len(faults) > len(shown):
        shown.append(f"{len(faults) - len(shown)} more fields do not fit.")
    text = " ".join([*shown, "Nothing was changed."])
    return ToolAnswer(text, {"error": {"code": "bad_arguments", "message": text, "fields": known}}, is_error=True)


def _fault_text(tool: str, known: Sequence[str], item: Mapping[str, Any]) -> str:
    place = ".".join(str(part) for part in item["loc"])[:100] or "the arguments"
    if item["type"] == "extra_forbidden":
        return f"{tool} has no field {place!r}; it has {', '.join(known) or 'none'}."
    if item["type"] == "missing":
        return f"{tool} needs {place!r}."
    return f"{place!r} does not fit: {item['msg']}."


def _json_value(value: object) -> object:
    """Convert a value to JSON."""
    if (inner := as_object(value)) is not None:
        return {key: _json_value(each) for key, each in inner.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_json_value(each) for each in cast("Collection[object]", value)]
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


#: Most characters of one page as JSON: well below 4,000 tokens.
PAGE_CHARACTERS = 9_000

#: Cursor prefix of completed tasks, which follow the open ones.
_COMPLETED_PREFIX = "completed:"

T = TypeVar("T", Task, Job)


def tasks_page(listing: Listing, *, status: str | None, owner: str | None, after: str | None) -> ToolAnswer:
    """Return a page of tasks. If they do not fit into one answer, open ones come first, then completed ones."""
    by_id = {task.id: task for task in listing}
    unreadable = unreadable_in(listing)
    behind = _parse_cursor(after, status) if after else None
    wanted = [
        task
        for task in listing
        if not task.is_internal
        and status in (None, task.status.value)
        and owner in (None, task.owner)
        and (behind is None or _page_order(task) > behind)
    ]
    rows = {task.id: _task_row(task, by_id, unreadable) for task in wanted}
    shown = _fit_page(wanted, rows)
    if behind is not None or len(shown) < len(wanted):
        wanted.sort(key=_page_order)
        shown = _fit_page(wanted, rows)
    text = tasks_text.format_listing(shown, among=by_id, unreadable=unreadable)
    left = wanted[len(shown) :]
    turn = _cursor(shown[-1]) if left else None
    hints = (
        [f"{hidden_line(left)}: {_format_given_call('TaskList', status=status, owner=owner, after=turn)}"]
        if turn
        else []
    )
    damaged = [f"#{task_id} cannot be read; a person can run `taskyard doctor`." for task_id in sorted(unreadable)]
    data = {
        "tasks": [rows[task.id] for task in shown],
        "total": len(wanted),
        "left_out": len(left),
        "after": turn,
    }
    return ToolAnswer(text, data, (*hints, *damaged[:5]))


def _page_order(task: Task) -> tuple[bool, int]:
    """Sort key of a task across all pages."""
    return task.is_done, int(task.id)


def _cursor(task: Task) -> str:
    """Return the cursor after a task; valid even if its status changes later."""
    return f"{_COMPLETED_PREFIX}{task.id}" if task.is_done else task.id


def _parse_cursor(after: str, status: str | None) -> tuple[bool, int]:
    number = after.removeprefix(_COMPLETED_PREFIX)
    if not is_id(number):
        raise BadValue("after", after, "what the page before gave as `after`, or the id of a task")
    return (after != number if status is None else status == "completed"), int(number)


def _format_given_call(tool: str, **fields: object) -> str:
    """Format a call as a model writes it, with the given arguments only."""
    given = {name: value for name, value in fields.items() if value}
    return f"{tool} {json.dumps(given, ensure_ascii=False)}"


def unreadable_in(listing: Listing) -> frozenset[str]:
    """Return the ids of unreadable files; a task blocked by one of them stays blocked."""
    return frozenset(item.file.removesuffix(".json") for item in listing.damaged)


def jobs_page(jobs: Iterable[Job], *, ended: bool, last: Job | None) -> ToolAnswer:
    """Return a page of jobs, oldest first, after the `last` of the previous page, which may have ended by now."""
    wanted = [job for job in jobs if last is None or (job.start_time, job.id) > (last.start_time, last.id)]
    rows = {job.id: _job_row(job) for job in wanted}
    shown = _fit_page(wanted, rows)
    lines = [f"{job.id} [{state_text(job)}] {job.description}" for job in shown]
    left = len(wanted) - len(shown)
    turn = shown[-1].id if left else None
    hints = (f"… +{left} more: {_format_given_call('ListJobs', all=ended, after=turn)}",) if turn else ()
    data = {
        "jobs": [rows[job.id] for job in shown],
        "total": len(wanted),
        "left_out": left,
        "after": turn,
    }
    return ToolAnswer("\n".join(lines) or "No jobs found", data, hints)


def _task_row(task: Task, by_id: Mapping[str, Task], unreadable: frozenset[str]) -> dict[str, object]:
    row: dict[str, object] = {"id": task.id, "status": task.status.value, "subject": task.subject}
    if task.owner:
        row["owner"] = task.owner
    if blockers := unfinished_blockers(task, by_id, unreadable):
        row["blocked_by"] = list(blockers)
    return row


def job_data(job: Job) -> dict[str, object]:
    """Return the fields that every answer about a job has."""
    facts: dict[str, object] = {
        "task_id": job.id,
        "task_type": job.type,
        "status": job.status.value,
        "description": job.description,
        "output_file": job.output_file or None,
    }
    if job.needs_input:
        facts["needs_input"] = True
    if (limit := job.rate_limited) is not None:
        facts["waiting"] = limit.state()
    if job.is_on_other_host:
        facts["host"] = job.host_name
    if job.is_disconnected:
        facts["disconnected"] = disconnect_reason(job)
    return facts


def _job_row(job: Job) -> dict[str, object]:
    row = job_data(job)
    if job.agent_id:
        row["agent"] = job.agent_id
    if job.end is not None and job.end.exit_code is not None:
        row["exitCode"] = job.end.exit_code
    return row


def _fit_page(items: Sequence[T], rows: Mapping[str, Mapping[str, object]], room: int = PAGE_CHARACTERS) -> list[T]:
    """Return the first items that fit into one page; always at least one."""
    shown: list[T] = []
    for item in items:
        room -= len(json.dumps(rows[item.id])) + 2
        if room < 0 and shown:
            break
        shown.append(item)
    return shown


def ended_answer(found: TaskOutput) -> ToolAnswer:
    """Answer with the result of an ended job, as the tool that started it reports it."""
    by_kind = {"local_agent": _agent_answer, "remote_agent": _remote_agent_answer, "local_workflow": _workflow_answer}
    return by_kind.get(found.job.type, _command_answer)(found)


def _command_answer(found: TaskOutput) -> ToolAnswer:
    """Answer with a command's output and how it ended."""
    job = found.job
    said = [found.output] if found.output.strip() else []
    code = job.end.exit_code if job.end is not None else None
    is_error = job.status.value != "completed"
    if is_error:
        said.append(_end_text(job))
    elif not said:
        said.append("(no output)")
    data = job_data(job) | {"output": found.output, "was_truncated": found.was_truncated, "exitCode": code}
    return ToolAnswer("\n".join(said), data, is_error=is_error)


def _agent_answer(found: TaskOutput) -> ToolAnswer:
    """Answer with an agent's result, usage and transcript file."""
    job = found.job
    is_error = job.status.value != "completed"
    said = [found.output] if found.output.strip() else []
    if is_error:
        said.append(f"The agent did not finish: {_end_text(job)}")
    elif not said:
        said.append("(the agent gave no answer)")
    data = job_data(job) | agent_data(job) | {"result": found.output, "was_truncated": found.was_truncated}
    if is_error:
        data["error_text"] = _end_text(job)
    return ToolAnswer("\n".join(said), data, (_usage_text(job),), is_error=is_error)


def _remote_agent_answer(found: TaskOutput) -> ToolAnswer:
    """Answer with a remote agent's result; if there is none, its output."""
    answer = found.job.facts.get("result")
    return _agent_answer(found._replace(output=answer, was_truncated=False) if isinstance(answer, str) else found)


def agent_data(job: Job) -> dict[str, object]:
    """Return the fields that only agents have."""
    data: dict[str, object] = {}
    for key in ("name", "summary"):
        if isinstance(text := job.facts.get(key), str):
            data[key] = text
    for key in ("usage", "worktree"):
        if (value := as_object(job.facts.get(key))) is not None:
            data[key] = value
    if (cost := cost_usd(job)) is not None:
        data["cost_usd"] = cost
    return data


def _usage_text(job: Job) -> str:
    """Format an agent's usage in the wording that models know."""
    usage = as_object(job.facts.get("usage")) or {}
    counts = [f"{name}: {usage[name]}" for name in ("total_tokens", "tool_uses", "duration_ms") if name in usage]
    cost = cost_usd(job)
    lines = [*counts, *([] if cost is None else [f"cost_usd: {cost:.4f}"])]
    used = "\n".join(lines)
    return "\n".join(
        [f"agentId: {job.id}", f"transcript: {job.output_file}", *_worktree_lines(job), f"<usage>{used}</usage>"]
    )


def _worktree_lines(job: Job) -> list[str]:
    """Return where its work is, if it had a worktree."""
    tree = as_object(job.facts.get("worktree"))
    if tree is None:
        return []
    if "path" not in tree:
        return ["worktree: removed, as it left no work there"]
    return [f"worktree: {tree.get('path')} (branch {tree.get('branch')}), kept: {tree.get('kept')}"]


def _workflow_answer(found: TaskOutput) -> ToolAnswer:
    """Answer with the result of each step."""
    job = found.job
    is_error = job.status.value != "completed"
    steps = [step for raw in as_list(job.facts.get("steps")) or [] if (step := as_object(raw)) is not None]
    lines = [_step_line(step) for step in steps]
    if is_error:
        lines.append(f"The workflow did not finish: {_end_text(job)}")
        lines.append(f'Workflow {{"resume_from": "{job.facts.get("run") or job.id}"}} goes on with it.')
    data = job_data(job) | workflow_data(job) | {"steps": steps}
    return ToolAnswer("\n".join(lines) or found.output, data, is_error=is_error)


def workflow_data(job: Job) -> dict[str, object]:
    """Return the fields that only workflows have."""
    run = job.facts.get("run")
    return {"run": run if isinstance(run, str) else job.id}


def _step_line(step: dict[str, object]) -> str:
    where = f" ({step['job']})" if step.get("job") else ""
    why = f": {step['why']}" if step.get("why") else ""
    return f"{step.get('id')} [{step.get('status')}]{where}{why}"


def _end_text(job: Job) -> str:
    """Describe how a job that did not complete ended."""
    end = job.end
    if end is None:
        return f"Status: {job.status.value}"
    if end.cause == "exited":
        return f"Exit code {end.exit_code}"
    if end.cause == "timeout":
        return "It was ended after reaching its time limit."
    if end.cause == "signal":
        return f"Killed by signal {end.signal}"
    if end.cause == "error" and end.error:
        return end.error
    return f"{end.cause}{': ' + end.error if end.error else ''}"
