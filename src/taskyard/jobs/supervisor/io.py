r"""Descriptors of a supervisor: signals, control pipe, starter's pidfd, command input and terminal.

Control messages are one JSON object per line, written to the `control` pipe:

    {"do": "stop", "by": "ada", "grace": 3}     {"do": "pause"}    {"do": "resume"}
    {"do": "answer", "text": "y\n"}            {"do": "close_input"}
    {"do": "size", "rows": 24, "columns": 80}   {"do": "background", "keep": false}

Each is at most 4,096 bytes, which the kernel writes atomically. If a message has a `token`, its result is
in the job's record under `answers`. Unreadable messages are ignored.

Signals arrive as bytes in a wake-up pipe, so that one `poll` waits for everything.

A typed line goes to the supervisor as a message. A file is written directly to the named pipe `input`: the
kernel passes it on as fast as the command reads, and blocks the writer otherwise. Writers close the pipe as
soon as they have nothing to write, since the command reads end-of-file only when no process has it open
for writing.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import time

from taskyard.core.files import open_pipe
from taskyard.core.values import as_object
from taskyard.jobs.supervisor import command, kernel
from taskyard.jobs.supervisor.command import starter_exit_fd
from taskyard.jobs.supervisor.kernel import HANDLED_SIGNALS, signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from taskyard.jobs.job_dir import JobPaths
    from taskyard.jobs.supervisor import output_cap
    from taskyard.jobs.supervisor.create import JobDir
    from taskyard.jobs.supervisor.queue import IdleSupervisor
    from taskyard.jobs.supervisor.request import JobRequest
    from taskyard.jobs.supervisor.supervise import CommandAttempt


#: Bytes that the kernel writes to a pipe atomically (PIPE_BUF).
MAX_MESSAGE = 4096

#: Bytes of an unterminated line after which it is discarded as garbage.
_MAX_PARTIAL = 16 * MAX_MESSAGE


#: Bytes that the kernel keeps of a process name.
_MAX_COMM = 15


def supervisor_name(job_id: str) -> str:
    """Return the process name of a job's supervisor, as shown by `ps`."""
    return f"taskyard:{job_id}"[:_MAX_COMM]


