"""
What changed in a folder: one watcher per process, shared by everyone who asks.

Events are there as soon as the writing call has returned, so `changed` needs no waiting: it
empties the kernel's queue and answers which names to look at again. `wait` sleeps until there is
something; a daemon thread, started by the first who waits, does the listening. A folder that
does not exist yet is picked up when it is made. Where the kernel has no events to offer, every
look answers "anything may have changed", and waiting is looking again after a while.
"""

from __future__ import annotations

import os
import select
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.disk.inotify import Inotify

#: How often to look where the kernel does not tell.
_POLL = 1.0

#: Wake-ups a second in the long run, and how many may come at once before that counts: a command that prints without
#: end makes thousands of events a second, and what came in between is one look.
_RATE, _BURST = 200.0, 100.0


class Followed:
    """One folder, for one reader."""

    def __init__(self, path: str, watcher: Watcher, news: threading.Event) -> None:
        self.path = path
        self.at: int | None = None  #: the watch it hangs on; None = the kernel does not tell
        self.awaits = ""  #: otherwise: the name whose appearance there would bring the folder nearer
        self.is_exact = False  #: whether that watch is on the folder itself, not on a parent of it
        self._watcher = watcher
        self._names: set[str] = set()
        self._everything = True
        self.news = news  #: set when somebody should look; several followers may share one

    def changed(self) -> set[str] | None:
        """The names in the folder to look at again, since last asked; None = all of them."""
        self._watcher.drain()
        with self._watcher.lock:
            names, everything = self._names, self._everything or not self.is_exact
            self._names, self._everything = set(), False
            self.news.clear()
        return None if everything else names

    def told(self) -> set[str] | None:
        """As `changed`, for those who ask again and again: of a folder that is still not there, nothing."""
        self._watcher.drain()
        return self.changed() if self.has_news or self.at is None else set()

    @property
    def has_news(self) -> bool:
        """Whether something happened since `changed` was last asked, as far as the queue was emptied."""
        return self._everything or bool(self._names)

    def wait(self, timeout: float, *, debounce: float = 0.0) -> bool:
        """Sleep until something changed, at most `timeout` seconds; whether something did.

        After the first sign, `debounce` seconds more gather what belongs to the same burst.
        """
        self._watcher.listen()
        if self.at is None:
            return not self.news.wait(min(timeout, _POLL)) or True
        if not self.news.wait(timeout):
            return False
        if debounce:
            time.sleep(debounce)
        return True

    def tell(self, name: str | None) -> None:
        """Something happened to `name`; None = to anything. The watcher's lock is held."""
        if name is None:
            self._everything = True
        else:
            self._names.add(name)
        self.news.set()

    def wake(self) -> None:
        """Wake whoever waits, although no file event came."""
        self.news.set()

    def ring(self) -> None:
        """Count as changed, as a whole: somebody knows who is told by other means than files."""
        with self._watcher.lock:
            self.tell(None)

    def close(self) -> None:
        """Follow it no longer."""
        self._watcher.forget(self)

    def __enter__(self) -> Followed:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Watcher:
    """All followed folders of this process on one queue."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._queue: Inotify | None = None
        self._followers: list[Followed] = []
        self._by_number: dict[int, list[Followed]] = {}
        self._thread: threading.Thread | None = None
        self._open()

    def _open(self) -> None:
        try:
            from taskyard.disk.inotify import Inotify

            self._queue = Inotify()
        except (OSError, AttributeError):
            self._queue = None  # no such thing here, or no more of them: everyone looks for themselves

    def begin_anew(self) -> None:
        """Have a queue of our own, in a forked child: events read from the parent's would be missing there."""
        self.lock = threading.Lock()  # some thread of the parent may have held it
        if self._queue is not None:
            self._queue.close()
        self._by_number, self._thread = {}, None
        self._open()
        for follower in self._followers:
            follower.at, follower.is_exact = None, False
            self._attach(follower)
            follower.tell(None)

    @property
    def fd(self) -> int | None:
        """What becomes readable when there are events to `drain`, for those who sleep on descriptors."""
        return None if self._queue is None else self._queue.fd

    def follow(self, path: str, *, wake: Followed | None = None, news: threading.Event | None = None) -> Followed:
        """Follow what happens in the folder `path`, which may not exist yet; news also wakes who waits on `wake`.

        `news` is the bell to ring, where somebody brings one.
        """
        found = Followed(path, self, news or (wake.news if wake is not None else threading.Event()))
        with self.lock:
            self._followers.append(found)
            self._attach(found)
        return found

    def forget(self, found: Followed) -> None:
        """Stop following."""
        with self.lock:
            if found in self._followers:
                self._followers.remove(found)
            self._detach(found)

    def signal(self, path: str) -> None:
        """Wake everyone in this process who follows `path`, at once."""
        with self.lock:
            for follower in self._followers:
                if follower.path == path:
                    follower.wake()

    def drain(self) -> None:
        """Hand out what the kernel has queued; never waits."""
        if self._queue is None:
            return
        with self.lock:
            for number, mask, name in self._queue.read():
                self._dispatch(number, mask, name)

    def _dispatch(self, number: int, mask: int, name: str) -> None:
        from taskyard.disk.inotify import DELETE_SELF, IGNORED, ISDIR, MOVE_SELF, OVERFLOW

        if mask & OVERFLOW:
            for follower in self._followers:
                follower.tell(None)
            return
        if mask & ISDIR and name:
            self._renew(number, name)
        gone = mask & (DELETE_SELF | MOVE_SELF | IGNORED)
        for follower in list(self._by_number.get(number, ())):
            if not gone and not follower.is_exact and name != follower.awaits:
                continue  # it waits on a parent of its folder; this is about something else there
            if gone or not follower.is_exact:
                self._detach(follower)
                self._attach(follower)
                follower.tell(None)
            else:
                follower.tell(name)

    def _renew(self, number: int, name: str) -> None:
        """A folder came or went: whoever follows that path looks there again.

        The kernel says nothing of its own about one that was removed while somebody has a file in it open.
        """
        above = next((follower.path for follower in self._by_number.get(number, ()) if follower.is_exact), None)
        for follower in self._followers if above is not None else ():
            if follower.is_exact and follower.path == f"{above}/{name}":
                self._detach(follower)
                self._attach(follower)
                follower.tell(None)

    def _attach(self, found: Followed) -> None:
        """Hang it on its folder, or on the nearest parent that exists."""
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
                return  # no more watches to be had: this one looks for itself
        found.at, found.is_exact = number, path == found.path
        found.awaits = os.path.basename(missing)
        self._by_number.setdefault(number, []).append(found)
        if not found.is_exact and os.path.isdir(missing):
            self._detach(found)  # made between the two calls: nothing will be said about it up here
            self._attach(found)

    def _detach(self, found: Followed) -> None:
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
        """Whether a thread empties the queue as soon as there is something."""
        return self._thread is not None

    def listen(self) -> None:
        """Have the thread that turns file events into wake-ups."""
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


_shared: Watcher | None = None
_making = threading.Lock()


def watcher() -> Watcher:
    """The watcher of this process; of several threads that ask first, one makes it."""
    global _shared
    if _shared is None:
        with _making:
            if _shared is None:
                _shared = Watcher()
    return _shared


def _fresh_in_child() -> None:
    global _making
    _making = threading.Lock()  # some thread of the parent may have held it
    if _shared is not None:
        _shared.begin_anew()


os.register_at_fork(after_in_child=_fresh_in_child)
