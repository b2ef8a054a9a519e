"""A stream of bytes as lines of text, with a bound on what is kept of a line that does not end."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

#: Bytes of a line that are looked at.
LONGEST = 8192


class Lines:
    """What came of a stream so far."""

    def __init__(self) -> None:
        self._start = b""  # of the line that has not ended

    def fed(self, data: bytes) -> Iterator[bytes]:
        """The lines that end in what came, each with no more than its beginning."""
        *ended, rest = data.split(b"\n")
        for line in ended:
            yield (self._start + line[: LONGEST - len(self._start)]) if self._start else line[:LONGEST]
            self._start = b""
        self._start += rest[: LONGEST - len(self._start)]

    def rest(self) -> Iterator[bytes]:
        """The last line, if it ended without a sign of it."""
        if self._start:
            yield self._start
        self._start = b""


def shown(line: bytes) -> str:
    """A line as it can be told: on one line, without codes that act on a terminal."""
    text = line.decode("utf-8", "replace")
    if text.isprintable():
        return text
    from taskyard.commands import plain_text
    from taskyard.harmless import safe

    return safe(plain_text(line)).strip()
