"""The lines of a client's requests, and which of them arrived before the server's last answer.

A request that arrives after an answer proves that the client has read the answer: what it delivered is then
acknowledged. A request that had arrived before proves nothing: the client sent several at once.
"""

from __future__ import annotations

import os
import select
import threading
from collections import deque

#: Bytes read at a time.
_CHUNK = 1 << 16

#: Most chunks that one call of `arrived` reads: a client that never stops sending delays no answer.
_MOST_CHUNKS = 16

#: Most requests whose line is remembered until they are handled; those that the SDK refuses itself never are.
_MOST_REQUESTS = 1_000


class InputLines:
    """Reads a descriptor line by line, in a thread, while others query how many lines have arrived."""

    def __init__(self, first: bytes, descriptor: int) -> None:
        """Set up. `first`: bytes that were read from the descriptor before."""
        self._descriptor = descriptor
        self._lock = threading.Lock()  # taken only for reads that do not block
        self._lines: deque[bytes] = deque()
        self._rest = b""
        self._is_over = False
        self._taken = 0
        self._add(first)

    def readline(self) -> str:
        """Wait for the next line, with its line break; "" at end of file."""
        while True:
            with self._lock:
                if self._lines:
                    self._taken += 1
                    return self._lines.popleft().decode("utf-8", "replace")
                if self._is_over:
                    rest, self._rest = self._rest, b""
                    return rest.decode("utf-8", "replace")
            _is_readable(self._descriptor, None)
            with self._lock:
                self._read()

    def arrived(self) -> int:
        """Return how many lines the client has sent so far."""
        with self._lock:
            for _ in range(_MOST_CHUNKS):
                if not self._read():
                    break
            return self._taken + len(self._lines)

    def _read(self) -> bool:
        """Read available bytes without waiting; return whether there were any."""
        if self._is_over or not _is_readable(self._descriptor, 0):
            return False
        chunk = os.read(self._descriptor, _CHUNK)
        self._is_over = not chunk
        self._add(chunk)
        return bool(chunk)

    def _add(self, chunk: bytes) -> None:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        self._lines.extend(line + b"\n" for line in lines)


def _is_readable(descriptor: int, timeout: float | None) -> bool:
    poll = select.poll()  # one for each call: two threads must not share one
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(timeout))


class Arrivals:
    """Detects which requests were sent after the server's last answer."""

    def __init__(self, lines: InputLines) -> None:
        self._lines = lines
        self._received = 0
        self._before_answer = 0  # lines that had arrived when the last answer was sent
        self._line_of: dict[str | int, int] = {}

    def received(self, request_id: str | int | None) -> None:
        """Count a line that was passed on: a request with this id, or something else."""
        self._received += 1
        if request_id is not None:
            self._line_of[request_id] = self._received
            if len(self._line_of) > _MOST_REQUESTS:
                del self._line_of[next(iter(self._line_of))]

    def answering(self) -> None:
        """Record what has arrived before an answer is sent."""
        self._before_answer = self._lines.arrived()

    def follows_answers(self, request_id: str | int | None) -> bool:
        """Return whether a request arrived after the last answer; query each only once."""
        line = None if request_id is None else self._line_of.pop(request_id, None)
        return line is None or line > self._before_answer
