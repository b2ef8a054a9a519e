"""Folder change notification by inotify: one watcher per process, shared by all subscriptions.

Events are queued as soon as the writing call has returned, so `changed` needs no waiting: it drains the
kernel's queue and returns the names to read again. `wait` sleeps until there is an event; a daemon thread,
started by the first waiter, reads them. A folder that does not exist yet is watched once it is created.
Without inotify every `changed` returns "anything may have changed", and waiting polls.

`Inotify` makes the libc calls, non-blocking. `WaitThread` turns a blocking wait into a callback.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import struct
import termios
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


#: Seconds between two polls where there is no inotify.
_POLL_INTERVAL = 1.0

#: Sustained wake-ups a second, and the burst allowed before that applies: a command that prints without end
#: causes thousands of events a second, and events in between need only one read.
_RATE, _BURST = 200.0, 100.0


class Subscription:
    """One folder, for one reader."""

    def __init__(self, path: str, watcher: Watcher, news: threading.Event) -> None:
        self.path = path
        self.at: int | None = None  #: its inotify watch; None = no events, poll
        self.awaits = ""  #: otherwise: the name whose creation there brings the folder nearer
        self.is_exact = False  #: whether that watch is on the folder itself, not on a parent of it
        self._watcher = watcher
        self._names: set[str] = set()
        self._everything = True
        self.news = news  #: set on a change; several subscriptions may share one

    def changed(self) -> set[str] | None:
        """Return the names in the folder that changed since the last call; None = all of them."""
        self._watcher.drain()
        with self._watcher.lock:
            names, everything = self._names, self._everything or not self.is_exact
            self._names, self._everything = set(), False
            self.news.clear()
        return None if everything else names

    def told(self) -> set[str] | None:
        """As `changed`, for pollers: returns nothing for a folder that still does not exist."""
        self._watcher.drain()
        return self.changed() if self.has_news or self.at is None else set()

    @property
    def has_news(self) -> bool:
        """Whether something changed since the last `changed`, as far as the queue was drained."""
        return self._everything or bool(self._names)

    def wait(self, timeout: float, *, debounce: float = 0.0) -> bool:
        """Wait at most `timeout` seconds for a change; return whether there was one.

        After the first event, `debounce` seconds more collect the rest of a burst.
        """
        self._watcher.listen()
        if self.at is None:
            return not self.news.wait(min(timeout, _POLL_INTERVAL)) or True
        if not self.news.wait(timeout):
            return False
        if debounce:
            time.sleep(debounce)
        return True

    def tell(self, name: str | None) -> None:
        """Record a change of `name`; None = of anything. The watcher's lock is held."""
        if name is None:
            self._everything = True
        else:
            self._names.add(name)
        self.news.set()

    def wake(self) -> None:
        """Wake the waiter without a file event."""
        self.news.set()

    def ring(self) -> None:
        """Mark everything as changed, for changes learned by other means than file events."""
        with self._watcher.lock:
            self.tell(None)

    def close(self) -> None:
        """End the subscription."""
        self._watcher.forget(self)

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Watcher:
    """All watched folders of this process on one inotify queue."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._queue: Inotify | None = None
        self._subscriptions: list[Subscription] = []
        self._by_number: dict[int, list[Subscription]] = {}
        self._thread: threading.Thread | None = None
        self._open()

    def _open(self) -> None:
        try:
            self._queue = Inotify()
        except (OSError, AttributeError):
            self._queue = None  # not supported, or no more instances: subscriptions poll

    def reset_in_child(self) -> None:
        """Open a new queue in a forked child: events it read from the parent's would be missing there."""
        self.lock = threading.Lock()  # a thread of the parent may have held it
        if self._queue is not None:
            self._queue.close()
        self._by_number, self._thread = {}, None
        self._open()
        for follower in self._subscriptions:
            follower.at, follower.is_exact = None, False
            self._attach(follower)
            follower.tell(None)

    @property
    def fd(self) -> int | None:
        """Descriptor that is readable when there are events to `drain`, for event loops."""
        return None if self._queue is None else self._queue.fd

    def follow(
        self, path: str, *, wake: Subscription | None = None, news: threading.Event | None = None
    ) -> Subscription:
        """Subscribe to the folder `path`, which may not exist yet.

        A change also wakes the waiter on `wake`, or sets the event `news` if given.
        """
        found = Subscription(path, self, news or (wake.news if wake is not None else threading.Event()))
        with self.lock:
            self._subscriptions.append(found)
            self._attach(found)
        return found

    def forget(self, found: Subscription) -> None:
        """End a subscription."""
        with self.lock:
            if found in self._subscriptions:
                self._subscriptions.remove(found)
            self._detach(found)

    def signal(self, path: str) -> None:
        """Wake all subscribers of `path` in this process at once."""
        with self.lock:
            for follower in self._subscriptions:
                if follower.path == path:
                    follower.wake()

    def drain(self) -> None:
        """Dispatch the events the kernel has queued; never waits."""
        if self._queue is None:
            return
        with self.lock:
            for number, mask, name in self._queue.read():
                self._dispatch(number, mask, name)

    def _dispatch(self, number: int, mask: int, name: str) -> None:

        if mask & OVERFLOW:
            for follower in self._subscriptions:
                follower.tell(None)
            return
        if mask & ISDIR and name:
            self._renew(number, name)
        gone = mask & (DELETE_SELF | MOVE_SELF | IGNORED)
        for follower in list(self._by_number.get(number, ())):
            if not gone and not follower.is_exact and name != follower.awaits:
                continue  # it watches a parent of its folder, and this event is about another name
            if gone or not follower.is_exact:
                self._detach(follower)
                self._attach(follower)
                follower.tell(None)
            else:
                follower.tell(name)

    def _renew(self, number: int, name: str) -> None:
        """Renew the watches of a subfolder that was created or removed.

        The kernel sends no event of its own for a folder that was removed while a file in it is open.
        """
        above = next((follower.path for follower in self._by_number.get(number, ()) if follower.is_exact), None)
        for follower in self._subscriptions if above is not None else ():
            if follower.is_exact and follower.path == f"{above}/{name}":
                self._detach(follower)
                self._attach(follower)
                follower.tell(None)

    def _attach(self, found: Subscription) -> None:
        """Watch the folder, or its nearest existing parent."""
        if self._queue is None:
            return
        path = missing = found.path
        while True:
            try:
                number = self._queue.add(path)
                break
            except FileNotFoundError:
                path, missing = os.path.dirname(path), path
            except OSError:
                return  # the limit of watches is reached: this one polls
        found.at, found.is_exact = number, path == found.path
        found.awaits = os.path.basename(missing)
        self._by_number.setdefault(number, []).append(found)
        if not found.is_exact and os.path.isdir(missing):
            self._detach(found)  # created between the two calls: the parent gets no event for it
            self._attach(found)

    def _detach(self, found: Subscription) -> None:
        if found.at is None:
            return
        number, found.at = found.at, None
        followers = self._by_number.get(number, [])
        if found in followers:
            followers.remove(found)
        if not followers and self._by_number.pop(number, None) is not None and self._queue is not None:
            self._queue.remove(number)

    @property
    def is_listening(self) -> bool:
        """Whether a thread drains the queue as events arrive."""
        return self._thread is not None

    def listen(self) -> None:
        """Start the thread that turns file events into wake-ups."""
        with self.lock:
            if self._thread is None and self._queue is not None:
                queue = self._queue.fd
                self._thread = threading.Thread(target=self._listen, args=(queue,), name="taskyard-watch", daemon=True)
                self._thread.start()

    def _listen(self, queue: int) -> None:
        poll = select.poll()
        poll.register(queue, select.POLLIN)
        spare, before = _BURST, time.monotonic()
        while True:
            poll.poll()
            self.drain()
            now = time.monotonic()
            spare, before = min(_BURST, spare + (now - before) * _RATE) - 1, now
            if spare < 0:
                time.sleep(1 / _RATE)


