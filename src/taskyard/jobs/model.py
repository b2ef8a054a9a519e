"""Data model of background jobs: records, ends, ids, and their JSON forms.

On disk a job is its record (`job.json`, replaced by its supervisor) and its end (`end.json`, written once).
Keys there are those of Claude Code's records: `startTime`, `isBackgrounded`, … A record that cannot be
parsed is no job; a field of the wrong type reads as missing.

An id is a letter for the kind, then eight random characters. `job_json` is the snake_case form that every
command about jobs prints with `--json`. `task_started`, `task_progress` and `task_notification` build the
system messages that programs built on claude-agent-sdk parse: its parser requires the keys that are always
present, and accepts the optional ones.
"""

from __future__ import annotations

import os
from enum import StrEnum

from taskyard.core.values import NamedTuple, as_object, cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeGuard

    from taskyard.jobs.notice import Notice
    from taskyard.jobs.rate_limit import RateLimited


class JobStatus(StrEnum):
    """Status of a job; the last three are final."""

    PENDING = "pending"  #: waits for a slot, or for another job
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    KILLED = "killed"

    @property
    def is_final(self) -> bool:
        """Whether the status cannot change any more."""
        return self in _FINAL


_FINAL = frozenset({JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.KILLED})

#: Causes of a deliberate end; all others except a clean exit are failures.
_ON_PURPOSE = frozenset({"stopped", "timeout", "output_cap"})


class End(NamedTuple):
    """How a job ended, as reported by the kernel."""

    cause: str  #: exited, signal, oom, error, lost; stopped, timeout, output_cap
    exit_code: int | None = None
    signal: int | None = None
    error: str = ""  #: for cause `error` and `lost`: what happened, in words
    proof: str = ""  #: that no process of it is left: proved, partial (see `survivors`), best_effort; "": unknown
    survivors: tuple[int, ...] = ()  #: pids of processes that no signal could end
    leftovers: int = 0  #: number of processes the command had left behind, which were stopped
    kept: tuple[str, ...] = ()  #: child jobs that were meant to outlive it
    by: str = ""  #: who stopped it, or its leftovers
    at: int = 0  #: epoch ms; of a lost job, when that was detected; 0: unknown
    duration_ms: int | None = None  #: of the last attempt; None: unknown when it really ended
    paused_ms: int = 0
    size: int = 0  #: of the output, counted from its first byte ever
    base: int = 0  #: offset of the newest part, which was kept; 0: all of it was
    header: int = 0  #: bytes before that part in the file: the line that states what was left out
    head: int = 0  #: bytes before that line: the oldest part, which was kept too
    output_lost: str = ""  #: why output is missing, if it is

    @property
    def status(self) -> JobStatus:
        """The final status of this end."""
        if self.cause in _ON_PURPOSE:
            return JobStatus.KILLED
        return JobStatus.COMPLETED if self.cause == "exited" and self.exit_code == 0 else JobStatus.FAILED


class Job(NamedTuple):
    """One background job, as it is known now."""

    id: str
    type: str  #: the kind: local_bash, local_agent, …
    status: JobStatus
    description: str  #: one line for people
    command: str = ""  #: as a user would type it
    start_time: int = 0  #: epoch ms
    end_time: int | None = None
    total_paused_ms: int = 0
    output_file: str = ""
    notified: bool = False
    is_backgrounded: bool = True
    tool_use_id: str | None = None
    agent_id: str | None = None  #: its starter, which receives its notice
    parent: str | None = None  #: the job it was started inside
    depth: int = 0  #: number of jobs it is nested in
    task: str | None = None  #: the task it was started for: its list and id, such as release/7
    project: str = ""  #: name of the project's list where it was started; "": not recorded
    waits_for: str = ""  #: while pending: what for
    takes_input: bool = False  #: it has an input or a terminal that accepts input
    needs_input: bool = False
    is_paused: bool = False
    is_disconnected: bool = False  #: its work runs elsewhere, not reachable from here; why, and since when: facts
    left_running: bool = False  #: its command has exited, and processes it left behind keep running, as allowed
    pid: int | None = None  #: of the command
    attempt: int = 1
    retries: int = 0  #: how many times it may be retried
    earlier: tuple[Mapping[str, object], ...] = ()  #: how its earlier attempts ended, the latest ones
    grace: float = 3.0  #: seconds between SIGTERM and SIGKILL
    on_parent_exit: str = "keep"
    is_inside: bool = False  #: it runs in the program that started it
    host_name: str = ""  #: the host it runs on, if several share a database
    is_on_other_host: bool = False  #: it runs on another host than this: its files are not here
    is_dismissed: bool = False  #: the user has seen its end and hides it from every view
    end: End | None = None
    facts: Mapping[str, object] = {}  #: what its kind adds

    @property
    def is_final(self) -> bool:
        """Whether it has ended."""
        return self.status.is_final

    @property
    def rate_limited(self) -> RateLimited | None:
        """The rate limit that it waits for; None if it does not."""
        raw = self.facts.get("rateLimited")
        if raw is None or self.status.is_final:
            return None
        from taskyard.jobs.rate_limit import parse_rate_limit  # only agents need it

        return parse_rate_limit(raw)