class ControlReader:
    """Reader of the control pipe, line by line."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._rest = b""

    def read(self) -> Iterator[dict[str, object]]:
        """Yield every message that is available now."""
        try:
            while data := os.read(self._fd, 65536):
                self._rest += data
        except BlockingIOError:
            pass
        *lines, self._rest = self._rest.split(b"\n")
        if len(self._rest) > _MAX_PARTIAL:
            self._rest = b""
        for line in lines:
            try:
                wish = as_object(json.loads(line)) if line else None
            except (ValueError, RecursionError):
                continue
            if wish is not None:
                yield wish


#: Longest `poll` in seconds (it takes an int of milliseconds); longer sleeps are split.
_MAX_POLL = 1e6

_CHUNK = 65536

#: Reads of 4 kB from a terminal per wake-up; then the cap is checked and control messages are read.
_READS_PER_WAKE = 16

#: Bytes copied from a terminal between two checks of the output.
COPY_BURST = _READS_PER_WAKE * 4096

#: Reads that empty any terminal's buffer: none holds more than 640 kB.
_MAX_READS = 256

#: Longest requester name, in characters.
_MAX_NAME = 200

#: Default rows and columns of a terminal.
_DEFAULT_WINDOW = (24, 80)

#: Most bytes buffered for a terminal whose program does not read; more cannot come from typing.
_MAX_UNREAD = 65536


class SupervisorIO:
    """The descriptors of one supervisor, and the `poll` on all of them."""

    def __init__(self, born: JobDir, request: JobRequest, report_stall: Callable[[str], None]) -> None:
        self.report_stall = report_stall
        self._born = born
        self._control_reader = ControlReader(born.control)
        self._poll = select.poll()
        self._wake, theirs = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(theirs, warn_on_full_buffer=False)
        for number in HANDLED_SIGNALS:
            signal.signal(number, _ignore_signal)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED_SIGNALS)
        self._starter = starter_exit_fd(request.starter)
        for fd in (self._wake, born.control, self._starter):
            if fd is not None:
                self._poll.register(fd, select.POLLIN)
        self._input: int | None = None  # write end of the command's input: a pipe, or its terminal
        self._terminal: int | None = None
        self._window = request.window or _DEFAULT_WINDOW
        self._unread = b""  # typed into the terminal, not accepted by it yet
        self._source: output_cap.InputSource | None = None  # what the command reads from, if we write to it
        self.lost = ""  #: why output could not be written, if so

    # -- the command -------------------------------------------------------------------------

    def start(self, request: JobRequest, output: int) -> int:
        """Start the command with its input and output; return its pid."""
        self.let_go()
        if request.pty:
            return self._start_in_terminal(request, output)
        if not request.stdin:
            return command.start(request.plan, output=output, stdin=None)
        from taskyard.jobs.supervisor import output_cap

        theirs, self._input = create_pipe(self._born.descriptor)
        self._source = output_cap.InputSource.of(theirs)
        try:
            return command.start(request.plan, output=output, stdin=theirs)
        finally:
            os.close(theirs)

    def _start_in_terminal(self, request: JobRequest, output: int) -> int:
        from taskyard.jobs.supervisor import output_cap

        ours, theirs = os.openpty()
        try:
            _set_window(theirs, self._window)
            self._source = output_cap.InputSource.of(theirs, is_terminal=True)
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
        """Close the input of an attempt, after copying what is left in its terminal to the output."""
        self.drain()
        if self._terminal is not None:
            self._poll.unregister(self._terminal)
        if self._input is not None:
            self._close(self._input)
        self._input = self._terminal = None
        self._unread = b""

    def type_in(self, data: bytes) -> bool:
        """Write to the command's input; return False if it has none or does not read."""
        if self._input is None:
            return False
        if self._input == self._terminal:
            if len(self._unread) + len(data) > _MAX_UNREAD:
                return False
            self._unread += data
            self._flush_input(self._input)
            return True
        try:
            return os.write(self._input, data) == len(data)
        except BlockingIOError:
            return False  # it may read later
        except OSError:
            self._end_input(self._input)
            return False

    def _end_input(self, pipe: int) -> None:
        """Close the input so that the command reads end-of-file, and record that it takes no more input."""
        self._close(pipe)
        self._input = None
        self._born.change(takesInput=False)

    def _close(self, way: int) -> None:
        os.close(way)
        if way != self._terminal:
            remove_pipe(self._born.descriptor)

    def _flush_input(self, terminal: int) -> None:
        """Write as much typed input as the terminal accepts; `poll` reports when it accepts more."""
        try:
            self._unread = self._unread[os.write(terminal, self._unread) :]
        except BlockingIOError:
            pass
        except OSError:
            self._unread = b""  # no process has it open any more
        self._poll.modify(terminal, select.POLLIN | (select.POLLOUT if self._unread else 0))

    def resize(self, rows: object, columns: object) -> bool:
        """Resize the command's terminal, now and for every further attempt; return False if it has none."""
        if type(rows) is not int or type(columns) is not int or not (0 < rows < 65536 and 0 < columns < 65536):
            return False
        self._window = (rows, columns)
        if self._terminal is None:
            return False
        _set_window(self._terminal, self._window)
        return True

    @property
    def takes_input(self) -> bool:
        """Whether the command has an open input."""
        return self._input is not None

    def is_being_read(self, pids: Collection[int]) -> bool:
        """Return whether one of these processes is blocked in a read of the command's input."""
        return self._input is not None and self._source is not None and self._source.is_being_read(pids)

    def close_input(self) -> bool:
        """Send the command end-of-file; return False if it has no input."""
        if self._input is None:
            return False
        if self._input == self._terminal:
            return self.type_in(b"\x04")
        self._end_input(self._input)
        return True

    # -- sleep -------------------------------------------------------------------------------

    def sleep(self, until: float, loop: CommandAttempt | IdleSupervisor) -> None:
        """Sleep until an event arrives or `until` is reached; then notify `loop`."""
        seconds = min(max(until - time.monotonic(), 0.0), _MAX_POLL)
        for fd, what in self._poll.poll(seconds * 1000):
            if fd == self._wake:
                self._read_signals(loop)
            elif fd == self._born.control:
                for wish in self._control_reader.read():
                    self._handle_message(wish, loop)
            elif fd == self._terminal:
                if what & select.POLLOUT:
                    self._flush_input(fd)
                self.drain()
            elif fd == self._starter:
                self._poll.unregister(fd)
                loop.on_starter_exit()
        loop.woken()

    def _read_signals(self, loop: CommandAttempt | IdleSupervisor) -> None:
        numbers = set(os.read(self._wake, 4096))
        if signal.SIGIO in numbers:
            loop.grew()
        if signal.SIGTERM in numbers:
            loop.stop("stopped", by="SIGTERM to its supervisor")

    def _handle_message(self, wish: dict[str, object], loop: CommandAttempt | IdleSupervisor) -> None:
        """Carry out one control message and record its result."""
        what, by, grace = wish.get("do"), wish.get("by"), wish.get("grace")
        done: object = False
        if what == "stop":
            in_time = float(grace) if isinstance(grace, (int, float)) and 0 <= grace <= _MAX_POLL else None
            who = by[:_MAX_NAME] if by and isinstance(by, str) else "another process"
            loop.stop("stopped", by=who, grace=in_time)
            done = True
        elif what == "pause":
            done = loop.pause()
        elif what == "resume":
            done = loop.resume()
        elif what == "answer" and isinstance(text := wish.get("text"), str):
            done = loop.answer(_encode_input(text))
        elif what == "size":
            done = self.resize(wish.get("rows"), wish.get("columns"))
        elif what == "close_input":
            done = self.close_input()
        elif what == "background":
            self._to_background(keep=wish.get("keep") is True)
            done = True
        self._born.answer(wish, done)

    def _to_background(self, *, keep: bool) -> None:
        """Record that no process watches it; with `keep` it also outlives its starter."""
        if keep and self._starter is not None:
            self._poll.unregister(self._starter)
            os.close(self._starter)
            self._starter = None
        self._born.change(isBackgrounded=True, **({"onParentExit": "keep"} if keep else {}))

    def drain(self, reads: int = _READS_PER_WAKE) -> None:
        """Copy the terminal's contents to the output, at most `reads` chunks: a stream may be endless."""
        for _ in range(reads):
            if self._terminal is None:
                return
            try:
                data = os.read(self._terminal, _CHUNK)
            except BlockingIOError:
                return
            except OSError:
                data = b""  # how a terminal reports that no process has it open any more
            if not data:
                self._poll.unregister(self._terminal)
                os.close(self._terminal)
                self._terminal = self._input = None
                return
            self._keep(data)

    def drain_all(self) -> None:
        """Copy the rest after the command's exit: no more than the kernel buffers."""
        self.drain(_MAX_READS)

    def _keep(self, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(self._born.output, data) :]
        except OSError as error:
            self.lost = kernel.error_name(error)


