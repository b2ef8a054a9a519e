"""Notes about what went wrong where nobody waits for an answer: `<home>/hooks.log`, `<home>/sinks.log`."""

from __future__ import annotations

import json
import os

from taskyard.clock import iso, now_ms
from taskyard.disk import files
from taskyard.plain_file import open_plain

#: Enough to see what goes wrong, however long nobody looks.
_MOST = 256 * 1024


def note(home: str, log: str, text: str) -> None:
    """Keep a line; the last thing that may fail, so it fails silently."""
    try:
        fd = open_plain(f"{home}/{log}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            if os.fstat(fd).st_size > _MOST:
                os.ftruncate(fd, 0)
            files.write_all(fd, json.dumps({"at": iso(now_ms()), "what": text}).encode() + b"\n")
        finally:
            os.close(fd)
    except OSError:
        pass
