r"""
Wishes that reach a keeper: one JSON object a line, through the `control` pipe.

    {"do": "stop", "by": "ada", "grace": 3}     {"do": "pause"}    {"do": "resume"}
    {"do": "answer", "text": "y\n"}            {"do": "close_input"}
    {"do": "size", "rows": 24, "columns": 80}   {"do": "background", "keep": false}

At most 4,096 bytes each, which the kernel writes in one piece. With a `token`, what came of it is in the job's
record under `answers`. Whatever cannot be read is passed over.
"""

from __future__ import annotations

import json
import os

from taskyard.shapes import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

#: What the kernel writes in one piece.
LONGEST = 4096

#: So much of a line without an end is garbage.
_MOST = 16 * LONGEST


#: What the kernel keeps of a process's name, in bytes.
_LONGEST_NAME = 15


def name_of_keeper(job_id: str) -> str:
    """What the keeper of a job is called in `ps`."""
    return f"taskyard:{job_id}"[:_LONGEST_NAME]


class Wishes:
    """What comes out of the pipe, line by line."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._rest = b""

    def read(self) -> Iterator[dict[str, object]]:
        """Everything that waits."""
        try:
            while data := os.read(self._fd, 65536):
                self._rest += data
        except BlockingIOError:
            pass
        *lines, self._rest = self._rest.split(b"\n")
        if len(self._rest) > _MOST:
            self._rest = b""
        for line in lines:
            try:
                wish = as_object(json.loads(line)) if line else None
            except (ValueError, RecursionError):
                continue
            if wish is not None:
                yield wish
