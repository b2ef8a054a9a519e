"""A job as plain JSON values in snake_case: what every command about jobs prints with `--json`."""

from __future__ import annotations

from taskyard.shapes import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.runtime.model import End, Job


def job_json(job: Job) -> dict[str, object]:
    """`job` with every field, absent ones as null; the same keys for every job, over or not."""
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
    """How it ended; all of it null while it has not, and what is not known of it always."""
    counted = end if end is not None and end.proof else None  # who says nothing of a proof counted nobody either
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
    """The rate limit that a job waits for, with the words that people see."""
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
    """An attempt that failed, from a record that may be anything."""
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
    """What a job has cost, where its kind says so: the fact `costUsd`."""
    return dollars(job.facts.get("costUsd"))


def dollars(cost: object) -> float | None:
    """An amount that was told by somebody; None if it is none."""
    if isinstance(cost, bool) or not isinstance(cost, (int, float)) or not 0 <= cost < float("inf"):
        return None
    return float(cost)
