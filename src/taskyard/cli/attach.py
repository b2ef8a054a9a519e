"""`taskyard run` without -d: start a job, show its output live, forward input, report its exit.

The command is unaffected: it runs under its supervisor and writes to its output file, watched or not.

    Ctrl+B (or another key)     detach; the job continues, its exit is reported by a notice
    Ctrl+C, SIGTERM             stop the job, with proof; a second time, without grace
    the terminal goes away      like Ctrl+B; detected by SIGHUP or a failing write
    a closed pipe               stop the job: its output has no reader any more

Terminal modes (`Keyboard`); the terminal is restored on exit, and left alone in the background of a shell:

    keys     one at a time, not echoed: only the detach key has a meaning
    lines    edited by the user, for a job that reads our input; the detach key ends a line at once
    raw      every key unchanged, Ctrl+C too: for a job with a terminal of its own

Input (`JobInput`):

    keys of a screen     to the supervisor, without an acknowledgement: the user sees the effect
    lines of a user      to the supervisor, which acknowledges them
    piped input          directly to the command's pipe at its reading speed; else through the supervisor

`StatusLine` is drawn below the output and erased before anything else is printed. If the command left the
cursor inside a line, it is drawn one line lower and the cursor moved back; if the cursor position is unknown,
nothing is drawn. `ScreenModes` tracks modes (`ESC [ ? NUMBER h` on, `l` off) such as the alternate screen, a
hidden cursor or mouse reports, which a full-screen program that is detached or killed leaves on. `Signals`
turns signals into a readable descriptor: none interrupts an operation, none is missed.
"""

from __future__ import annotations

import os
import re
import select
import signal
import sys
import termios
import time

from taskyard import config
from taskyard.cli.job import exit_code, format_stop
from taskyard.cli.output import answer, is_hung_up, is_terminal, mute_hung_up, print_info, style, warn
from taskyard.core.text import colorize, cut, duration, escape_control, width
from taskyard.core.values import NamedTuple, as_object, as_text
from taskyard.errors import BackgroundDisabled, JobEnded, TaskyardError
from taskyard.jobs.agent_reports import agent_line
from taskyard.jobs.control import CHUNK_SIZE, stop_result
from taskyard.jobs.control import send_control as control_tell
from taskyard.jobs.environment import check_background
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.job_text import state_text, status_line
from taskyard.jobs.model import JobStatus, job_json
from taskyard.jobs.output import Output, TerminalText
from taskyard.jobs.query import read_job
from taskyard.jobs.supervisor.child_jobs import write_control
from taskyard.jobs.supervisor.io import InputPipe
from taskyard.jobs.wait import supervisor_pidfd
from taskyard.storage.inotify import Inotify
from taskyard.ui.jobs import background_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, BinaryIO, TextIO

    from taskyard.cli.main import Args
    from taskyard.core.text import Style
    from taskyard.jobs.jobs import Jobs
    from taskyard.jobs.kind import Spec
    from taskyard.jobs.model import Job
    from taskyard.ui.jobs import Key


#: Retry interval in seconds for input the command does not read yet, where no pipe reports it.
_OFFER_INTERVAL = 0.05