_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
_LENGTH = 9

#: The largest multiple of 36 in a byte: bytes above would make some characters likelier.
_UNBIASED_LIMIT = 252


def new_job_id(letter: str) -> str:
    """Return a new id for a job of the kind with this letter."""
    found = ""
    while len(found) < _LENGTH - 1:
        found += "".join(_ALPHABET[byte % 36] for byte in os.urandom(_LENGTH) if byte < _UNBIASED_LIMIT)
    return letter + found[: _LENGTH - 1]


def is_job_id(text: object) -> TypeGuard[str]:
    """Return whether `text` can be a job id, and so is safe as a folder name."""
    return isinstance(text, str) and len(text) == _LENGTH and "a" <= text[0] <= "z" and not text.strip(_ALPHABET)


_JSON_KEYS = {
    "start_time": "startTime",
    "end_time": "endTime",
    "total_paused_ms": "totalPausedMs",
    "output_file": "outputFile",
    "is_backgrounded": "isBackgrounded",
    "tool_use_id": "toolUseId",
    "agent_id": "agentId",
    "waits_for": "waitsFor",
    "takes_input": "takesInput",
    "needs_input": "needsInput",
    "is_paused": "isPaused",
    "is_disconnected": "isDisconnected",
    "left_running": "leftRunning",
    "on_parent_exit": "onParentExit",
    "is_inside": "isInside",
    "is_dismissed": "isDismissed",
    "exit_code": "exitCode",
    "duration_ms": "durationMs",
    "paused_ms": "pausedMs",
    "output_lost": "outputLost",
}


#: Optional fields that are integers; the others whose default is None are text.
_INT_FIELDS = frozenset({"end_time", "pid", "exit_code", "signal", "duration_ms"})

#: Bound of all integers in records; larger ones would not even fit into a file's timestamp.
_MAX_INT = 1 << 53


#: Element types of lists in records, where not text.
_ELEMENTS: Mapping[str, type[object]] = {"survivors": int, "earlier": dict}


def end_to_json(end: End) -> dict[str, object]:
    """Return an end as stored in `end.json`, without empty values."""
    return {
        _JSON_KEYS.get(name, name): _as_list(value) if type(value) is tuple else value
        for name, value in zip(end._fields, end)
        if value not in (None, "", ())
    }


def end_from_json(raw: Mapping[str, object]) -> End | None:
    """Return the end in a record; None if there is none."""
    cause = raw.get("cause")
    if not isinstance(cause, str):
        return None
    values = _typed(raw, _END_FIELDS)
    return End(cause, **values)  # type: ignore[arg-type]  # each value has its default's type


def job_to_json(job: Job) -> dict[str, object]:
    """Return a job with its end, as read by `job_from_json`, without default values."""
    told = job._replace(host_name="", is_on_other_host=False)  # each reader determines these itself
    found: dict[str, object] = {
        _JSON_KEYS.get(name, name): _as_list(value) if type(value) is tuple else value
        for name, value in zip(told._fields, told)
        if name != "end" and (name not in Job._field_defaults or value != Job._field_defaults[name])
    }
    return found if job.end is None else {**found, "end": end_to_json(job.end)}


