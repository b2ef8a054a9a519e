"""
What connects a keeper with the world: signals, the control pipe, the starter's pidfd, the command's terminal.

Signals are bytes in a pipe, so that one `poll` waits for everything at once.
"""

from __future__ import annotations

import fcntl
import os
import select
import time

from taskyard.runtime.keeper import command, kernel
from taskyard.runtime.keeper.control import Wishes
from taskyard.runtime.keeper.signals import HEARD, signal
from taskyard.runtime.keeper.starter import end_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from taskyard.runtime.keeper import blocked_reads
    from taskyard.runtime.keeper.birth import Born
    from taskyard.runtime.keeper.idle import Idle
    from taskyard.runtime.keeper.loop import Loop
    from taskyard.runtime.keeper.request import Request

#: `poll` counts in milliseconds of an int: longer sleeps are taken in parts.
_LONGEST = 1e6

_CHUNK = 65536

#: A terminal gives 4 kB at a time. After so many the cap is looked at, and wishes are heard.
_AT_ONCE = 16

#: In bytes: what is copied from a terminal between two looks at the output.
COPIED_AT_ONCE = _AT_ONCE * 4096

#: No terminal holds back more: 640 kB.
_ALL = 256

#: Whoever asks for something has a name that is shorter.
_LONGEST_NAME = 200

#: Rows and columns of a terminal that nobody looks at.
_USUAL_WINDOW = (24, 80)

#: Bytes that wait for a terminal whose program does not read; beyond that, nobody can be typing.
_MOST_UNREAD = 65536


