"""The data that tools answer with, described for clients; `view.records` and `view.job_records` make it."""

from __future__ import annotations

from typing import Any

_TEXT: dict[str, Any] = {"type": "string"}
_MAYBE_TEXT: dict[str, Any] = {"type": ["string", "null"]}
_MAYBE_NUMBER: dict[str, Any] = {"type": ["integer", "null"]}
_IDS: dict[str, Any] = {"type": "array", "items": _TEXT}

_TASK: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": _TEXT,
        "subject": _TEXT,
        "description": _TEXT,
        "active_form": _MAYBE_TEXT,
        "owner": _MAYBE_TEXT,
        "status": {"enum": ["pending", "in_progress", "completed"]},
        "blocks": _IDS,
        "blocked_by": _IDS,
        "metadata": {"type": "object"},
        "created_at": _MAYBE_NUMBER,
        "updated_at": _MAYBE_NUMBER,
        "lease": {"type": ["object", "null"]},
        "ready": _IDS,
        "notes": _IDS,
    },
}

ONE_TASK: dict[str, Any] = {"task": _TASK}
UPDATED_TASK: dict[str, Any] = {**ONE_TASK, "changed": _IDS, "ready": _IDS}

_COUNTS: dict[str, Any] = {
    "total": {"type": "integer", "description": "How many there are of those asked for."},
    "left_out": {"type": "integer", "description": "How many of them are not on this page."},
    "after": {**_MAYBE_TEXT, "description": "What to ask for next, if there is more."},
}

TASKS: dict[str, Any] = {
    "tasks": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "id": _TEXT,
                "status": _TEXT,
                "subject": _TEXT,
                "owner": _TEXT,
                "blocked_by": {**_IDS, "description": "What it still waits for."},
            },
        },
    },
    **_COUNTS,
}

JOBS: dict[str, Any] = {"jobs": {"type": "array", "items": {"type": "object"}}, **_COUNTS}

#: As `TaskOutput` names things, here and everywhere.
JOB: dict[str, Any] = {
    "task_id": _TEXT,
    "task_type": _TEXT,
    "status": {"enum": ["pending", "running", "completed", "failed", "killed"]},
    "description": _TEXT,
    "output_file": _MAYBE_TEXT,
    "output": {**_TEXT, "description": "What it printed; of much, the end."},
    "was_truncated": {"type": "boolean"},
    "exitCode": {**_MAYBE_NUMBER, "description": "null until the end."},
    "signal": _MAYBE_NUMBER,
    "cause": _MAYBE_TEXT,
    "needs_input": {"type": "boolean"},
    "waiting": {**_TEXT, "description": "What it waits for: a rate limit, and until when. It goes on by itself."},
    "host": {**_TEXT, "description": "The machine it runs on, if that is another: its output file is there."},
    "disconnected": {**_TEXT, "description": "Its work goes on elsewhere, out of sight: since when, and why."},
    "prompt": _TEXT,
    "result": _TEXT,
    "error_text": _TEXT,
    "retrieval_status": {"enum": ["success", "timeout", "not_ready"]},
}

#: What an agent took: total_tokens, tool_uses, duration_ms.
_USAGE: dict[str, Any] = {"type": "object", "additionalProperties": {"type": "integer"}}

AGENT: dict[str, Any] = {
    name: JOB[name]
    for name in (
        "task_id",
        "task_type",
        "status",
        "description",
        "output_file",
        "was_truncated",
        "needs_input",
        "waiting",
        "disconnected",
    )
} | {
    "name": {**_TEXT, "description": "By which SendMessage reaches it, beside its id."},
    "summary": {**_TEXT, "description": "What it is doing, in a sentence or two."},
    "result": {**_TEXT, "description": "Its final answer; of a long one, the end."},
    "error_text": {**_TEXT, "description": "Why it did not finish."},
    "usage": _USAGE,
    "cost_usd": {"type": "number"},
    "worktree": {"type": "object", "description": "path and branch, what it began at, and why it was kept."},
}

#: Of any kind; what a kind does not have is not there.
OUTPUT: dict[str, Any] = {**AGENT, **JOB}

WORKFLOW: dict[str, Any] = {
    name: JOB[name] for name in ("task_id", "task_type", "status", "description", "output_file", "needs_input")
} | {
    "run": {**_TEXT, "description": "What resume_from takes."},
    "steps": {"type": "array", "items": {"type": "object"}, "description": "How each step went: id, status, job, why."},
}

STOPPED: dict[str, Any] = {
    "message": _TEXT,
    "task_id": _TEXT,
    "task_type": _TEXT,
    "command": _TEXT,
    "outcome": {"enum": ["stopped", "already_ended", "partial", "best_effort", "timeout"]},
    "survivors": {"type": "array", "items": {"type": "integer"}},
    "kept": _IDS,
}

TEAM: dict[str, Any] = {"team_name": _TEXT, "lead": _TEXT, "list": _TEXT}
SENT: dict[str, Any] = {"sent": _IDS, "ids": _IDS}
TYPED: dict[str, Any] = {"task_id": _TEXT}
MAIL: dict[str, Any] = {"messages": {"type": "array", "items": {"type": "object"}}, "left": {"type": "integer"}}
