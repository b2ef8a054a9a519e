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
from taskyard.shapes import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.runtime.model import End, Job

_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK

#: Searched at a time.
_CHUNK = 1 << 20

#: No line is longer: what is of any length is cut to fit.
_LONGEST_LINE = 4096
_LONGEST_DESCRIPTION = 200
_LONGEST_TYPE = 40


def ended_path(home: str) -> str:
    """Where the index is."""
    return f"{home}/jobs/ended.jsonl"


def line_of(job: Job, end: End) -> dict[str, object]:
    """What stays known of a job."""
    return {
        "id": job.id,
        "type": job.type[:_LONGEST_TYPE],
        "description": job.description[:_LONGEST_DESCRIPTION],
        "status": end.status.value,
        "cause": end.cause[:_LONGEST_TYPE],
        "exitCode": end.exit_code,
        "signal": end.signal,
        "startTime": job.start_time,
        "endTime": end.at,
        "size": end.size,
    }


def append(home: str, line: Mapping[str, object]) -> None:
    """Add a line. The caller holds the lock of gc.

    Raises:
        StorageError: the disk refused; what it took of the line is no line.
    """
    path = ended_path(home)
    data = json.dumps(line, separators=(",", ":")).encode() + b"\n"
    try:
        fd = os.open(path, _APPEND, 0o600)
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
        fd = os.open(ended_path(home), _READ)
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