class JobInput:
    """Input for one job; no more is read than the job has accepted."""

    def __init__(self, home: str, job_id: str) -> None:
        self._home, self._id = home, job_id
        self._folder = JobPaths(home, job_id)
        self._pipe = InputPipe(self._folder)
        self._held = b""  # typed, and not accepted yet
        self._how = ""
        self._offer_at = 0.0
        self.is_closed = False  #: the job accepts no more input

    @property
    def is_taken(self) -> bool:
        """Whether all input was accepted."""
        return not self._held

    @property
    def next_offer(self) -> float:
        """When to offer the rest again, if no event comes before."""
        return self._offer_at if self._held and self._pipe.fd is None else float("inf")

    def take(self, data: bytes, *, how: str) -> None:
        """Pass `data` to the job, as `keys`, `lines` or `poured`."""
        self._held, self._how = data, how
        self._offer()

    def listen(self, poll: select.poll) -> int | None:
        """Register the pipe with `poll` to learn when the command reads; return its descriptor, if any."""
        if self._pipe.fd is not None:
            poll.register(self._pipe.fd, select.POLLOUT)
        return self._pipe.fd

    def go_on(self) -> None:
        """Offer the rest if it is time, or the command may have read."""
        if self._held and (self._pipe.fd is not None or time.monotonic() >= self._offer_at):
            self._offer()

    def end(self) -> None:
        """Close the command's input."""
        self._wish({"do": "close_input"})

    def close(self) -> None:
        """Close our end only: another process may close the input."""
        self._pipe.close()

    def _offer(self) -> None:
        if self._how == "poured" and (rest := self._pipe.offer(self._held)) is not None:
            self._held = rest
            write_control(self._folder, {"do": "answer", "text": ""})  # marks the input as attended
            return
        piece = self._held[:CHUNK_SIZE]
        wish: dict[str, object] = {"do": "answer", "text": piece.decode("utf-8", "surrogateescape")}
        if write_control(self._folder, wish) if self._how == "keys" else self._wish(wish):
            self._held = self._held[CHUNK_SIZE:]
            self._offer_at = 0.0
            return
        self._offer_at = time.monotonic() + _OFFER_INTERVAL
        job = read_job(self._home, self._id)
        if not job.takes_input and job.attempt > job.retries:
            self._held, self.is_closed = b"", True

    def _wish(self, wish: dict[str, object]) -> bool:
        try:
            return control_tell(self._home, self._id, wish)
        except JobEnded:
            return True  # too late, and irrelevant now


#: Poll interval for output in seconds, without inotify.
_POLL_INTERVAL = 0.1

#: Poll interval in seconds: a shell does not notify a program that it is in the foreground again.
_FOREGROUND_POLL = 0.5

#: Seconds a stop may take beyond its grace before it is reported as failed.
_STOP_MARGIN = 8.0


class AttachResult(NamedTuple):
    """How watching a job ended."""

    job: Job
    signal: int = 0  #: the signal that made us leave
    moved: bool = False  #: the user moved it to the background


