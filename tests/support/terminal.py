"""Programs on a terminal that a test holds the other end of."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from support.wait import until

_LONGEST = 30.0


def shown(terminal: int, wanted: bytes) -> bytes:
    """Everything that comes up to `wanted`, and with it."""
    seen = bytearray()

    def arrived() -> bool:
        seen.extend(os.read(terminal, 65536))
        return wanted in seen

    until(arrived, what=f"{wanted!r} on the screen")
    return bytes(seen)


def screen_of(*words: str) -> bytes:
    """Everything a command line shows on a terminal of 80 columns, until it ends."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    child = subprocess.Popen(
        [sys.executable, "-m", "taskyard", *words], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    seen = bytearray()
    try:
        while data := os.read(ours, 65536):
            seen.extend(data)
    except OSError:
        pass  # how a terminal says that nobody has it open any more
    finally:
        os.close(ours)
        child.kill()
        child.wait()
    return bytes(seen)


def acts(screen: bytes) -> list[str]:
    """What in it would do more to a terminal than be read: all but text, line ends and colours."""
    text = re.sub(r"\x1b\[[0-9;:]*m", "", screen.decode("utf-8"))
    return sorted(
        set(
            re.findall(
                "[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]", text
            )
        )
    )


class Terminal:
    """A program in the foreground of a terminal of its own, and what it shows there."""

    def __init__(self, child: subprocess.Popen[bytes], ours: int) -> None:
        self.child = child
        self._ours = ours
        self.seen = b""

    def type(self, keys: bytes) -> None:
        """Press keys; Ctrl+C among them is a signal, where the program has left it one."""
        os.write(self._ours, keys)

    def shows(self, wanted: bytes, *, times: int = 1, timeout: float = _LONGEST) -> bytes:
        """Wait until `wanted` was shown; everything that was shown so far."""
        self.reads(lambda: self.seen.count(wanted) >= times, what=f"{wanted!r}", timeout=timeout)
        return self.seen

    def reads(self, condition: Callable[[], bool], *, what: str, timeout: float = _LONGEST) -> None:
        """Take in what is shown until `condition` is true of it."""
        deadline = time.monotonic() + timeout
        while not condition():
            assert self._more(deadline), f"{what} was not shown: {self.seen!r}"

    def ended(self, timeout: float = _LONGEST) -> int:
        """Wait for its end, with everything it still shows; its exit code."""
        deadline = time.monotonic() + timeout
        while self.child.poll() is None:
            assert time.monotonic() < deadline, f"it has not ended: {self.seen!r}"
            self._more(time.monotonic() + 0.05)
        while self._more(time.monotonic()):
            pass
        return self.child.returncode

    def _more(self, deadline: float) -> bool:
        if not select.select([self._ours], [], [], max(deadline - time.monotonic(), 0.0))[0]:
            return False
        try:
            data = os.read(self._ours, 65536)
        except OSError:
            return False  # nobody has the other end open any more
        self.seen += data
        return bool(data)

    @property
    def attributes(self) -> list[Any]:
        """How the terminal behaves now, as `stty` would say."""
        return termios.tcgetattr(self._ours)

    def resize(self, rows: int, columns: int) -> None:
        """Give the window another size; the kernel tells the program."""
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


@contextmanager
def on_a_terminal(
    *words: str, rows: int = 24, columns: int = 100, env: Mapping[str, str] | None = None, argv: list[str] | None = None
) -> Iterator[Terminal]:
    """`taskyard WORDS` in the foreground of a terminal; killed at the end if it still runs."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    child = subprocess.Popen(
        argv or [sys.executable, "-m", "taskyard", *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", **(env or {})},
        start_new_session=True,
        preexec_fn=_take_terminal,
    )
    terminal = Terminal(child, ours)
    try:
        yield terminal
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
        os.close(theirs)  # until now, so that what it shows at its end can be read, and how it leaves the terminal
        os.close(ours)


def _take_terminal() -> None:
    """Make the terminal ours, as a login does: its keys become signals for us."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def before_hang_up(words: list[str], *, until_shown: bytes, leads: bool = True) -> tuple[subprocess.Popen[bytes], int]:
    """`taskyard WORDS` on a terminal, once it has shown something; who closes the descriptor takes that away.

    `leads`: it leads the session of the terminal, and so the kernel tells it.
    """
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "taskyard", *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm"},
        start_new_session=True,
        preexec_fn=_take_terminal if leads else None,
    )
    os.close(theirs)
    shown(ours, until_shown)
    return child, ours
