"""
Hearing of others' changes: one connection that listens, for everybody in this process.

    ear = database.ear
    sound = ear.sound("list_7")      from now on each NOTIFY of that channel makes it ring
    sound.wait(since, timeout)       sleep until it rang more often than `since` times
    with sound.rings(wake):          have something called each time

A notice that is sent while nobody listens is gone. So a sound also rings when it begins to be heard, and each time a
lost connection is made again: whoever is woken looks what is new by its own count, and misses nothing.
"""

from __future__ import annotations

import os
import select
import threading
from contextlib import contextmanager

from taskyard.database.connection import CONNECT, connect, in_words
from taskyard.errors import TaskyardError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from taskyard.database.connection import Link

#: Seconds between tries to be connected again: the first, and the longest.
_FIRST, _LONGEST = 0.05, 2.0

#: Seconds of quiet after which the link is tried: no word comes over one that is cut.
_QUIET = 5.0


class Sound:
    """How often a channel rang."""

    def __init__(self, ear: Ear, channel: str) -> None:
        self._ear = ear
        self._channel = channel
        self._changed = threading.Condition()
        self._wakes: list[Callable[[], object]] = []
        self.count = 0

    def ring(self) -> None:
        """Wake whoever waits."""
        with self._changed:
            self.count += 1
            self._changed.notify_all()
            wakes = list(self._wakes)
        for wake in wakes:
            wake()

    @contextmanager
    def rings(self, wake: Callable[[], object]) -> Generator[None]:
        """Have `wake` called each time it rings, beginning now, by the thread that hears: it must not wait."""
        with self._changed:
            self._wakes.append(wake)
        try:
            self._ear.hear(self._channel)
            wake()
            yield
        finally:
            with self._changed:
                self._wakes.remove(wake)

    def wait(self, since: int, timeout: float) -> int:
        """How often it rang by now: at once if that is more than `since`, else when it rings, or after `timeout` s."""
        self._ear.hear(self._channel)
        with self._changed:
            # What happens from now on is heard, however short the wait; unless the server is away.
            patience = timeout if self.count else max(timeout, CONNECT)
            self._changed.wait_for(lambda: self.count > since or self._ear.is_away, patience)
            return self.count


class Ear:
    """The listening connection of one process; it is made when somebody waits, by a thread of its own."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._sounds: dict[str, Sound] = {}
        self._heard: set[str] = set()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._wake: tuple[int, int] | None = None
        self._is_closed = False
        self.is_connected = False  #: whether changes are heard at once just now
        self.why = ""  #: why they are not

    @property
    def is_away(self) -> bool:
        """Whether it was tried to hear something, and cannot be."""
        return bool(self.why)

    def sound(self, channel: str) -> Sound:
        """What rings when something is told on a channel: letters, digits and _."""
        with self._lock:
            if channel not in self._sounds:
                self._sounds[channel] = Sound(self, channel)
            return self._sounds[channel]

    def hear(self, channel: str) -> None:
        """See that somebody listens; what is heard begins with a ring."""
        with self._lock:
            if self._is_closed or (self._thread is not None and channel in self._heard):
                return
            self._heard.add(channel)
            if self._thread is None:
                self._wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
                self._thread = threading.Thread(target=self._listen, name="taskyard-ear", daemon=True)
                self._thread.start()
            else:
                self._nudge()

    def close(self) -> None:
        """Hear no more; whoever waits is woken."""
        with self._lock:
            self._is_closed = True
            thread = self._thread
            self._nudge()
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        for sound in list(self._sounds.values()):
            sound.ring()

    def _nudge(self) -> None:
        if self._wake is not None:
            try:
                os.write(self._wake[1], b"\0")
            except BlockingIOError:
                pass  # it is awake already

    def _listen(self) -> None:
        pause = _FIRST
        assert self._wake is not None
        try:
            while not self._is_closed:
                try:
                    link = connect(self._address)
                except TaskyardError as error:
                    self._is_cut(str(error))
                    select.select([self._wake[0]], [], [], pause)
                    self._drain()
                    pause = min(pause * 2, _LONGEST)
                    continue
                pause = _FIRST
                self._attend(link)
        finally:
            self.is_connected = False
            os.close(self._wake[0])
            os.close(self._wake[1])
            self._wake = None

    def _attend(self, link: Link) -> None:
        """Listen on one connection until it breaks, or we are closed."""
        import psycopg

        assert self._wake is not None
        subscribed: set[str] = set()
        try:
            while not self._is_closed:
                self._subscribe(link, subscribed)
                self.is_connected, self.why = True, ""
                ready, _, _ = select.select([link.fileno(), self._wake[0]], [], [], _QUIET)
                self._drain()
                if not ready:
                    link.execute("SELECT 1")  # raises if the link is cut
                for notice in link.notifies(timeout=0):
                    if (sound := self._sounds.get(notice.channel)) is not None:
                        sound.ring()
        except psycopg.Error as error:
            self._is_cut(in_words(self._address, error).why)
        finally:
            self.is_connected = False
            link.close()

    def _is_cut(self, why: str) -> None:
        """Say that nothing is heard; whoever waits may want to know."""
        self.is_connected, is_news, self.why = False, not self.why, why
        for sound in list(self._sounds.values()) if is_news else ():
            sound.ring()

    def _subscribe(self, link: Link, subscribed: set[str]) -> None:
        from psycopg import sql

        for channel in sorted(self._heard - subscribed):
            link.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
            subscribed.add(channel)
            self._sounds[channel].ring()

    def _drain(self) -> None:
        assert self._wake is not None
        try:
            while os.read(self._wake[0], 4096):
                pass
        except BlockingIOError:
            pass