class AttachedJob:
    """One job watched from this terminal."""

    def __init__(
        self,
        jobs: Jobs,
        job: Job,
        *,
        signals: Signals,
        keyboard: Keyboard,
        live: LiveOutput,
        hint: str = "",
        reads: bool = False,
    ) -> None:
        """Watch `job`.

        Args:
            jobs: Where it is.
            job: As it was started.
            signals: Signals received since before it was started.
            keyboard: Source of keys and input.
            live: Shows its output.
            hint: Which key moves it to the background, in words.
            reads: Whether it reads our standard input.
        """
        self._jobs, self._job = jobs, job
        self._folder = JobPaths(jobs.home, job.id)
        self._signals, self._keyboard, self._live = signals, keyboard, live
        self._hint, self._reads = hint, reads
        self._input = JobInput(jobs.home, job.id)
        self._look_at = 0.0
        self._input_is_over = False
        self._stops, self._signal, self._gives_up = 0, 0, float("inf")
        self._is_done = self._moved = False

    def watch(self) -> AttachResult:
        """Watch until the job has ended or we detach."""
        try:
            with self._keyboard:
                self._stay()
        except BrokenPipeError:
            self._jobs.stop(self._job.id)
            raise
        except BaseException:
            self._to_background()
            raise
        finally:
            self._input.close()
            self._live.leave()
        return AttachResult(
            self._jobs.wait(self._job.id, timeout=0.0 if self._is_done else _STOP_MARGIN), self._signal, self._moved
        )

    def _stay(self) -> None:
        """Follow until the job has ended and all is shown; the terminal may disappear meanwhile."""
        while True:
            try:
                self._follow()
                while not self._is_done and self._live.show():
                    pass
                return
            except OSError:
                if not mute_hung_up():
                    raise
                self._hang_up()

    def _follow(self) -> None:
        """Follow until the supervisor has exited, or we detach."""
        poll = select.poll()
        poll.register(self._signals.fd, select.POLLIN)
        events = _watch_folder(self._folder)
        if events is not None:
            poll.register(events.fd, select.POLLIN)
        try:
            while not self._is_done and (keeper := supervisor_pidfd(self._folder)) is not None:
                poll.register(keeper, select.POLLIN)
                try:
                    self._until_gone(poll, events, keeper)
                finally:
                    poll.unregister(keeper)
                    os.close(keeper)
        finally:
            if events is not None:
                events.close()

    def _until_gone(self, poll: select.poll, events: Inotify | None, keeper: int) -> None:
        while not self._is_done:
            more = self._live.show()
            self._live.print_news()
            self._refresh_status()
            self._listen(poll)
            pipe = self._input.listen(poll)
            patience = 0.0 if more else self._patience(blind=events is None)
            ready = {fd for fd, _ in poll.poll(patience * 1000)}
            if pipe is not None:
                poll.unregister(pipe)
            if events is not None and events.fd in ready:
                events.read()
            for number in self._signals.read():  # before any key: what came first, such as a new size, is handled first
                self._heard(number)
            if 0 in ready and not self._is_done:
                self._typed(self._keyboard.read())
            elif pipe is None or pipe in ready:
                self._input.go_on()
            self._is_done = self._is_done or time.monotonic() > self._gives_up
            if keeper in ready:
                return

    def _listen(self, poll: select.poll) -> None:
        """Poll standard input if it is needed and earlier input was accepted."""
        reads = self._reads and not self._input.is_closed
        wanted = (self._keyboard.is_on or reads) and self._input.is_taken and not self._input_is_over
        if wanted:
            poll.register(0, select.POLLIN)
            return
        try:
            poll.unregister(0)
        except KeyError:
            pass  # it was not registered

    def _patience(self, *, blind: bool) -> float:
        now = time.monotonic()
        moments = [self._gives_up, self._input.next_offer]
        moments.append(self._look_at if self._keyboard.is_in_background else self._live.next_drawing)
        if blind:
            moments.append(now + _POLL_INTERVAL)
        return min(max(min(moments) - now, 0.0), 3600.0)

    def _refresh_status(self) -> None:
        """Draw the status, but not while a shell has us in the background."""
        if self._keyboard.is_in_background and time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + _FOREGROUND_POLL
            self._keyboard.take()
        if not self._keyboard.is_in_background:
            self._live.draw_status(*self._keys())

    def _keys(self) -> tuple[str, ...]:
        """Return the meaning of the keys, in words."""
        if self._stops:
            return ("stopping; press Ctrl+C again to kill",)
        return (self._hint, "Ctrl+C stops it") if self._keyboard.is_on else ()

    # -- input ---------------------------------------------------------------------------------

    def _typed(self, data: bytes) -> None:
        """Handle keys or piped input: ours, or the job's."""
        if not data:
            self._input_is_over = True
            if is_hung_up(0):
                self._hang_up()
                return
            if self._reads and self._keyboard.how != "raw":
                self._input.end()
            return
        before, leave = self._keyboard.split(data)
        if self._reads and before:
            how = "keys" if self._keyboard.how == "raw" else "lines" if self._keyboard.is_on else "poured"
            self._input.take(before, how=how)
        if leave and self._to_background(tell_person=True):
            self._moved = self._is_done = True

    # -- leaving -------------------------------------------------------------------------------

    def _heard(self, number: int) -> None:
        if number in (signal.SIGINT, signal.SIGTERM):
            self._stop(number)
        elif number == signal.SIGHUP:
            self._hang_up()
        elif number == signal.SIGWINCH and self._live.has_screen:
            self._resize()
        elif number == signal.SIGTSTP:
            self._live.leave()
            self._keyboard.give_back()
            self._signals.suspend()
            self._keyboard.take()
        elif number == signal.SIGCONT:
            self._keyboard.take()

    def _hang_up(self) -> None:
        """Handle the loss of the terminal, or SIGHUP sent by a process; both may occur."""
        mute_hung_up()
        if self._signal != signal.SIGHUP:
            self._signal = signal.SIGHUP
            if self._to_background():
                self._is_done = True
            else:
                self._stop(signal.SIGHUP)

    def _stop(self, number: int) -> None:
        """Stop the job; the second time without grace; the third time, leave at once."""
        self._signal = self._signal or number
        self._stops += 1
        by = "Ctrl+C" if number == signal.SIGINT else signal.Signals(number).name
        wish: dict[str, object] = {"do": "stop", "by": by}
        write_control(self._folder, wish if self._stops == 1 else {**wish, "grace": 0})
        self._gives_up = time.monotonic() + (self._job.grace if self._stops == 1 else 0.0) + _STOP_MARGIN
        self._is_done = self._stops > 2
        self._live.draw_soon()

    def _to_background(self, *, tell_person: bool = False) -> bool:
        """Let the job continue in the background; False if that is disabled, or it has ended."""
        try:
            return self._jobs.to_background(self._job.id)
        except BackgroundDisabled as error:
            if tell_person:
                self._live.say(f"Error: {error}")
        except TaskyardError:
            pass  # it has ended, or its supervisor does not answer
        return False

    def _resize(self) -> None:

        if (size := window()) is not None:
            write_control(self._folder, {"do": "size", "rows": size[0], "columns": size[1]})