def _encode_input(text: str) -> bytes:
    """Encode typed text; lone surrogates stand for bytes that are no text and become these bytes where possible."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def _ignore_signal(*_: object) -> None:
    """Do nothing: the signal number is in the wake-up pipe already."""


def _set_window(terminal: int, window: Sequence[int]) -> None:
    import struct
    import termios  # only needed with a terminal

    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *window, 0, 0))


#: Capacity of a pipe in bytes; no more is accepted at once.
PIPE_SIZE = 65536

_NAME = "input"


def create_pipe(folder: int) -> tuple[int, int]:
    """Create the named input pipe in a job's open folder; return its read end and its write end."""
    try:
        os.mkfifo(_NAME, 0o600, dir_fd=folder)
        reader = open_pipe(_NAME, os.O_RDONLY, dir_fd=folder)
    except OSError:  # disk full, or the name is taken: then all input goes through the supervisor
        reader, writer = os.pipe2(os.O_CLOEXEC)
    else:
        writer = open_pipe(_NAME, os.O_WRONLY, dir_fd=folder)
    os.set_blocking(reader, True)  # as every command expects
    os.set_blocking(writer, False)  # a command that does not read must not block its supervisor
    return reader, writer


def remove_pipe(folder: int) -> None:
    """Remove the pipe's name so that no new writer opens it; processes that have it open continue."""
    try:
        os.unlink(_NAME, dir_fd=folder)
    except OSError:
        pass  # it had no name


class InputPipe:
    """Direct writer to a command's input pipe, for files."""

    def __init__(self, folder: JobPaths) -> None:
        self._path = f"{folder.path}/{_NAME}"
        self.fd: int | None = None  #: open while data is left; polls writable when the pipe accepts more

    def offer(self, data: bytes) -> bytes | None:
        """Write what the command accepts now; return the rest, or None if the pipe is gone."""
        try:
            if self.fd is None:
                self.fd = open_pipe(self._path, os.O_WRONLY)
            while data:
                data = data[os.write(self.fd, data[:PIPE_SIZE]) :]
        except BlockingIOError:
            return data  # and keep it open, to poll for when it reads on
        except OSError:
            self.close()
            return None
        self.close()
        return data

    def wait(self, seconds: float) -> bool:
        """Sleep until the pipe accepts more; return False on timeout."""
        if self.fd is None:
            return True
        poll = select.poll()
        poll.register(self.fd, select.POLLOUT)
        return bool(poll.poll(seconds * 1000))

    def close(self) -> None:
        """Close the pipe, so that the command can read end-of-file."""
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None
