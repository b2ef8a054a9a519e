"""Wake-ups on changes by other clients: one LISTEN connection per process.

    listener = database.listener
    subscription = listener.subscription("list_7")   counts each NOTIFY on that channel from now on
    subscription.wait(since, timeout)                sleep until the count exceeds `since`
    with subscription.callback(wake):                call `wake` each time

A NOTIFY sent while no connection listens is lost. So a subscription also wakes when its LISTEN begins, and each
time a lost connection is restored: a woken reader continues from its own position and misses nothing.
"""

from __future__ import annotations

import os
import select
import threading
from contextlib import contextmanager

from taskyard.errors import TaskyardError
from taskyard.postgres.connection import CONNECT_TIMEOUT, connect, translate_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from taskyard.postgres.connection import PgConnection

#: Reconnect backoff in seconds: the first delay and the longest.
_FIRST_DELAY, _MAX_DELAY = 0.05, 2.0

#: Seconds without traffic after which the connection is probed: a cut one reports nothing.
_PROBE_AFTER = 5.0


class Subscription:
    """The number of wake-ups on one channel."""

    def __init__(self, listener: PgListener, channel: str) -> None:
        self._listener = listener
        self._channel = channel
        self._changed = threading.Condition()
        self._wakes: list[Callable[[], object]] = []
        self.count = 0

    def ring(self) -> None:
        """Wake all waiting threads and call the callbacks."""
        with self._changed:
            self.count += 1
            self._changed.notify_all()
            wakes = list(self._wakes)
        for wake in wakes:
            wake()

    @contextmanager
    def callback(self, wake: Callable[[], object]) -> Generator[None]:
        """Call `wake` now and on each wake-up, in the listener thread: it must not block."""
        with self._changed:
            self._wakes.append(wake)
        try:
            self._listener.hear(self._channel)
            wake()
            yield
        finally:
            with self._changed:
                self._wakes.remove(wake)

    def wait(self, since: int, timeout: float) -> int:
        """Return the count once it exceeds `since`, or after `timeout` seconds."""
        self._listener.hear(self._channel)
        with self._changed:
            # From here on every NOTIFY is received, however short the wait, unless the server is unavailable.
            # Losing the connection wakes once, and so does restoring it: no busy loop in between.
            patience = timeout if self.count or self._listener.is_away else max(timeout, CONNECT_TIMEOUT)
            self._changed.wait_for(lambda: self.count > since, patience)
            return self.count


class PgListener:
    """The LISTEN connection of one process, opened by its own thread at the first wait."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._subscriptions: dict[str, Subscription] = {}
        self._heard: set[str] = set()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._wake: tuple[int, int] | None = None
        self._is_closed = False
        self.is_connected = False  #: whether changes are received right now
        self.why = ""  #: why they are not

    @property
    def is_away(self) -> bool:
        """Whether connecting was tried and failed."""
        return bool(self.why)

    def subscription(self, channel: str) -> Subscription:
        """Return the subscription of a channel, named with letters, digits and _."""
        with self._lock:
            if channel not in self._subscriptions:
                self._subscriptions[channel] = Subscription(self, channel)
            return self._subscriptions[channel]

    def hear(self, channel: str) -> None:
        """Ensure that the channel is listened to; the subscription wakes once when that begins."""
        with self._lock:
            if self._is_closed or (self._thread is not None and channel in self._heard):
                return
            self._heard.add(channel)
            if self._thread is None:
                self._wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
                self._thread = threading.Thread(target=self._listen, name="taskyard-pg-listen", daemon=True)
                self._thread.start()
            else:
                self._nudge()

    def close(self) -> None:
        """Stop listening; wake all waiting threads."""
        with self._lock:
            self._is_closed = True
            thread = self._thread
            self._nudge()
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        for subscription in list(self._subscriptions.values()):
            subscription.ring()

    def _nudge(self) -> None:
        if self._wake is not None:
            try:
                os.write(self._wake[1], b"\0")
            except BlockingIOError:
                pass  # it is awake already

    def _listen(self) -> None:
        pause = _FIRST_DELAY
        assert self._wake is not None
        try:
            while not self._is_closed:
                try:
                    link = connect(self._address)
                except TaskyardError as error:
                    self._is_cut(str(error))
                    select.select([self._wake[0]], [], [], pause)
                    self._drain()
                    pause = min(pause * 2, _MAX_DELAY)
                    continue
                pause = _FIRST_DELAY
                self._attend(link)
        finally:
            self.is_connected = False
            os.close(self._wake[0])
            os.close(self._wake[1])
            self._wake = None

    def _attend(self, link: PgConnection) -> None:
        """Listen on one connection until it breaks or the listener is closed."""
        import psycopg

        assert self._wake is not None
        subscribed: set[str] = set()
        try:
            while not self._is_closed:
                self._subscribe(link, subscribed)
                self.is_connected, self.why = True, ""
                ready, _, _ = select.select([link.fileno(), self._wake[0]], [], [], _PROBE_AFTER)
                self._drain()
                if not ready:
                    link.execute("SELECT 1")  # raises if the connection is cut
                for notice in link.notifies(timeout=0):
                    if (subscription := self._subscriptions.get(notice.channel)) is not None:
                        subscription.ring()
        except psycopg.Error as error:
            self._is_cut(translate_error(self._address, error).why)
        finally:
            self.is_connected = False
            link.close()

    def _is_cut(self, why: str) -> None:
        """Record that nothing is received, and wake waiting threads once."""
        self.is_connected, is_news, self.why = False, not self.why, why
        for subscription in list(self._subscriptions.values()) if is_news else ():
            subscription.ring()

    def _subscribe(self, link: PgConnection, subscribed: set[str]) -> None:
        from psycopg import sql

        for channel in sorted(self._heard - subscribed):
            link.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
            subscribed.add(channel)
            self._subscriptions[channel].ring()

    def _drain(self) -> None:
        assert self._wake is not None
        try:
            while os.read(self._wake[0], 4096):
                pass
        except BlockingIOError:
            pass