def _watch_folder(folder: JobPaths) -> Inotify | None:
    """Watch the job's folder; None if there are no inotify instances or watches left: then poll."""
    try:
        events = Inotify()
    except OSError:
        return None
    try:
        events.add(folder.path)
    except OSError:
        events.close()
        return None
    return events


#: Indexes in `termios` attributes: flags of input, output and line mode, and control characters.
_IN, _OUT, _LINE, _CHARACTERS = 0, 1, 3, 6

#: Line-editing characters; one equal to the detach key is disabled.
_EDITING = (termios.VKILL, termios.VWERASE, termios.VREPRINT, termios.VLNEXT, termios.VDISCARD)

#: Bytes per read: of keys what fits into one message to a supervisor, else what fits into a pipe.
_KEYS_CHUNK, _PIPE_CHUNK = 512, 65536


class Keyboard:
    """Standard input; if a terminal, its mode is changed while we are in the foreground."""

    def __init__(self, how: str, key: Key | None) -> None:
        """`how`: keys, lines or raw."""
        self.how = how
        self._key = key
        self._before: list[Any] | None = None
        self._is_terminal = is_terminal(sys.stdin) and is_terminal(sys.stdout)
        self.is_on = False  #: whether it is a terminal in our mode

    def __enter__(self) -> Keyboard:
        self.take()
        return self

    def __exit__(self, *_: object) -> None:
        self.give_back()

    def take(self) -> None:
        """Set our mode, if it is a terminal and we are in its foreground."""
        if not self._is_terminal or not _is_foreground():
            self.is_on = False
            return
        try:
            if self._before is None:
                self._before = termios.tcgetattr(0)
            termios.tcsetattr(0, termios.TCSANOW, self._wanted(termios.tcgetattr(0)))
        except termios.error:
            return  # it was closed meanwhile
        self.is_on = True

    @property
    def is_in_background(self) -> bool:
        """Whether it is a terminal used by another process group: we are in the background of a shell."""
        return self._is_terminal and not self.is_on

    def give_back(self) -> None:
        """Restore the original mode."""
        if not self.is_on or self._before is None:
            return
        self.is_on = False
        try:
            termios.tcsetattr(0, termios.TCSANOW, self._before)
        except termios.error:
            pass  # nothing is left to restore

    def read(self) -> bytes:
        """Read input; empty at end of file."""
        try:
            return os.read(0, _KEYS_CHUNK if self.how == "raw" else _PIPE_CHUNK)
        except OSError:
            return b""  # the terminal is gone

    def split(self, data: bytes) -> tuple[bytes, bool]:
        """Return the input before the detach key, and whether that key was in it."""
        if self._key is None or not self.is_on:
            return data, False
        before, found, _ = data.partition(self._key.byte)
        return before, bool(found)

    def _wanted(self, now: list[Any]) -> list[Any]:
        if self.how == "raw":
            return _raw(now)
        if self.how == "keys":
            now[_LINE] &= ~(termios.ICANON | termios.ECHO | termios.IEXTEN)
            _set(now, {termios.VMIN: 1, termios.VTIME: 0})
        elif self._key is not None:
            byte = self._key.byte
            _set(now, {at: b"\0" for at in _EDITING if now[_CHARACTERS][at] == byte} | {termios.VEOL: byte})
        return now


