"""What is seen of an attached run: its output as it comes, and below it the line that says how it stands."""

from __future__ import annotations

import os
import sys
import time

from taskyard.runtime.folder import JobFolder
from taskyard.runtime.output import Output
from taskyard.shapes import as_object, as_text
from taskyard.view.agent_text import agent_line
from taskyard.view.job_text import state
from taskyard.view.text import duration, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

    from taskyard.cli.job.screen_modes import ScreenModes
    from taskyard.cli.job.status_line import StatusLine
    from taskyard.runtime.jobs import Jobs
    from taskyard.runtime.model import Job
    from taskyard.runtime.output_text import TerminalText

#: After this long without an end a person may wonder what to do.
_HINT_AFTER = 2.0

#: Silence that is worth a word, in seconds.
_SILENT = 5.0

#: Seconds between two drawings of the status line: while nothing comes, and while something does.
_DRAW_EVERY, _DRAW_LEAST = 1.0, 0.1

#: Characters of what an agent is at: the keys stand behind it.
_LONGEST_LINE = 60

#: Read at a time; after so many parts we look whether somebody wants something.
_CHUNK, _PARTS = 1 << 18, 8


class Nothing:
    """Shows none of an output: of an agent's people want the answer, and what it is at."""

    def feed(self, data: bytes) -> str:
        """Nothing of it."""
        return ""

    def finish(self) -> str:
        """Nor in the end."""
        return ""


class LiveOutput:
    """One job's output, on its way to the person."""

    def __init__(
        self,
        jobs: Jobs,
        job: Job,
        *,
        out: BinaryIO,
        status: StatusLine,
        modes: ScreenModes | None = None,
        text: TerminalText | Nothing | None = None,
    ) -> None:
        """Show `job`.

        Args:
            jobs: Where it is.
            job: As it was started.
            out: Where its output goes.
            status: Where words about it go.
            modes: What it switched on at our terminal, if it has one of its own: then the whole screen is its.
            text: Makes its output harmless, where it goes to a terminal of which it knows nothing.
        """
        self._jobs, self._job = jobs, job
        self._folder = JobFolder(jobs.home, job.id)
        self._output = Output(self._folder)
        self._facts_at: tuple[int, int] | None = None
        self._told_limit = ""
        self._told_question: tuple[str, object] | None = None
        self._out, self._status, self._modes, self._text = out, status, modes, text
        self._offset = 0
        self._draws = status.is_on and modes is None  # nothing of ours is drawn into a screen that is the job's
        self._is_told = False  # once is enough on a terminal that cannot erase
        self._began = self._printed_at = time.monotonic()
        self._draw_at = self._began + _HINT_AFTER if self._draws else float("inf")

    @property
    def has_screen(self) -> bool:
        """Whether the whole screen is the job's."""
        return self._modes is not None

    def draw_soon(self) -> None:
        """Something changed that the status line says."""
        if self._draws:
            self._draw_at = min(self._draw_at, time.monotonic())

    @property
    def next_drawing(self) -> float:
        """When the status line is to be drawn again."""
        return self._draw_at

    def show(self) -> bool:
        """Write what came since the last time; whether there may be more."""
        for _ in range(_PARTS):
            part = self._output.read(self._offset, _CHUNK)
            if part.restarted:
                self.say("[the job truncated its output: from its new beginning]")
            if part.omitted:
                self.say(f"[{part.omitted:,} bytes were left out here: the output was larger than its cap]")
            self._offset = part.next_offset
            if not part.text:
                return False
            self._write(part.text)
        return True

    def _write(self, data: bytes) -> None:
        self._status.erase()
        shown = data if self._text is None else self._text.feed(data).encode()
        self._out.write(shown)
        self._out.flush()
        self._status.printed(shown)
        if self._modes is not None:
            self._modes.printed(data)
        self._printed_at = time.monotonic()
        if self._draws and not self._is_told:
            self._draw_at = min(self._draw_at, max(self._printed_at + _DRAW_LEAST, self._began + _HINT_AFTER))

    def tell_news(self) -> None:
        """Say what a person must know even where nothing is drawn: a question, a rate limit. Each once."""
        if (state := _changed(self._folder.facts)) is None or state == self._facts_at:
            return
        self._facts_at = state
        job = self._jobs.get(self._job.id)
        limit = "" if job.rate_limited is None else job.rate_limited.state()
        if limit and limit != self._told_limit:
            self._told_limit = limit
            self.say(f"{job.id} {limit}")
        question = safe(as_text(job.facts.get("question")), lines=True) if job.needs_input else ""
        asked = (question, job.facts.get("askedAt")) if question else None
        if asked is not None and asked != self._told_question:
            self.say(f"{job.id} asks: {question}\nAnswer with: taskyard send {job.id} TEXT")
        self._told_question = asked

    def draw_status(self, *keys: str) -> None:
        """Say how it stands, and which keys do what, if it is time to."""
        now = time.monotonic()
        if now < self._draw_at or not self._draws:
            return
        self._is_told = not self._status.can_erase
        self._draw_at = float("inf") if self._is_told else now + _DRAW_EVERY
        self._status.draw([*self._words(now), *filter(None, keys)])

    def _words(self, now: float) -> list[str]:
        job = self._jobs.get(self._job.id)
        words = [f"{job.id} {state(job)} {duration(now - self._began)}"]
        if job.waits_for:
            words.append(f"waits for {safe(job.waits_for)}")
        elif now - self._printed_at >= _SILENT:
            words.append(f"no output for {duration(now - self._printed_at)}")
        words += _of_agent(job)
        if job.attempt > 1:
            words.append(f"attempt {job.attempt} of {job.retries + 1}")
        return words

    def say(self, text: str) -> None:
        """Words that stay."""
        # On a terminal in the job's hands a line break does not lead to the line's beginning.
        self._status.say(f"{text}\r" if self.has_screen else text)

    def leave(self) -> None:
        """Take away what we drew, and undo what the job did to our terminal."""
        self._status.erase()
        if self._text is not None:
            self._out.write(self._text.finish().encode())
            self._out.flush()
        if self._modes is not None:
            sys.stdout.write(self._modes.reset())
            sys.stdout.flush()


def _changed(path: str) -> tuple[int, int] | None:
    """What tells one state of a file from the next; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _of_agent(job: Job) -> list[str]:
    """What an agent used so far, and what it is at."""
    if (line := agent_line(job)) is None:
        return []
    usage = as_object(job.facts.get("usage")) or {}
    counts = ((usage.get("tool_uses"), "tools"), (usage.get("total_tokens"), "tokens"))
    used = [f"{count:,} {what}" for count, what in counts if isinstance(count, int) and count]
    return [*used, *([line[:_LONGEST_LINE]] if line else [])]