class Wires:
    """One keeper's descriptors, and the sleep on all of them."""

    def __init__(self, born: Born, request: Request, tell_stall: Callable[[str], None]) -> None:
        self.tell_stall = tell_stall
        self._born = born
        self._wishes = Wishes(born.control)
        self._poll = select.poll()
        self._wake, theirs = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(theirs, warn_on_full_buffer=False)
        for number in HEARD:
            signal.signal(number, _noted)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HEARD)
        self._starter = end_of(request.starter)
        for fd in (self._wake, born.control, self._starter):
            if fd is not None:
                self._poll.register(fd, select.POLLIN)
        self._input: int | None = None  # into the command: a pipe, or its terminal
        self._terminal: int | None = None
        self._window = request.window or _USUAL_WINDOW
        self._unread = b""  # typed into the terminal, and not taken by it yet
        self._source: blocked_reads.Input | None = None  # what the command reads from, if we write there
        self.lost = ""  #: why output could not be kept, if so

    # -- the command -------------------------------------------------------------------------

    def start(self, request: Request, output: int) -> int:
        """Start the command with what it reads from and writes to; its process number."""
        self.let_go()
        if request.pty:
            return self._start_in_terminal(request, output)
        if not request.stdin:
            return command.start(request.plan, output=output, stdin=None)
        from taskyard.runtime import input_pipe  # only those that read need it
        from taskyard.runtime.keeper import blocked_reads

        theirs, self._input = input_pipe.make(self._born.descriptor)
        self._source = blocked_reads.Input.of(theirs)
        try:
            return command.start(request.plan, output=output, stdin=theirs)
        finally:
            os.close(theirs)

    def _start_in_terminal(self, request: Request, output: int) -> int:
        from taskyard.runtime.keeper import blocked_reads

        ours, theirs = os.openpty()
        try:
            _set_window(theirs, self._window)
            self._source = blocked_reads.Input.of(theirs, is_terminal=True)
            name = os.ttyname(theirs)
            for fd in (ours, theirs):
                os.set_inheritable(fd, False)
            pid = command.start(request.plan, output=output, stdin=None, terminal=name)
        except BaseException:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        os.set_blocking(ours, False)
        self._terminal = self._input = ours
        self._poll.register(ours, select.POLLIN)
        return pid

    def let_go(self) -> None:
        """Close what an attempt read from, with what its terminal still shows kept."""
        self.drain()
        if self._terminal is not None:
            self._poll.unregister(self._terminal)
        if self._input is not None:
            self._close(self._input)
        self._input = self._terminal = None
        self._unread = b""

    def type_in(self, data: bytes) -> bool:
        """Give the command something to read; False if it reads from nobody, or does not read."""
        if self._input is None:
            return False
        if self._input == self._terminal:
            if len(self._unread) + len(data) > _MOST_UNREAD:
                return False
            self._unread += data
            self._type_on(self._input)
            return True
        try:
            return os.write(self._input, data) == len(data)
        except BlockingIOError:
            return False  # it may read later
        except OSError:
            self._take_no_more(self._input)
            return False

    def _take_no_more(self, pipe: int) -> None:
        """The command reads to the end of what it got; whoever looks at the job sees that it takes no more."""
        self._close(pipe)
        self._input = None
        self._born.change(takesInput=False)

    def _close(self, way: int) -> None:
        os.close(way)
        if way != self._terminal:
            from taskyard.runtime import input_pipe

            input_pipe.remove(self._born.descriptor)

    def _type_on(self, terminal: int) -> None:
        """Hand the terminal what it takes of what was typed; the kernel tells when it takes more."""
        try:
            self._unread = self._unread[os.write(terminal, self._unread) :]
        except BlockingIOError:
            pass
        except OSError:
            self._unread = b""  # nobody has it open any more
        self._poll.modify(terminal, select.POLLIN | (select.POLLOUT if self._unread else 0))

    def resize(self, rows: object, columns: object) -> bool:
        """Give the command's terminal another size, now and at every further attempt; False if it has none."""
        if type(rows) is not int or type(columns) is not int or not (0 < rows < 65536 and 0 < columns < 65536):
            return False
        self._window = (rows, columns)
        if self._terminal is None:
            return False
        _set_window(self._terminal, self._window)
        return True

    @property
    def takes_input(self) -> bool:
        """Whether the command can be typed to."""
        return self._input is not None

    def is_awaited(self, pids: Collection[int]) -> bool:
        """Whether one of these processes is blocked in a read of what we type."""
        return self._input is not None and self._source is not None and self._source.is_awaited(pids)

    def close_input(self) -> bool:
        """Let the command read to the end; False if it reads from nobody."""
        if self._input is None:
            return False
        if self._input == self._terminal:
            return self.type_in(b"\x04")
        self._take_no_more(self._input)
        return True

    # -- sleeping ----------------------------------------------------------------------------

    def sleep(self, until: float, loop: Loop | Idle) -> None:
        """Until the kernel has news or a moment is reached; then tell `loop`."""
        seconds = min(max(until - time.monotonic(), 0.0), _LONGEST)
        for fd, what in self._poll.poll(seconds * 1000):
            if fd == self._wake:
                self._hear_signals(loop)
            elif fd == self._born.control:
                for wish in self._wishes.read():
                    self._grant(wish, loop)
            elif fd == self._terminal:
                if what & select.POLLOUT:
                    self._type_on(fd)
                self.drain()
            elif fd == self._starter:
                self._poll.unregister(fd)
                loop.starter_died()
        loop.woken()

    def _hear_signals(self, loop: Loop | Idle) -> None:
        numbers = set(os.read(self._wake, 4096))
        if signal.SIGIO in numbers:
            loop.grew()
        if signal.SIGTERM in numbers:
            loop.stop("stopped", by="SIGTERM to its keeper")

    def _grant(self, wish: dict[str, object], loop: Loop | Idle) -> None:
        """Do what somebody asked for through the pipe."""
        what, by, grace = wish.get("do"), wish.get("by"), wish.get("grace")
        done: object = False
        if what == "stop":
            in_time = float(grace) if isinstance(grace, (int, float)) and 0 <= grace <= _LONGEST else None
            who = by[:_LONGEST_NAME] if by and isinstance(by, str) else "somebody"
            loop.stop("stopped", by=who, grace=in_time)
            done = True
        elif what == "pause":
            done = loop.pause()
        elif what == "resume":
            done = loop.resume()
        elif what == "answer" and isinstance(text := wish.get("text"), str):
            done = loop.answer(_bytes(text))
        elif what == "size":
            done = self.resize(wish.get("rows"), wish.get("columns"))
        elif what == "close_input":
            done = self.close_input()
        elif what == "background":
            self._to_background(keep=wish.get("keep") is True)
            done = True
        self._born.answer(wish, done)

    def _to_background(self, *, keep: bool) -> None:
        """Nobody watches it any more; with `keep` it also outlives whoever started it."""
        if keep and self._starter is not None:
            self._poll.unregister(self._starter)
            os.close(self._starter)
            self._starter = None
        self._born.change(isBackgrounded=True, **({"onParentExit": "keep"} if keep else {}))

    def drain(self, reads: int = _AT_ONCE) -> None:
        """Bring what the terminal shows to the output; not all at once where there is no end of it."""
        for _ in range(reads):
            if self._terminal is None:
                return
            try:
                data = os.read(self._terminal, _CHUNK)
            except BlockingIOError:
                return
            except OSError:
                data = b""  # how a terminal says that nobody has it open any more
            if not data:
                self._poll.unregister(self._terminal)
                os.close(self._terminal)
                self._terminal = self._input = None
                return
            self._keep(data)

    def drain_all(self) -> None:
        """Bring the rest, after the command's end: no more than the kernel holds back."""
        self.drain(_ALL)

    def _keep(self, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(self._born.output, data) :]
        except OSError as error:
            self.lost = kernel.named(error)


def _bytes(text: str) -> bytes:
    """What is to be typed; bytes that are no text came as lone surrogates, and go as what they were where they can."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def _noted(*_: object) -> None:
    """The number is in the pipe already."""


def _set_window(terminal: int, window: Sequence[int]) -> None:
    import struct
    import termios  # only those with a terminal need it

    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *window, 0, 0))