def _raw(now: list[Any]) -> list[Any]:
    """Set raw mode: nothing is translated on input or output."""
    now[_IN] &= ~(
        termios.BRKINT
        | termios.ICRNL
        | termios.IGNCR
        | termios.INLCR
        | termios.INPCK
        | termios.ISTRIP
        | termios.IXON
        | termios.PARMRK
    )
    now[_OUT] &= ~termios.OPOST
    now[_LINE] &= ~(termios.ECHO | termios.ECHONL | termios.ICANON | termios.IEXTEN | termios.ISIG)
    _set(now, {termios.VMIN: 1, termios.VTIME: 0})
    return now


def _set(now: list[Any], characters: Mapping[int, bytes | int]) -> None:
    now[_CHARACTERS] = [characters.get(at, before) for at, before in enumerate(now[_CHARACTERS])]


def _is_foreground() -> bool:
    """Return whether we may change the terminal: from the background, that would stop this process."""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return True  # not our controlling terminal: it has no foreground group


def window() -> tuple[int, int] | None:
    """Return rows and columns of the terminal on stdout."""
    try:
        columns, rows = os.get_terminal_size(1)
    except OSError:
        return None
    return (rows, columns) if rows > 0 and columns > 0 else None


#: Seconds after which the status line with the keys appears.
_HINT_AFTER = 2.0

#: Seconds without output that are worth reporting.
_QUIET_AFTER = 5.0

#: Seconds between two drawings of the status line: without output, and during output.
_DRAW_INTERVAL, _MIN_DRAW_INTERVAL = 1.0, 0.1

#: Maximum characters of an agent's current activity: the keys follow it.
_MAX_LINE = 60

#: Bytes per read, and reads before other events are checked.
_CHUNK, _MAX_PARTS = 1 << 18, 8


class NoOutput:
    """Hides the output: of an agent the user wants the answer and the current activity."""

    def feed(self, data: bytes) -> str:
        """Return nothing."""
        return ""

    def finish(self) -> str:
        """Return nothing."""
        return ""


class LiveOutput:
    """Shows one job's output to the user."""

    def __init__(
        self,
        jobs: Jobs,
        job: Job,
        *,
        out: BinaryIO,
        status: StatusLine,
        modes: ScreenModes | None = None,
        text: TerminalText | NoOutput | None = None,
    ) -> None:
        """Show `job`.

        Args:
            jobs: Where it is.
            job: As it was started.
            out: Stream for its output.
            status: The status line.
            modes: The modes it set on our terminal, if it has one of its own: then the whole screen is the
                job's.
            text: Removes unsafe control sequences, where its output goes to a terminal it does not know of.
        """
        self._jobs, self._job = jobs, job
        self._folder = JobPaths(jobs.home, job.id)
        self._output = Output(self._folder)
        self._facts_at: tuple[int, int] | None = None
        self._shown_limit = ""
        self._shown_question: tuple[str, object] | None = None
        self._out, self._status, self._modes, self._text = out, status, modes, text
        self._offset = 0
        self._draws = status.is_on and modes is None  # nothing of ours is drawn into the job's screen
        self._is_told = False  # once is enough on a terminal that cannot erase
        self._began = self._printed_at = time.monotonic()
        self._draw_at = self._began + _HINT_AFTER if self._draws else float("inf")

    @property
    def has_screen(self) -> bool:
        """Whether the whole screen belongs to the job."""
        return self._modes is not None

    def draw_soon(self) -> None:
        """Redraw soon: something on the status line changed."""
        if self._draws:
            self._draw_at = min(self._draw_at, time.monotonic())

    @property
    def next_drawing(self) -> float:
        """When to draw the status line again."""
        return self._draw_at

    def show(self) -> bool:
        """Write new output; return whether there may be more."""
        for _ in range(_MAX_PARTS):
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
            self._draw_at = min(self._draw_at, max(self._printed_at + _MIN_DRAW_INTERVAL, self._began + _HINT_AFTER))

    def print_news(self) -> None:
        """Print questions and rate limits, each once, even where no status line is drawn."""
        if (state := _file_version(self._folder.facts)) is None or state == self._facts_at:
            return
        self._facts_at = state
        job = self._jobs.get(self._job.id)
        limit = "" if job.rate_limited is None else job.rate_limited.state()
        if limit and limit != self._shown_limit:
            self._shown_limit = limit
            self.say(f"{job.id} {limit}")
        question = escape_control(as_text(job.facts.get("question")), lines=True) if job.needs_input else ""
        asked = (question, job.facts.get("askedAt")) if question else None
        if asked is not None and asked != self._shown_question:
            self.say(f"{job.id} asks: {question}\nAnswer with: taskyard send {job.id} TEXT")
        self._shown_question = asked

    def draw_status(self, *keys: str) -> None:
        """Draw the status and the keys, if it is time."""
        now = time.monotonic()
        if now < self._draw_at or not self._draws:
            return
        self._is_told = not self._status.can_erase
        self._draw_at = float("inf") if self._is_told else now + _DRAW_INTERVAL
        self._status.draw([*self._words(now), *filter(None, keys)])

    def _words(self, now: float) -> list[str]:
        job = self._jobs.get(self._job.id)
        words = [f"{job.id} {state_text(job)} {duration(now - self._began)}"]
        if job.waits_for:
            words.append(f"waits for {escape_control(job.waits_for)}")
        elif now - self._printed_at >= _QUIET_AFTER:
            words.append(f"no output for {duration(now - self._printed_at)}")
        words += _agent_facts(job)
        if job.attempt > 1:
            words.append(f"attempt {job.attempt} of {job.retries + 1}")
        return words

    def say(self, text: str) -> None:
        """Print a permanent line."""
        # In raw mode a line feed does not return to the first column.
        self._status.say(f"{text}\r" if self.has_screen else text)

    def leave(self) -> None:
        """Erase the status line, and undo the job's changes to our terminal."""
        self._status.erase()
        if self._text is not None:
            self._out.write(self._text.finish().encode())
            self._out.flush()
        if self._modes is not None:
            sys.stdout.write(self._modes.reset())
            sys.stdout.flush()


