"""What reaches a teammate, one after the other; and the last of what it said and heard, for those who look on."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import contextmanager

from taskyard.clock import now_ms
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

#: Messages that views show; a conversation of thousands is in the transcript.
RECENT = 50

#: Characters of each that views show.
LONGEST_SHOWN = 1_000

#: Letters taken from the mailbox and not dealt with yet; the others wait there.
MOST_WAITING = 10


class Letter(NamedTuple):
    """Something that somebody says to a teammate."""

    text: str
    sender: str | None = None  #: None: typed into its job
    id: str = ""  #: of the mail, to be acknowledged
    is_reply: bool = False  #: it answers one of ours, and wants no answer
    decides: bool = True  #: it may answer what we ask: other teammates have no word in that


class Inbox:
    """Letters in the order they came. While the teammate asks something, the next that `decides` is the answer."""

    def __init__(self, read: Callable[[Letter], None]) -> None:
        """`read` is told of each letter that was dealt with."""
        self._letters: deque[Letter] = deque()
        self._read = read
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._awaited = 0
        self._asked: asyncio.Future[str] | None = None

    def put(self, letter: Letter) -> None:
        """Add one; or answer with it what was asked."""
        if letter.decides and self._asked is not None and not self._asked.done():
            self._asked.set_result(letter.text)
            self._read(letter)
        else:
            self._letters.append(letter)
            self.ring()

    def take(self) -> Letter | None:
        """The oldest, if there is one; the caller deals with it, and then says so by `done`."""
        if not self._letters:
            return None
        self._room.set()
        return self._letters.popleft()

    def done(self, letter: Letter) -> None:
        """It was dealt with."""
        self._read(letter)

    async def next(self) -> Letter:
        """The oldest, as soon as there is one; it counts as dealt with."""
        while (letter := self.take()) is None:
            self.arm()
            await self.news()
        self.done(letter)
        return letter

    async def answer(self) -> str:
        """What comes next, as the answer to a question."""
        self._asked = asyncio.get_running_loop().create_future()
        try:
            with self.awaiting():
                return await self._asked
        finally:
            self._asked = None

    @contextmanager
    def awaiting(self) -> Generator[None]:
        """Meanwhile there is room for everything: what is waited for may be behind many others."""
        self._awaited += 1
        self._room.set()
        try:
            yield
        finally:
            self._awaited -= 1

    def arm(self) -> None:
        """From now on, whatever comes is news: call it, look around, and only then sleep on `news`."""
        self._news.clear()

    async def news(self) -> None:
        """Sleep until something came since `arm`."""
        if not self._letters:
            await self._news.wait()

    def ring(self) -> None:
        """Wake whoever sleeps on it."""
        self._news.set()

    async def room(self) -> None:
        """Sleep while so much waits here that the rest should stay where it is."""
        while len(self._letters) >= MOST_WAITING and not self._awaited:
            self._room.clear()
            await self._room.wait()

    def __len__(self) -> int:
        return len(self._letters)


class Recent:
    """The last messages, each cut to what a view shows: bounded, however long the work takes."""

    def __init__(self) -> None:
        self._lines: deque[dict[str, object]] = deque(maxlen=RECENT)

    def add(self, line: Mapping[str, object]) -> None:
        """Remember one line of the transcript."""
        self._lines.append({"at": now_ms(), **{name: _shown(value) for name, value in line.items()}})

    def shown(self) -> list[dict[str, object]]:
        """Oldest first."""
        return list(self._lines)


def _shown(value: object) -> object:
    if value is None or isinstance(value, (int, float, bool)):
        return value
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"