_process_watcher: Watcher | None = None
_watcher_mutex = threading.Lock()


def watcher() -> Watcher:
    """Return the watcher of this process, created once even by concurrent threads."""
    global _process_watcher
    if _process_watcher is None:
        with _watcher_mutex:
            if _process_watcher is None:
                _process_watcher = Watcher()
    return _process_watcher


def _reset_in_child() -> None:
    global _watcher_mutex
    _watcher_mutex = threading.Lock()  # a thread of the parent may have held it
    if _process_watcher is not None:
        _process_watcher.reset_in_child()


os.register_at_fork(after_in_child=_reset_in_child)


CREATE, DELETE, MODIFY, CLOSE_WRITE, MOVED_FROM, MOVED_TO = 0x100, 0x200, 0x2, 0x8, 0x40, 0x80
DELETE_SELF, MOVE_SELF, IGNORED, OVERFLOW, ISDIR = 0x400, 0x800, 0x8000, 0x4000, 0x40000000

#: Events that mean that a file in a folder changed.
CHANGES = CREATE | DELETE | MODIFY | CLOSE_WRITE | MOVED_FROM | MOVED_TO | DELETE_SELF | MOVE_SELF

_ZERO = struct.pack("i", 0)
_EVENT = struct.Struct("iIII")
_ONLYDIR = 0x01000000