def _file_version(path: str) -> tuple[int, int] | None:
    """Return the version of a file; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _agent_facts(job: Job) -> list[str]:
    """Return an agent's usage so far and its current activity."""
    if (line := agent_line(job)) is None:
        return []
    usage = as_object(job.facts.get("usage")) or {}
    counts = ((usage.get("tool_uses"), "tools"), (usage.get("total_tokens"), "tokens"))
    used = [f"{count:,} {what}" for count, what in counts if isinstance(count, int) and count]
    return [*used, *([line[:_MAX_LINE]] if line else [])]


_MODES = re.compile(rb"\x1b\[\?([0-9;]{1,40})([hl])")

#: Modes that are off by default: application cursor keys, mouse, focus, alternate screens, bracketed paste.
_USUALLY_OFF = frozenset((1, 9, 47, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1047, 1049, 2004, 2026))
_CURSOR = 25  #: visible by default

#: Maximum bytes of a sequence split between two chunks.
_MAX_SEQUENCE = 48


class ScreenModes:
    """The modes that differ from their defaults."""

    def __init__(self) -> None:
        self._unusual: dict[int, None] = {}  # in the order they were set
        self._rest = b""

    def printed(self, data: bytes) -> None:
        """Track the modes set by the output."""
        if b"\x1b" not in data and not self._rest:
            return
        data = self._rest + data
        for found in _MODES.finditer(data):
            for number in filter(None, found[1].split(b";")):
                self._set(int(number), is_on=found[2] == b"h")
        at = data.rfind(b"\x1b", max(len(data) - _MAX_SEQUENCE, 0))
        self._rest = data[at:] if at >= 0 and not _MODES.match(data, at) else b""

    def _set(self, mode: int, *, is_on: bool) -> None:
        if mode == _CURSOR or mode in _USUALLY_OFF:
            if is_on == (mode == _CURSOR):
                self._unusual.pop(mode, None)
            else:
                self._unusual[mode] = None

    def reset(self) -> str:
        """Return the sequences that restore all modes, and colours, which every program may have left on."""
        undone = [f"\x1b[?{mode}{'h' if mode == _CURSOR else 'l'}" for mode in reversed(self._unusual)]
        self._unusual.clear()
        return "".join(undone) + "\x1b[0m"