def job_from_json(raw: Mapping[str, object], *, status: JobStatus, end: End | None = None) -> Job | None:
    """Return the job in a record, with what else is known of it."""
    job_id, kind = raw.get("id"), raw.get("type")
    if not isinstance(job_id, str) or not isinstance(kind, str):
        return None
    values = _typed(raw, _JOB_FIELDS)
    description = raw.get("description")
    facts = as_object(raw.get("facts")) or {}
    values.update(end=end, facts=facts, end_time=(end.at or None) if end is not None else None)
    if end is not None:
        values.update(
            needs_input=False,
            is_paused=False,
            is_disconnected=False,
            left_running=False,
            waits_for="",
            total_paused_ms=end.paused_ms,
        )
    text = description if isinstance(description, str) else ""
    return Job(job_id, kind, status, text, **values)  # type: ignore[arg-type]  # each value has its default's type


def _typed(raw: Mapping[str, object], fields: Mapping[str, tuple[str, object]]) -> dict[str, object]:
    """Return the fields of a record that have the type of their default; for None, the declared type."""
    found: dict[str, object] = {}
    for key, value in raw.items():
        if key in fields and _is_in_range(value):
            name, default = fields[key]
            if isinstance(default, tuple):
                kind = _ELEMENTS.get(name, str)
                if isinstance(value, list):
                    found[name] = tuple(each for each in cast("list[object]", value) if type(each) is kind)
            elif default is None:
                if type(value) is (int if name in _INT_FIELDS else str):
                    found[name] = value
            elif type(value) is type(default):
                found[name] = value
    return found


def _is_in_range(value: object) -> bool:
    return type(value) is not int or abs(value) < _MAX_INT


def _by_key(defaults: Mapping[str, object]) -> dict[str, tuple[str, object]]:
    """Return the optional fields by their JSON names, each with its default."""
    return {_JSON_KEYS.get(name, name): (name, default) for name, default in defaults.items()}


_END_FIELDS, _JOB_FIELDS = _by_key(End._field_defaults), _by_key(Job._field_defaults)


def _as_list(value: object) -> list[object]:
    return list(cast("tuple[object, ...]", value))


def job_json(job: Job) -> dict[str, object]:
    """Return `job` with every field, absent ones as null; the same keys for every job, ended or not."""
    return {
        "id": job.id,
        "type": job.type,
        "status": job.status.value,
        "description": job.description,
        "command": job.command or None,
        "output": job.output_file or None,
        **_end_json(job.end),
        "started_at": job.start_time or None,
        "ended_at": job.end_time,
        "paused_ms": None if job.end is not None and not job.end.proof else job.total_paused_ms,
        "waits_for": job.waits_for or None,
        "rate_limited": _limit_json(job),
        "paused": job.is_paused,
        "disconnected": job.is_disconnected,
        "left_running": job.left_running,
        "host": job.host_name or None,
        "takes_input": job.takes_input,
        "needs_input": job.needs_input,
        "backgrounded": job.is_backgrounded,
        "notified": job.notified,
        "attempt": job.attempt,
        "retries": job.retries,
        "earlier": [_attempt_json(one) for one in job.earlier],
        "pid": job.pid,
        "agent": job.agent_id,
        "parent": job.parent,
        "depth": job.depth,
        "task": job.task,
        "project": job.project or None,
        "dismissed": job.is_dismissed,
        "on_parent_exit": job.on_parent_exit,
        "tool_use_id": job.tool_use_id,
        "cost_usd": cost_usd(job),
        "facts": dict(job.facts),
    }