_libc = ctypes.CDLL(None, use_errno=True)


class Inotify:
    """One inotify queue."""

    def __init__(self) -> None:
        """Open the queue.

        Raises:
            OSError: not supported, or the limit is reached.
        """
        self.fd: int = _check_result(_libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))

    def add(self, folder: str, changes: int = CHANGES) -> int:
        """Watch `folder` for `changes`; return the watch number its events carry."""
        return _check_result(_libc.inotify_add_watch(self.fd, os.fsencode(folder), changes | _ONLYDIR))

    def remove(self, number: int) -> None:
        """Remove a watch."""
        _libc.inotify_rm_watch(self.fd, number)

    def read(self) -> list[tuple[int, int, str]]:
        """Return the queued events: (number, mask, file name). Never waits."""
        events: list[tuple[int, int, str]] = []
        while fcntl.ioctl(self.fd, termios.FIONREAD, _ZERO) != _ZERO:  # cheaper than an exception each time
            try:
                data = os.read(self.fd, 65536)
            except BlockingIOError:
                return events
            position = 0
            while position < len(data):
                number, mask, _, length = _EVENT.unpack_from(data, position)
                position += _EVENT.size
                name = data[position : position + length].rstrip(b"\0")
                events.append((number, mask, os.fsdecode(name)))
                position += length
        return events

    def close(self) -> None:
        """Close the queue."""
        os.close(self.fd)


def _check_result(answer: int) -> int:
    if answer < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return answer


#: Seconds of one wait, after which the thread of a closed `WaitThread` ends.
_WAIT_SECONDS = 30.0


class WaitThread:
    """Calls `wake`, in its own thread, each time `wait` returns True."""

    def __init__(self, wait: Callable[[float], bool], wake: Callable[[], object]) -> None:
        """Start the thread.

        `wait` blocks at most the given seconds and returns whether something may have changed; its first call
        returns True.
        """
        self._wait = wait
        self._wake = wake
        self._is_closed = False
        threading.Thread(target=self._run, name="taskyard-inotify", daemon=True).start()

    def _run(self) -> None:
        while not self._is_closed:
            if self._wait(_WAIT_SECONDS) and not self._is_closed:
                self._wake()

    def close(self) -> None:
        """Stop calling `wake`."""
        self._is_closed = True
