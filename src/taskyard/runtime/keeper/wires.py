"""
What connects a keeper with the world: signals, the control pipe, the starter's pidfd, the command's terminal.

Signals are bytes in a pipe, so that one `poll` waits for everything at once.
"""

from __future__ import annotations

import fcntl
import os
import select
import time

from taskyard.disk.processes import process_start
from taskyard.runtime.keeper import command
from taskyard.runtime.keeper.control import Wishes
from taskyard.runtime.keeper.signals import HEARD, signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from taskyard.runtime.keeper.birth import Born
    from taskyard.runtime.keeper.loop import Loop
    from taskyard.runtime.keeper.queue import Queue
    from taskyard.runtime.keeper.request import Request

#: `poll` counts in milliseconds of an int: longer sleeps are taken in parts.
_LONGEST = 1e6

_CHUNK = 65536


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
        self._starter = _pidfd(request.starter)
        for fd in (self._wake, born.control, self._starter):
            if fd is not None:
                self._poll.register(fd, select.POLLIN)
        self._input: int | None = None  # into the command: a pipe, or its terminal
        self._terminal: int | None = None
        self.lost = ""  #: why output could not be kept, if so

    # -- the command -------------------------------------------------------------------------

    def start(self, request: Request, output: int) -> int:
        """Start the command with what it reads from and writes to; its process number."""
        if request.pty:
            return self._start_in_terminal(request, output)
        if not request.stdin:
            return command.start(request.plan, output=output, stdin=None)
        theirs, self._input = os.pipe2(os.O_CLOEXEC)
        try:
            pid = command.start(request.plan, output=output, stdin=theirs)
        finally:
            os.close(theirs)
        os.set_blocking(self._input, False)  # one who does not read must not stop us
        return pid

    def _start_in_terminal(self, request: Request, output: int) -> int:
        import struct
        import termios  # a library that few keepers need

        ours, theirs = os.openpty()
        try:
            fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
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

    def type_in(self, data: bytes) -> bool:
        """Give the command something to read; False if it reads from nobody, or does not read."""
        if self._input is None:
            return False
        try:
            return os.write(self._input, data) == len(data)
        except OSError:
            return False

    def close_input(self) -> bool:
        """Let the command read to the end; False if it reads from nobody."""
        if self._input is None:
            return False
        if self._input == self._terminal:
            return self.type_in(b"\x04")
        os.close(self._input)
        self._input = None
        return True

    # -- sleeping ----------------------------------------------------------------------------

    def sleep(self, until: float, loop: Loop | Queue) -> None:
        """Until the kernel has news or a moment is reached; then tell `loop`."""
        seconds = min(max(until - time.monotonic(), 0.0), _LONGEST)
        for fd, _ in self._poll.poll(seconds * 1000):
            if fd == self._wake:
                self._hear_signals(loop)
            elif fd == self._born.control:
                for wish in self._wishes.read():
                    self._grant(wish, loop)
            elif fd == self._terminal:
                self.drain()
            else:
                self._poll.unregister(fd)
                loop.starter_died()
        loop.woken()

    def _hear_signals(self, loop: Loop | Queue) -> None:
        numbers = set(os.read(self._wake, 4096))
        if signal.SIGIO in numbers:
            loop.grew()
        if signal.SIGTERM in numbers:
            loop.stop("stopped", by="SIGTERM to its keeper")

    def _grant(self, wish: dict[str, object], loop: Loop | Queue) -> None:
        """Do what somebody asked for through the pipe."""
        what, by, grace = wish.get("do"), wish.get("by"), wish.get("grace")
        done: object = False
        if what == "stop":
            in_time = float(grace) if isinstance(grace, (int, float)) and grace >= 0 else None
            loop.stop("stopped", by=by if isinstance(by, str) else "", grace=in_time)
            done = True
        elif what == "pause":
            done = loop.pause()
        elif what == "resume":
            done = loop.resume()
        elif what == "answer" and isinstance(text := wish.get("text"), str):
            done = loop.answer(text.encode("utf-8", "surrogateescape"))
        elif what == "close_input":
            done = self.close_input()
        elif what == "background":
            self._born.change(isBackgrounded=True)
            done = True
        self._born.answer(wish, done)

    def drain(self) -> None:
        """Bring what the terminal shows to the output."""
        while self._terminal is not None:
            try:
                data = os.read(self._terminal, _CHUNK)
            except BlockingIOError:
                return
            except OSError:
                data = b""  # how a terminal says that nobody has it open any more
            if not data:
                self._poll.unregister(self._terminal)
                self._terminal = None
                return
            self._keep(data)

    def _keep(self, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(self._born.output, data) :]
        except OSError as error:
            self.lost = error.strerror or str(error)


def _noted(*_: object) -> None:
    """The number is in the pipe already."""


def _pidfd(starter: Sequence[int] | None) -> int | None:
    """Something to poll for the end of the very process that started us; one that is gone already is at its end."""
    if starter is None:
        return None
    pid, start = starter
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        fd = -1
    if fd >= 0 and process_start(pid) == start:
        return fd
    ended, theirs = os.pipe2(os.O_CLOEXEC)
    os.close(theirs)  # a pipe without a writer polls as a process that ended does
    if fd >= 0:
        os.close(fd)
    return ended
