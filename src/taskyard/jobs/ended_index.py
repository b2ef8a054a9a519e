"""
Index of removed jobs, `jobs/ended.jsonl`: a line for each job that `taskyard gc` removed.

It keeps any id ever issued known. Lines are appended by one process at a time, under the lock of gc, and
never changed. A line begins with the id, so that it is found without parsing JSON: `{"id":"b3k9x0q2m",…`.
"""

from __future__ import annotations

import json
import os
import stat

from taskyard.core import files
from taskyard.core.files import open_plain
from taskyard.core.values import as_object
from taskyard.jobs.model import end_from_json, end_to_json, job_from_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.jobs.model import End, Job

_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND

#: Bytes searched at a time.
_CHUNK = 1 << 20

#: Longest line in bytes: text is cut, marked by its last character; the largest other fields are left out.
_MAX_LINE = 1 << 14
_MAX_COMMAND = 1000
_MAX_TEXT = 200
_MAX_TYPE = 40

#: Most leftover processes and jobs that are named.
_MAX_NAMED = 100

#: Number and fields of earlier attempts that are kept.
_MAX_ATTEMPTS = 20
_ATTEMPT_KEYS = ("cause", "exitCode", "signal", "error", "at", "durationMs", "size")


def index_path(home: str) -> str:
    """Return the path of the index."""
    return f"{home}/jobs/ended.jsonl"


def index_entry(job: Job, end: End) -> dict[str, object]:
    """Return the line of a job: all but what only mattered while it ran, without empty values."""
    known: dict[str, object] = {
        "id": job.id,
        "type": _cut(job.type, _MAX_TYPE),
        "description": _cut(job.description),
        "command": _cut(job.command, _MAX_COMMAND),
        "status": end.status.value,
        "startTime": job.start_time,
        "endTime": end.at,
        "agentId": _cut(job.agent_id),
        "toolUseId": _cut(job.tool_use_id),
        "parent": _cut(job.parent),
        "project": _cut(job.project),
        "depth": job.depth,
        "onParentExit": _cut(job.on_parent_exit, _MAX_TYPE),
        "isBackgrounded": job.is_backgrounded,
        "attempt": job.attempt,
        "retries": job.retries,
        "earlier": [_attempt_fields(one) for one in job.earlier[-_MAX_ATTEMPTS:]],
        "facts": job.facts,
        **_end_fields(end),
    }
    return _fit_entry({name: value for name, value in known.items() if value not in ("", [], {})})


def _fit_entry(line: dict[str, object]) -> dict[str, object]:
    sizes = {name: len(json.dumps(value)) + len(name) + 6 for name, value in line.items()}
    while sum(sizes.values()) > _MAX_LINE:
        largest = max(sizes, key=sizes.__getitem__)
        del sizes[largest], line[largest]
    return line


def _end_fields(end: End) -> dict[str, object]:
    cut = end._replace(
        cause=end.cause[:_MAX_TYPE],
        error=_cut(end.error),
        proof=end.proof[:_MAX_TYPE],
        survivors=end.survivors[:_MAX_NAMED],
        kept=tuple(one[:_MAX_TYPE] for one in end.kept[:_MAX_NAMED]),
        by=_cut(end.by),
        output_lost=_cut(end.output_lost),
    )
    gone = ("at", "base", "header", "head")  # `at` is `endTime`; the others are about the removed output file
    return {name: value for name, value in end_to_json(cut).items() if name not in gone}


def _attempt_fields(one: Mapping[str, object]) -> dict[str, object]:
    kept = {name: one[name] for name in _ATTEMPT_KEYS if name in one}
    return {name: _cut(value, _MAX_TYPE) if isinstance(value, str) else value for name, value in kept.items()}


def _cut(text: str | None, longest: int = _MAX_TEXT) -> str:
    if text is None or len(text) <= longest:
        return text or ""
    return text[: longest - 1] + "…"


def load_ended(home: str, job_id: str) -> Job | None:
    """Return a job that gc removed; fields missing in lines of earlier versions are unknown."""
    known = find_entry(home, job_id)
    end = None if known is None else end_from_json({**known, "at": known.get("endTime")})
    if known is None or end is None:
        return None
    job = job_from_json(known, status=end.status, end=end)
    return None if job is None else job._replace(notified=True)


def append(home: str, line: Mapping[str, object]) -> None:
    """Append a line. The caller holds the lock of gc.

    Raises:
        StorageError: a disk error; what was written of the line is no line.
    """
    path = index_path(home)
    data = json.dumps(line, separators=(",", ":")).encode() + b"\n"
    try:
        fd = open_plain(path, _APPEND)
        try:
            size = os.fstat(fd).st_size
            torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"  # by a process that was killed meanwhile
            files.write_all(fd, b"\n" + data if torn else data)
        finally:
            os.close(fd)
    except OSError as error:
        raise files.storage_error(path, error) from error


def find_entry(home: str, job_id: str) -> dict[str, object] | None:
    """Return the line of a job that gc removed; None if there is none."""
    try:
        fd = open_plain(index_path(home))
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        at = _find_line(fd, b'{"id":"%s"' % job_id.encode("ascii", "replace"))
        return None if at is None else _parse_line(os.pread(fd, _MAX_LINE, at))
    finally:
        os.close(fd)


def _find_line(fd: int, start: bytes) -> int | None:
    """Return the position of the line that begins with `start`."""
    before, position = b"\n", 0  # the first line has no newline before it
    while chunk := os.pread(fd, _CHUNK, position):
        text = before + chunk
        if (at := text.find(b"\n" + start)) >= 0:
            return position - len(before) + at + 1
        position += len(chunk)
        before = text[-len(start) :]
    return None


def _parse_line(data: bytes) -> dict[str, object] | None:
    try:
        return as_object(json.loads(data.partition(b"\n")[0]))
    except (ValueError, RecursionError):
        return None