#: Signals handled while watching: termination, loss or resize of the terminal, suspend and continue.
_SIGNALS = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGWINCH,
    signal.SIGTSTP,
    signal.SIGCONT,
)


class Signals:
    """While open, these signals only make `fd` readable; afterwards the handlers are restored."""

    def __init__(self) -> None:
        self.fd, self._theirs = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def __enter__(self) -> Signals:
        self._fd_before = signal.set_wakeup_fd(self._theirs, warn_on_full_buffer=False)
        self._before = {number: signal.signal(number, _ignore) for number in _SIGNALS if not _is_ignored(number)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._fd_before)
        os.close(self.fd)
        os.close(self._theirs)

    def read(self) -> list[int]:
        """Return the signals received since the last call, in order."""
        try:
            return list(os.read(self.fd, 4096))
        except BlockingIOError:
            return []

    def suspend(self) -> None:
        """Suspend this process, as Ctrl+Z does, until SIGCONT."""
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, _ignore)


def _is_ignored(number: int) -> bool:
    """Return whether the parent had it ignored, as `nohup` and shells without job control do."""
    return signal.getsignal(number) is signal.SIG_IGN


def _ignore(*_: object) -> None:
    """Do nothing: the number is in the pipe already."""


#: Maximum bytes remembered of an unfinished line: a longer one wraps anyway.
_MAX_OPEN_LINE = 1024

_CLEAR, _UP = "\r\x1b[K", "\x1b[A"


class StatusLine:
    """A status line on stderr that can be erased."""

    def __init__(self, style: Style, *, wanted: bool, env: Mapping[str, str] | None = None) -> None:
        """`wanted`: if False, nothing is ever drawn."""
        env = os.environ if env is None else env
        self.is_on = wanted and is_terminal(sys.stderr)
        self.can_erase = env.get("TERM", "dumb") not in ("", "dumb")
        self._style = style
        self._open_line = b""  # output since the last line break
        self._erase = ""  # sequence that erases the line; empty if none is drawn

    def printed(self, data: bytes) -> None:
        """Track the output to know the cursor position."""
        begin = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        self._open_line = (data[begin:] if begin else self._open_line + data)[-_MAX_OPEN_LINE:]

    def draw(self, words: Sequence[str]) -> None:
        """Show `words` in place of the last status."""
        column = self._column()
        if not self.is_on or column is None:
            return
        line = cut((" | " if self._style.ascii else " · ").join(words), _columns() - 1, self._style)
        line = colorize(line, "muted", self._style)
        if not self.can_erase:
            sys.stderr.write(("\n" if column else "") + f"{line}\n")
            self._open_line = b""
        else:
            self.erase()
            sys.stderr.write(("\n" if column else "") + line)
            self._erase = _CLEAR + (f"{_UP}\x1b[{column + 1}G" if column else "")
        sys.stderr.flush()

    def erase(self) -> None:
        """Erase the status line."""
        if self._erase:
            sys.stderr.write(self._erase)
            sys.stderr.flush()
            self._erase = ""

    def say(self, text: str) -> None:
        """Print permanent text on its own lines."""
        self.erase()
        if self.is_on and self._open_line:
            sys.stderr.write("\n")
            self._open_line = b""
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    def _column(self) -> int | None:
        """Return the cursor column the command left; None if unknown."""
        text = self._open_line.decode("utf-8", "replace")
        if not text:
            return 0
        column = width(text)
        return column if text.isprintable() and column < _columns() else None


def _columns() -> int:
    try:
        return os.get_terminal_size(2).columns or 80
    except OSError:
        return 80


def run_attached(
    args: Args,
    jobs: Jobs,
    spec: Spec,
    warnings: Sequence[str] = (),
    *,
    after: Sequence[str] = (),
    after_any: Sequence[str] = (),
    pty: bool = False,
    reads: bool = False,
) -> int:
    """Start a job, watch it, and return its exit code. It may have a terminal, or read our input."""
    if not args.as_json:
        for text in warnings:
            warn(text)
    seen = start_and_watch(args, jobs, spec, after=after, after_any=after_any, pty=pty, reads=reads)
    code = result_code(seen)
    if args.as_json:
        answer(args, lambda: result_json(seen, code), list, warnings=warnings)
    else:
        print_result(args, seen)
    return code


