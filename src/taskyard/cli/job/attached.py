"""
Watching a job from a terminal: its output as it comes, a key that moves it to the background, Ctrl+C that stops it.

The command does not notice any of it: it runs under its keeper and writes to its file, watched or not.
"""

from __future__ import annotations

import os
import select
import sys
import time

from taskyard.disk.inotify import Inotify
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.output_text import TerminalText
from taskyard.runtime.waiting import keeper_pidfd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.runtime.jobs import Jobs
    from taskyard.runtime.model import Job

#: After this long without an end a person may wonder what to do.
_HINT_AFTER = 2.0

_CTRL_B, _CTRL_BRACKET = b"\x02", b"\x1d"
_CHUNK = 1 << 16


class _Moved(Exception):
    """The person sent it to the background."""


def watch(jobs: Jobs, job: Job, *, quiet: bool = False, safely: bool = False) -> Job:
    """Show a job's output until it is over, or moved to the background.

    `safely`: nothing of it acts on a terminal; for a job that has no terminal of its own, and no use for ours.
    """
    folder = JobFolder(jobs.home, job.id)
    with _Keyboard() as keyboard:
        view = _View(folder, keyboard, hint=not quiet and keyboard.is_on, safely=safely and sys.stdout.isatty())
        try:
            view.follow()
        except _Moved:
            jobs.to_background(job.id)
            return jobs.get(job.id)
        except KeyboardInterrupt:
            stopped = jobs.stop(job.id)[0]
            view.show()
            return stopped.job
    return jobs.wait(job.id)


class _View:
    """What was shown so far, and what to wait for."""

    def __init__(self, folder: JobFolder, keyboard: _Keyboard, *, hint: bool, safely: bool) -> None:
        self._folder = folder
        self._keyboard = keyboard
        self._hint_at = time.monotonic() + _HINT_AFTER if hint else None
        self._output = os.open(folder.output, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        self._offset = 0
        self._safe = TerminalText(colours=True) if safely else None

    def follow(self) -> None:
        """Until the job is over."""
        events = Inotify()
        try:
            events.add(self._folder.path)
            poll = select.poll()
            poll.register(events.fd, select.POLLIN)
            if self._keyboard.is_on:
                poll.register(0, select.POLLIN)
            while (keeper := keeper_pidfd(self._folder)) is not None:
                poll.register(keeper, select.POLLIN)
                try:
                    self._until_gone(poll, events, keeper)
                finally:
                    poll.unregister(keeper)
                    os.close(keeper)
        finally:
            events.close()
        self.show()
        if self._safe is not None:
            sys.stdout.write(self._safe.finish())

    def _until_gone(self, poll: select.poll, events: Inotify, keeper: int) -> None:
        while True:
            self.show()
            ready = {fd for fd, _ in poll.poll(self._patience())}
            if events.fd in ready:
                events.read()
            if 0 in ready and self._keyboard.is_on and self._keyboard.wants_background():
                raise _Moved
            if not ready:
                self._show_hint()
            if keeper in ready:
                return

    def _patience(self) -> float | None:
        return None if self._hint_at is None else max(self._hint_at - time.monotonic(), 0.0) * 1000

    def _show_hint(self) -> None:
        self._hint_at = None
        sys.stderr.write(f"({self._keyboard.key_name} moves it to the background)\n")

    def show(self) -> None:
        """Write what came since the last time."""
        out = sys.stdout.buffer
        while self._skip_what_is_gone() and (data := os.pread(self._output, _CHUNK, self._offset)):
            self._offset += len(data)
            out.write(data if self._safe is None else self._safe.feed(data).encode())
        out.flush()

    def _skip_what_is_gone(self) -> bool:
        """Pass over what was freed since its output is larger than its cap; whether there is more to show."""
        try:
            data = os.lseek(self._output, self._offset, os.SEEK_DATA)
        except OSError:
            return False  # nothing behind this place
        if data > self._offset:
            sys.stderr.write(f"[{data - self._offset:,} bytes were left out here]\n")
            self._offset = data
        return True


class _Keyboard:
    """Single keys from a terminal, if there is one; Ctrl+C stays what it is."""

    def __init__(self) -> None:
        self.is_on = sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()  # pyright: ignore[reportUnnecessaryComparison]
        in_tmux = bool(os.environ.get("TMUX"))
        self._key, self.key_name = (_CTRL_BRACKET, "Ctrl+]") if in_tmux else (_CTRL_B, "Ctrl+B")
        if len(chosen := os.environ.get("TASKYARD_BACKGROUND_KEY", "")) == 1 and chosen.isalpha():
            self._key, self.key_name = bytes([ord(chosen.upper()) & 0x1F]), f"Ctrl+{chosen.upper()}"

    def __enter__(self) -> _Keyboard:
        if self.is_on:
            import termios

            self._before = termios.tcgetattr(0)
            now = termios.tcgetattr(0)
            now[3] &= ~(termios.ICANON | termios.ECHO)
            termios.tcsetattr(0, termios.TCSADRAIN, now)
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_on:
            import termios

            termios.tcsetattr(0, termios.TCSADRAIN, self._before)

    def wants_background(self) -> bool:
        """Whether the key was among those pressed."""
        data = os.read(0, 1024)
        if not data:
            self.is_on = False
        return self._key in data
