"""
Jobs and ends as JSON, and back from what may be anything.

A record that cannot be read is no job; a field of the wrong type reads as if it were not there.
"""

from __future__ import annotations

from taskyard.runtime.model import End, Job, JobStatus
from taskyard.shapes import as_object
from taskyard.typed import cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_NAMES = {
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


#: Fields that are whole numbers where they have a value; the others whose default is None are text.
_NUMBERS = frozenset({"end_time", "pid", "exit_code", "signal", "duration_ms"})

#: No number of ours is larger: what is would not even fit into the time of a file.
_LARGEST = 1 << 53


#: What lists in records hold, where that is not text.
_ELEMENTS: Mapping[str, type[object]] = {"survivors": int, "earlier": dict}


def end_to_json(end: End) -> dict[str, object]:
    """An end as `end.json` holds it; what says nothing is left out."""
    return {
        _NAMES.get(name, name): _plain(value) if type(value) is tuple else value
        for name, value in zip(end._fields, end)
        if value not in (None, "", ())
    }


def end_from_json(raw: Mapping[str, object]) -> End | None:
    """The end in a record; None if there is none."""
    cause = raw.get("cause")
    if not isinstance(cause, str):
        return None
    values = _typed(raw, _OF_END)
    return End(cause, **values)  # type: ignore[arg-type]  # each value has its default's type


def job_to_json(job: Job) -> dict[str, object]:
    """A job with its end, such that `job_from_json` makes the same of it; what says nothing is left out."""
    told = job._replace(host_name="", is_far=False)  # which each reader knows for itself
    found: dict[str, object] = {
        _NAMES.get(name, name): _plain(value) if type(value) is tuple else value
        for name, value in zip(told._fields, told)
        if name != "end" and (name not in Job._field_defaults or value != Job._field_defaults[name])
    }
    return found if job.end is None else {**found, "end": end_to_json(job.end)}


def job_from_json(raw: Mapping[str, object], *, status: JobStatus, end: End | None = None) -> Job | None:
    """The job in a record, with what is known of it beyond that."""
    job_id, kind = raw.get("id"), raw.get("type")
    if not isinstance(job_id, str) or not isinstance(kind, str):
        return None
    values = _typed(raw, _OF_JOB)
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
    """Those fields of a record that have the type of their default; where that is None, of what it stands for."""
    found: dict[str, object] = {}
    for key, value in raw.items():
        if key in fields and _is_fit(value):
            name, default = fields[key]
            if isinstance(default, tuple):
                kind = _ELEMENTS.get(name, str)
                if isinstance(value, list):
                    found[name] = tuple(each for each in cast("list[object]", value) if type(each) is kind)
            elif default is None:
                if type(value) is (int if name in _NUMBERS else str):
                    found[name] = value
            elif type(value) is type(default):
                found[name] = value
    return found


def _is_fit(value: object) -> bool:
    return type(value) is not int or abs(value) < _LARGEST


def _by_key(defaults: Mapping[str, object]) -> dict[str, tuple[str, object]]:
    """The fields that may be left out, by their names in JSON, each with its default."""
    return {_NAMES.get(name, name): (name, default) for name, default in defaults.items()}


_OF_END, _OF_JOB = _by_key(End._field_defaults), _by_key(Job._field_defaults)


def _plain(value: object) -> list[object]:
    return list(cast("tuple[object, ...]", value))
