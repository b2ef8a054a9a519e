"""
Events gathered into notices: at most one each two seconds and 4 kB, and a count of what did not fit. Pure.

The first of a burst are told, since they say what happened; the rest is counted, and all of it is in the output.
"""

from __future__ import annotations

#: Seconds between two notices, however much happens.
LEAST = 2.0

#: Bytes of the text of one notice, as a model gets it.
MOST = 4096

#: Seconds in which what belongs to one burst comes together.
_GATHER = 0.2

#: Characters of one line; a model that wants more reads the output.
_LONGEST_LINE = 1_000

#: Bytes kept free: for what the monitor itself has to say, and for the count.
_FOR_NOTES, _FOR_COUNT = 700, 80


class Batch:
    """What is to be told next."""

    def __init__(self, every: float = LEAST) -> None:
        self._every = max(every, LEAST)
        self._lines: list[str] = []
        self._notes: list[str] = []
        self._room = MOST - _FOR_NOTES - _FOR_COUNT
        self._held = 0
        self._last = float("-inf")
        self.due: float | None = None  #: when it may be told; None: there is nothing

    @property
    def is_full(self) -> bool:
        """Whether nothing more fits, so that events need only be counted."""
        return self._room <= 0

    def add(self, line: str, now: float) -> None:
        """An event; of a long one, the beginning."""
        text = _cut(line, _LONGEST_LINE)
        size = weight(text) + 1
        if self.is_full or size > self._room:
            self._room = 0  # what comes later must not be told in the place of what was left out
            self._held += 1
        else:
            self._lines.append(text)
            self._room -= size
        self._is_due(now)

    def count(self, events: int, now: float) -> None:
        """Events that are not told one by one."""
        if events:
            self._held += events
            self._is_due(now)

    def note(self, text: str, now: float) -> None:
        """Something the monitor itself says: the last of it always fits."""
        self._notes.append(_cut(text, 200))
        while len(self._notes) > 1 and sum(weight(each) + 1 for each in self._notes) > _FOR_NOTES:
            del self._notes[0]
        self._is_due(now)

    def take(self, now: float) -> tuple[str, int]:
        """What is told now, and of how many events beyond what it shows."""
        held = self._held
        more = [f"… and {held:,} more {'line' if held == 1 else 'lines'} held back"] if held else []
        text = "\n".join([*self._lines, *more, *self._notes])
        self._lines, self._notes, self._held = [], [], 0
        self._room, self._last, self.due = MOST - _FOR_NOTES - _FOR_COUNT, now, None
        return text, held

    def size(self) -> int:
        """How many events wait."""
        return len(self._lines) + self._held

    def soonest(self, now: float) -> float:
        """When the last notice may be told, if nothing more will come."""
        return max(now, self._last + LEAST)

    def _is_due(self, now: float) -> None:
        if self.due is None:
            self.due = max(now + _GATHER, self._last + self._every)


def weight(text: str) -> int:
    """Bytes of a text in a notice, where signs of markup are written out."""
    return len(text.encode("utf-8", "replace")) + 4 * sum(map(text.count, "<>&"))


def _cut(text: str, most: int) -> str:
    """The beginning of a text, and how much follows."""
    return text if len(text) <= most else f"{text[:most]}… (+{len(text) - most:,} characters)"
