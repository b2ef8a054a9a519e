"""
What became of one list, for all who look at it: each change is worked out and encoded once, and kept for a while.

    with the last id that is still kept     what came after it, the same bytes for all
    with any other, or none                 the whole, and then what comes

Nobody has a queue: who listens knows how far it has come, and who is slower than the changes are kept gets the whole
again. However many there are and however slow they are, what is kept is bounded, and none waits for another.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

from taskyard.clock import now_ms
from taskyard.view.changes import difference, whole
from taskyard.view.snapshot import Snapshot
from taskyard.web.answers import dumped

#: Changes that are kept for those who come back, and their bytes.
MOST_KEPT, MOST_BYTES = 512, 8_000_000

#: Who lags by more changes than this, or by more bytes, is better served with the whole.
MOST_BEHIND, MOST_BEHIND_BYTES = 64, 1_000_000


class Source(Protocol):
    """Where snapshots come from: a `live` view."""

    @property
    def snapshot(self) -> Snapshot:
        """The newest."""
        ...


class Item(NamedTuple):
    """One event of a stream, ready to be sent."""

    number: int
    data: bytes


class Numbers:
    """Ids of one server: `<when it started>-<n>`. No two events have the same, of whatever list they are."""

    def __init__(self, start: str | None = None) -> None:
        self.start = start if start is not None else f"{now_ms():x}"
        self._next = itertools.count(1)

    def next(self) -> int:
        """The next one."""
        return next(self._next)

    def shown(self, number: int) -> str:
        """As it is sent."""
        return f"{self.start}-{number}"

    def parsed(self, mark: str) -> int | None:
        """The number in an id of ours; None: it is another server's, or none."""
        start, _, number = mark.rpartition("-")
        is_ours = start == self.start and number.isascii() and number.isdigit() and len(number) <= 15
        return int(number) if is_ours else None


class Channel:
    """All changes of one list."""

    def __init__(self, source: Source, numbers: Numbers, wake: Callable[[Callable[[], None]], object]) -> None:
        """Begin with what `source` shows now.

        Args:
            source: Where snapshots come from.
            numbers: Where ids come from.
            wake: Has something called in the event loop, from any thread.
        """
        self._source = source
        self._numbers = numbers
        self._wake = wake
        self._lock = threading.Lock()  # held for a moment: the event loop takes it too
        self._looking, self._encoding = threading.Lock(), threading.Lock()
        self._snapshot = source.snapshot
        self._number = numbers.next()
        self._kept: deque[Item] = deque()
        self._size = 0
        self._before_kept = self._number  # the number that the oldest change follows
        self._whole: Item | None = None
        self._waiting: set[asyncio.Event] = set()

    @property
    def number(self) -> int:
        """The newest."""
        return self._number

    def look(self, _: object = None) -> None:
        """See what the source shows now; from any thread, whenever it may be something else."""
        with self._looking:
            after = self._source.snapshot
            if after is self._snapshot or not (changed := difference(self._snapshot, after)):
                return
            number = self._numbers.next()
            item = Item(number, event(b"change", self._numbers.shown(number), dumped(changed)))
            with self._lock:
                self._snapshot = after
                self._keep(item)
        self._wake(self._ring)

    def _keep(self, item: Item) -> None:
        self._kept.append(item)
        self._size += len(item.data)
        self._number = item.number
        while len(self._kept) > MOST_KEPT or (self._size > MOST_BYTES and len(self._kept) > 1):
            gone = self._kept.popleft()
            self._size -= len(gone.data)
            self._before_kept = gone.number

    def _ring(self) -> None:
        for waiting in self._waiting:
            waiting.set()

    def after(self, number: int | None) -> list[Item] | None:
        """What came after an event; None: that is no longer known, or so much that the whole says it in less."""
        with self._lock:
            if number is None or (number != self._before_kept and all(item.number != number for item in self._kept)):
                return None
            found = [item for item in self._kept if item.number > number]
        is_much = len(found) > MOST_BEHIND or (len(found) > 1 and sum(len(i.data) for i in found) > MOST_BEHIND_BYTES)
        return None if is_much else found

    def whole(self) -> Item:
        """Everything as it is now, as an event, encoded once for all. Takes a moment: not for the event loop."""
        with self._encoding:
            with self._lock:
                snapshot, number = self._snapshot, self._number
            if self._whole is None or self._whole.number != number:
                mark = self._numbers.shown(number)
                self._whole = Item(number, event(b"snapshot", mark, dumped({**whole(snapshot), "id": mark})))
            return self._whole

    def now(self) -> tuple[Snapshot, str]:
        """The newest snapshot, and the id of the event that led to it."""
        with self._lock:
            return self._snapshot, self._numbers.shown(self._number)

    def listening(self) -> Bell:
        """A bell that rings at each change, for one who listens; in the event loop."""
        return Bell(self._waiting)


class Bell:
    """Wakes one who listens; for the length of a `with` block."""

    def __init__(self, among: set[asyncio.Event]) -> None:
        self._among = among
        self._rung = asyncio.Event()

    def __enter__(self) -> Bell:
        self._among.add(self._rung)
        return self

    def __exit__(self, *_: object) -> None:
        self._among.discard(self._rung)

    async def wait(self, seconds: float) -> bool:
        """Sleep until it rings, at most so long; whether it did."""
        try:
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        except TimeoutError:
            return False
        self._rung.clear()
        return True


def event(name: bytes, mark: str, data: bytes) -> bytes:
    """One server-sent event; the data has no line break, as JSON never has."""
    head = b"id: %s\n" % mark.encode() if mark else b""
    return b"%sevent: %s\ndata: %s\n\n" % (head, name, data)
