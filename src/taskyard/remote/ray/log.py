"""
What a job on Ray said, cut out of its log. Pure: bytes in, text and a cursor out.

Ray gives a log from its beginning each time. A cursor is the count of bytes that were told, and a checksum of the last
of them, by which a log that is no longer the same one is noticed. Two lines in it are Ray's own, not the program's: one
at the beginning, and one that says what is run, which may stand in the middle of a line of the program's, as it is
written after the program was started. Both are left out.
"""

from __future__ import annotations

import re
from zlib import crc32

from taskyard.errors import BadValue
from taskyard.typed import NamedTuple

#: Bytes that one poll tells at most; the rest comes with the next.
MOST_AT_ONCE = 4 * 1024 * 1024

#: Bytes of a log that are followed. A log comes whole each time: of a longer one only the last lines are told.
MOST_FOLLOWED = 32 * 1024 * 1024

#: Bytes and lines of the end of a log that is longer than that.
LAST_BYTES = 256 * 1024
LAST_LINES = 1000

#: Bytes before a cursor that its checksum covers: a few lines, so that no two logs agree by accident.
_MARKED = 256

_SETTING_UP = re.compile(rb"[^\n]{1,100} -- Runtime env is setting up\.\n")

_CURSOR = re.compile(r"([0-9]{1,18})-([0-9a-f]{8})(\+end)?")

_BEGUN_ANEW = "[taskyard: the log on the cluster is another one now; it follows from its beginning]\n"
_TOO_LONG = "[taskyard: the log is too long to be followed; its last lines, all of it is told by `ray job logs {}`]\n"


class Cursor(NamedTuple):
    """How much of a log was told."""

    offset: int = 0  #: in bytes
    mark: int = 0  #: of the last bytes before
    is_end: bool = False  #: the last lines were told, of a log that is too long

    def __str__(self) -> str:
        """As `read_cursor` takes it."""
        return f"{self.offset}-{self.mark:08x}{'+end' if self.is_end else ''}"

    @property
    def is_too_far(self) -> bool:
        """Whether the log is followed no further."""
        return self.offset >= MOST_FOLLOWED


class Told(NamedTuple):
    """What a reading gave."""

    text: str
    cursor: Cursor
    is_all: bool = True  #: nothing more is there now


def read_cursor(text: str) -> Cursor:
    """The cursor that was written so; "" is the beginning.

    Raises:
        BadValue: it is none of ours.
    """
    if not text:
        return Cursor()
    found = _CURSOR.fullmatch(text)
    if found is None:
        raise BadValue("cursor", text, "what an earlier poll gave")
    return Cursor(int(found[1]), int(found[2], 16), found[3] is not None)


class Reading:
    """A log that comes in pieces from its beginning, and what of it follows a cursor."""

    def __init__(self, cursor: Cursor, entrypoint: str, job: str) -> None:
        self._cursor = cursor
        self._announced = f"Running entrypoint for job {job}: {entrypoint}\n".encode("utf-8", "replace")
        self._passed = 0
        self._before = b""  #: the last bytes that were told, as they are in this log
        self._kept = bytearray()
        self.length = 0  #: bytes that came
        self.broke_off = False  #: there is more, which did not come

    def take(self, piece: bytes) -> bool:
        """Take what comes next; whether more is wanted."""
        self.length += len(piece)
        old = piece[: self._cursor.offset - self._passed]
        self._passed += len(old)
        self._before = (self._before + old)[-_MARKED:]
        self._kept += piece[len(old) :]
        return len(self._kept) <= MOST_AT_ONCE and self.is_same

    @property
    def has_news(self) -> bool:
        """Whether anything came that was not told."""
        return bool(self._kept) and self.is_same

    @property
    def is_same(self) -> bool:
        """Whether the log is, as far as it came, the one that the cursor was made for."""
        return self._passed < self._cursor.offset or crc32(self._before) == self._cursor.mark

    def told(self, *, is_over: bool) -> Told | None:
        """What is new: whole lines, and the last one as it is if the job is over. None: it is another log."""
        if self._passed < self._cursor.offset or not self.is_same:
            return None
        found = bytes(self._kept[:MOST_AT_ONCE])
        is_all = len(found) == len(self._kept) and not self.broke_off
        text, places = self._without_ours(found)
        end = len(text) if is_over and is_all else text.rfind(b"\n") + 1
        torn = b""
        if not end and len(found) < len(self._kept):  # a line longer than can be told at once
            end, torn = _between_characters(text), b"\n"
        raw = end + sum(length for at, length in places if at < end)
        last = (self._before + found[:raw])[-_MARKED:]
        cursor = Cursor(self._cursor.offset + raw, crc32(last))
        return Told((text[:end] + torn).decode("utf-8", "replace"), cursor, is_all)

    def _without_ours(self, found: bytes) -> tuple[bytes, list[tuple[int, int]]]:
        """What the program said, and where in it how many bytes of Ray's were left out."""
        places: list[tuple[int, int]] = []
        if not self._cursor.offset and (first := _SETTING_UP.match(found)):
            places.append((-1, first.end()))
            found = found[first.end() :]
        before, announced, after = found.partition(self._announced)
        if announced:
            places.append((len(before), len(announced)))
        return before + after, places


def begun_anew(told: Told) -> Told:
    """The same, with a line that says why all of it comes again."""
    return told._replace(text=_BEGUN_ANEW + told.text)


class LastLines:
    """The end of a log, of which any number of bytes may come."""

    def __init__(self) -> None:
        self._kept = b""

    def take(self, piece: bytes) -> bool:
        """Take what comes next; there is always more wanted."""
        self._kept = (self._kept + piece)[-LAST_BYTES:]
        return True

    def told(self, cursor: Cursor, job: str) -> Told:
        """Its whole lines, after one that says what they are."""
        kept = self._kept
        if len(kept) == LAST_BYTES:
            kept = kept[kept.find(b"\n") + 1 :]
        return Told(_TOO_LONG.format(job) + kept.decode("utf-8", "replace"), cursor._replace(is_end=True))


def _between_characters(text: bytes) -> int:
    """The last place in `text`, or near it, that is not inside of a character."""
    end = len(text)
    while end > len(text) - 4 and text[end - 1] & 0xC0 == 0x80:  # a byte that continues one
        end -= 1
    return end - 1 if text[end - 1] >= 0xC0 else len(text)