def _end_json(end: End | None) -> dict[str, object]:
    """Return how it ended; all null while it has not, unknown values always null."""
    counted = end if end is not None and end.proof else None  # without a proof nothing was counted either
    return {
        "exit_code": end.exit_code if end else None,
        "signal": end.signal if end else None,
        "cause": end.cause if end else None,
        "error": (end.error or None) if end else None,
        "proof": counted.proof if counted else None,
        "survivors": list(counted.survivors) if counted else None,
        "leftovers": counted.leftovers if counted else None,
        "kept": list(counted.kept) if counted else None,
        "stopped_by": (end.by or None) if end else None,
        "duration_ms": end.duration_ms if end else None,
        "output_size": end.size if end else None,
        "output_lost": (end.output_lost or None) if end else None,
    }


def _limit_json(job: Job) -> dict[str, object] | None:
    """Return the rate limit that a job waits for, with the text shown to users."""
    if (limit := job.rate_limited) is None:
        return None
    return {
        "provider": limit.provider,
        "until": limit.until_ms,
        "reason": limit.reason or None,
        "is_estimate": limit.is_estimate,
        "shown": limit.state(),
    }


def _attempt_json(raw: object) -> dict[str, object]:
    """Return a failed attempt, from a record that may have any content."""
    found: Mapping[str, object] = as_object(raw) or {}
    return {
        "exit_code": found.get("exitCode"),
        "signal": found.get("signal"),
        "cause": found.get("cause"),
        "error": found.get("error"),
        "ended_at": found.get("at"),
        "duration_ms": found.get("durationMs"),
        "output_size": found.get("size"),
    }


def cost_usd(job: Job) -> float | None:
    """Return what a job has cost, if its kind reports the fact `costUsd`."""
    return parse_usd(job.facts.get("costUsd"))


def parse_usd(cost: object) -> float | None:
    """Return a reported amount; None if it is not valid."""
    if isinstance(cost, bool) or not isinstance(cost, (int, float)) or not 0 <= cost < float("inf"):
        return None
    return float(cost)


#: claude-agent-sdk's status of a killed job.
_STATUS = {"killed": "stopped"}


def task_started(job: Job, *, uuid: str, session_id: str) -> dict[str, object]:
    """Return the message that a job has started, for claude-agent-sdk."""
    told = {"description": job.description, "task_type": job.type}
    return system_message("task_started", job.id, job.tool_use_id, uuid=uuid, session_id=session_id, **told)


def task_progress(
    job: Job, *, uuid: str, session_id: str, usage: Mapping[str, int], last_tool_name: str | None = None
) -> dict[str, object]:
    """Return a progress message; `usage` has total_tokens, tool_uses and duration_ms."""
    last = {} if last_tool_name is None else {"last_tool_name": last_tool_name}
    described = {"description": job.description, "usage": dict(usage), **last}
    return system_message("task_progress", job.id, job.tool_use_id, uuid=uuid, session_id=session_id, **described)


def task_notification(notice: Notice, *, session_id: str) -> dict[str, object] | None:
    """Return the message that a job has ended; None for notices of a running one, as this message ends a job."""
    return None if notice.status is None else notification_message(notice.news, session_id=session_id)


def notification_message(news: Mapping[str, object], *, session_id: str | None = None) -> dict[str, object]:
    """Return the same from a notice's payload on disk; the session defaults to its recipient."""
    status, tool_use_id, usage = str(news.get("status")), news.get("toolUseId"), as_object(news.get("usage"))
    return system_message(
        "task_notification",
        str(news.get("taskId")),
        tool_use_id if isinstance(tool_use_id, str) else None,
        uuid=str(news.get("id")),
        session_id=str(news.get("recipient")) if session_id is None else session_id,
        status=_STATUS.get(status, status),
        output_file=str(news.get("outputFile")),
        summary=str(news.get("summary")),
        **({} if usage is None else {"usage": usage}),
    )


def system_message(
    subtype: str, task_id: str, tool_use_id: str | None, *, uuid: str, session_id: str, **more: object
) -> dict[str, object]:
    """Return a system message about a job, for claude-agent-sdk; `more` cannot override its identity."""
    head = {"type": "system", "subtype": subtype, "task_id": task_id}
    tool = {} if tool_use_id is None else {"tool_use_id": tool_use_id}
    return {**head, **tool, **more, **head, "uuid": uuid, "session_id": session_id}