def start_and_watch(
    args: Args,
    jobs: Jobs,
    spec: Spec,
    *,
    after: Sequence[str] = (),
    after_any: Sequence[str] = (),
    pty: bool = False,
    reads: bool = False,
    shows: bool = True,
) -> AttachResult:
    """Start a job and watch it; return the result. Without `shows`, its output is hidden."""
    key = background_key(config.load_settings().background_key)
    with Signals() as signals:
        is_screen = pty and is_terminal(sys.stdin) and is_terminal(sys.stdout) and not args.as_json
        job = jobs.start(
            spec,
            backgrounded=False,
            after=after,
            after_any=after_any,
            window=window() if is_screen else None,
        )
        return _attach(args, jobs, job, signals, key, is_screen=is_screen, reads=reads, shows=shows)


def _attach(
    args: Args, jobs: Jobs, job: Job, signals: Signals, key: Key | None, *, is_screen: bool, reads: bool, shows: bool
) -> AttachResult:
    how = "raw" if is_screen else "lines" if reads else "keys"
    hint = _key_hint(key)
    if is_screen and hint:
        print_info(args, f"({hint}; all other keys go to the command)")
    # With --json, stdout carries only the JSON result.
    out = _binary_stream(sys.stderr if args.as_json else sys.stdout)
    wanted = not args.quiet and (args.as_json or not shows or is_terminal(sys.stdout))
    text = (TerminalText(colours=True) if not is_screen and out.isatty() else None) if shows else NoOutput()
    live = LiveOutput(
        jobs,
        job,
        out=out,
        status=StatusLine(style(args, sys.stderr), wanted=wanted),
        modes=ScreenModes() if is_screen else None,
        text=text,
    )
    reads = is_screen or reads
    return AttachedJob(
        jobs, job, signals=signals, keyboard=Keyboard(how, key), live=live, hint=hint, reads=reads
    ).watch()


def _binary_stream(stream: TextIO | None) -> BinaryIO:
    """Return the binary stream for raw output; a closed one discards it."""
    return stream.buffer if stream is not None else open(os.devnull, "wb")  # until this process exits


def _key_hint(key: Key | None) -> str:
    """Return the hint for the detach key, if there is one and it is enabled."""
    try:
        check_background()
    except BackgroundDisabled:
        return ""
    return "" if key is None else f"{key.name} moves it to the background"


def result_code(seen: AttachResult) -> int:
    """Return the exit code: the signal that made us leave, or the job's result."""
    if seen.signal:
        return 128 + seen.signal
    return 0 if seen.moved else exit_code([seen.job])


def result_json(seen: AttachResult, code: int) -> dict[str, object]:
    """Return the result as JSON values."""
    return {
        **job_json(seen.job),
        "code": code,
        "interrupted": seen.signal == signal.SIGINT,
        "backgroundTaskId": seen.job.id if seen.job.is_backgrounded and not seen.job.is_final else None,
        "backgroundedByUser": seen.moved,
    }


def print_result(args: Args, seen: AttachResult) -> None:
    """Print what the output and the exit code do not show."""
    job, end = seen.job, seen.job.end
    if end is None:
        goes_on = "Running in the background" if job.is_backgrounded else "Not ended yet"
        print_info(args, f"{goes_on}: {job.id}. See `taskyard logs -f {job.id}`, `taskyard stop {job.id}`.")
        return
    if seen.signal or end.cause != "exited":
        look = style(args, sys.stderr)._replace(colour=False)
        stopped = stop_result(job._replace(status=JobStatus.RUNNING), job)
        print_info(args, format_stop(stopped, look) if seen.signal else status_line(job, look))
    if end.leftovers:
        print_info(
            args,
            f"Stopped {end.leftovers} {'process' if end.leftovers == 1 else 'processes'} left by the command.",
        )
    if end.output_lost:
        print_info(args, f"Some output was lost: {end.output_lost}.")
