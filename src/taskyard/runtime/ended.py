"""
`jobs/ended.jsonl`: a line for each job whose folder `taskyard gc` took, so that any id ever issued is still known.

Lines are appended by one at a time, under the lock of gc, and never changed. A line begins with the id, which is how
one is found without reading JSON: `{"id":"b3k9x0q2m",…`.
"""

from __future__ import annotations

import json
import os
import stat

from taskyard.disk import files
from taskyard.plain_file import open_plain
from taskyard.runtime.records import end_from_json, end_to_json, job_from_json
from taskyard.shapes import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.runtime.model import End, Job

_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND

#: Searched at a time.
_CHUNK = 1 << 20

#: No line is longer: text of any length is cut, and says so by its last character; the longest else is left out.
_LONGEST_LINE = 1 << 14
_LONGEST_COMMAND = 1000
_LONGEST_TEXT = 200
_LONGEST_TYPE = 40

#: So many processes and jobs are named that it left behind.
_NAMED = 100

#: What stays of earlier attempts, and of how many.
_ATTEMPTS = 20
_OF_ATTEMPT = ("cause", "exitCode", "signal", "error", "at", "durationMs", "size")


def ended_path(home: str) -> str:
    """Where the index is."""
    return f"{home}/jobs/ended.jsonl"


def line_of(job: Job, end: End) -> dict[str, object]:
    """What stays known of a job: all but what only mattered while it lived. What says nothing is left out."""
    known: dict[str, object] = {
        "id": job.id,
        "type": _cut(job.type, _LONGEST_TYPE),
        "description": _cut(job.description),
        "command": _cut(job.command, _LONGEST_COMMAND),
        "status": end.status.value,
        "startTime": job.start_time,
        "endTime": end.at,
        "agentId": _cut(job.agent_id),
        "toolUseId": _cut(job.tool_use_id),
        "parent": _cut(job.parent),
        "project": _cut(job.project),
        "depth": job.depth,
        "onParentExit": _cut(job.on_parent_exit, _LONGEST_TYPE),
        "isBackgrounded": job.is_backgrounded,
        "attempt": job.attempt,
        "retries": job.retries,
        "earlier": [_attempt(one) for one in job.earlier[-_ATTEMPTS:]],
        "facts": job.facts,
        **_line_of_end(end),
    }
    return _fitted({name: value for name, value in known.items() if value not in ("", [], {})})


def _fitted(line: dict[str, object]) -> dict[str, object]:
    sizes = {name: len(json.dumps(value)) + len(name) + 6 for name, value in line.items()}
    while sum(sizes.values()) > _LONGEST_LINE:
        largest = max(sizes, key=sizes.__getitem__)
        del sizes[largest], line[largest]
    return line


def _line_of_end(end: End) -> dict[str, object]:
    cut = end._replace(
        cause=end.cause[:_LONGEST_TYPE],
        error=_cut(end.error),
        proof=end.proof[:_LONGEST_TYPE],
        survivors=end.survivors[:_NAMED],
        kept=tuple(one[:_LONGEST_TYPE] for one in end.kept[:_NAMED]),
        by=_cut(end.by),
        output_lost=_cut(end.output_lost),
    )
    gone = ("at", "base", "header", "head")  # the first is `endTime`, the others are about a file that is no more
    return {name: value for name, value in end_to_json(cut).items() if name not in gone}


def _attempt(one: Mapping[str, object]) -> dict[str, object]:
    kept = {name: one[name] for name in _OF_ATTEMPT if name in one}
    return {name: _cut(value, _LONGEST_TYPE) if isinstance(value, str) else value for name, value in kept.items()}


def _cut(text: str | None, longest: int = _LONGEST_TEXT) -> str:
    if text is None or len(text) <= longest:
        return text or ""
    return text[: longest - 1] + "…"


def remembered(home: str, job_id: str) -> Job | None:
    """A job that gc took, as far as it is known: what lines of earlier versions do not tell is unknown."""
    known = ended_index(home, job_id)
    end = None if known is None else end_from_json({**known, "at": known.get("endTime")})
    if known is None or end is None:
        return None
    job = job_from_json(known, status=end.status, end=end)
    return None if job is None else job._replace(notified=True)


def append(home: str, line: Mapping[str, object]) -> None:
    """Add a line. The caller holds the lock of gc.

    Raises:
        StorageError: the disk refused; what it took of the line is no line.
    """
    path = ended_path(home)
    data = json.dumps(line, separators=(",", ":")).encode() + b"\n"
    try:
        fd = open_plain(path, _APPEND)
        try:
            size = os.fstat(fd).st_size
            torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"  # by one who was killed over it
            files.write_all(fd, b"\n" + data if torn else data)
        finally:
            os.close(fd)
    except OSError as error:
        raise files.storage_error(path, error) from error


def ended_index(home: str, job_id: str) -> dict[str, object] | None:
    """What is known of a job that gc took; None if it took none of this id."""
    try:
        fd = open_plain(ended_path(home))
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        at = _find(fd, b'{"id":"%s"' % job_id.encode("ascii", "replace"))
        return None if at is None else _parsed(os.pread(fd, _LONGEST_LINE, at))
    finally:
        os.close(fd)


def _find(fd: int, start: bytes) -> int | None:
    """Where the line that begins with `start` is."""
    before, position = b"\n", 0  # the first line begins as if one had ended before it
    while chunk := os.pread(fd, _CHUNK, position):
        text = before + chunk
        if (at := text.find(b"\n" + start)) >= 0:
            return position - len(before) + at + 1
        position += len(chunk)
        before = text[-len(start) :]
    return None


def _parsed(data: bytes) -> dict[str, object] | None:
    try:
        return as_object(json.loads(data.partition(b"\n")[0]))
    except (ValueError, RecursionError):
        return None
