"""
Run one shell command to its end, whatever it does.

The command gets a session and process group of its own, its input in one piece, and a time limit.
One that floods its output, never reads its input, ignores SIGTERM or leaves a daemon on its pipes
is drained within bounds, ended, and cannot keep the caller waiting.

Its end is learned without reaping it (`waitid` with WNOWAIT): while the leader is a zombie no other
process can get its number, so a signal to the group never hits a stranger.
"""

from __future__ import annotations

import os
import re
import selectors
import signal
from functools import partial
from time import monotonic

from taskyard.disk.processes import runs, stat_fields
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    import threading
    from collections.abc import Callable, Mapping

    from taskyard.disk.spill import Spill

#: Kept of each stream: enough for any reason or reply, too little to hurt however much is printed.
KEPT_BYTES = 64 * 1024

#: How long a group may take to obey SIGTERM: test runners need about a second to write their reports.
TERM_GRACE = 2.0

#: How long output may still trickle in after the command's end: `>(tee log)` needs some milliseconds.
DRAIN = 0.5

#: How long SIGKILL may take. Only a process stuck in the kernel takes longer, and waiting would not help.
KILL_WAIT = 2.0

#: A day: longer limits are typing errors, and some system calls refuse them.
LONGEST_LIMIT = 86_400.0

_TICK = 0.05  #: how often an abort is noticed; a threading.Event wakes no selector
_BLIND_TICK = 0.01  #: how often we look for the end where the sandbox has no pidfd

_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours and cursor movement
    r"|(?:\x1b[\]PX^_]|[\x90\x9d])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # titles, links and other strings
    r"|\x1b[ -/]*[0-~]"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class CommandEnd(NamedTuple):
    """How a command ended, and what it said."""

    cause: str  #: "exited", "signal", "timeout", "cancelled", "not_started" or "unknown"
    seconds: float
    exit_code: int | None = None
    signal: int | None = None
    stdout: bytes = b""  #: its first 64 KB; of both streams together, the last
    stderr: bytes = b""  #: its last 64 KB
    stdout_size: int = 0  #: how much there was
    why: str = ""  #: for "not_started" and "unknown"
    notice: str = ""  #: says that `stdout` and `stderr` are the last lines alone, and where all is (see `disk.spill`)


def run_command(
    command: str,
    *,
    cwd: str,
    timeout: float,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    cancel: threading.Event | None = None,
    one_stream: bool = False,
    end_leftovers: bool = False,
    spill: Spill | None = None,
) -> CommandEnd:
    """Run `command` by `/bin/sh -c` in `cwd` and return when it is over, one way or another.

    `one_stream` brings stderr in order with stdout. `spill` keeps all of both streams, instead of the parts that a
    `CommandEnd` holds otherwise. `end_leftovers` also ends what the command
    left running in its group; after a timeout or an abort that always happens.
    """
    started = monotonic()
    if cancel is not None and cancel.is_set():
        return CommandEnd("cancelled", 0.0)
    try:
        running = _Running(command, cwd=cwd, env=env, stdin=stdin, one_stream=one_stream, spill=spill)
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the command or the environment
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return CommandEnd("not_started", monotonic() - started, why=f"{why} (in {cwd})")
    try:
        cause = running.run(started + min(timeout, LONGEST_LIMIT), cancel)
        if end_leftovers:
            running.end_group()
        return running.ended(cause, monotonic() - started)
    except BaseException:
        running.signal_group(signal.SIGKILL)
        raise
    finally:
        running.close()


def plain_text(data: bytes) -> str:
    """`data` as text safe to show anywhere: no escape sequences, no control characters but newline and tab."""
    text = data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("", _ESCAPES.sub("", text))


class _Running:
    """A started command, its pipes, and what was read from them so far."""

    def __init__(
        self,
        command: str,
        *,
        cwd: str,
        env: Mapping[str, str] | None,
        stdin: bytes | None,
        one_stream: bool,
        spill: Spill | None,
    ) -> None:
        import subprocess

        self._process: subprocess.Popen[bytes] = subprocess.Popen(
            ["/bin/sh", "-c", command],
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if one_stream else subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        self._spill = spill
        out, err = (None, None) if spill is None else (spill.write, partial(spill.write, stderr=True))
        self._stdout, self._stderr = _Kept(first=not one_stream, also=out), _Kept(first=False, also=err)
        self._input = memoryview(stdin or b"")
        self._pipes: dict[int, Callable[[int], bool]] = {}
        self._over = False
        self._status: os.waitid_result | None = None
        self._selector = selectors.PollSelector()  # needs no descriptor, so it cannot fail now
        self._pidfd = _pidfd(self._process.pid)
        self._register()

    def _register(self) -> None:
        moves = ((self._process.stdin, self._feed), (self._process.stdout, self._stdout.read))
        for pipe, move in (*moves, (self._process.stderr, self._stderr.read)):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                self._pipes[pipe.fileno()] = move
                self._selector.register(pipe, selectors.EVENT_WRITE if pipe.writable() else selectors.EVENT_READ)
        if self._pidfd is not None:
            self._selector.register(self._pidfd, selectors.EVENT_READ)

    def run(self, deadline: float, cancel: threading.Event | None) -> str:
        """Wait for the end; what ended it before its time: "timeout", "cancelled" or nothing."""
        tick = _TICK if cancel is not None else None
        in_time = self._pump(lambda: self.exited() or (cancel is not None and cancel.is_set()), deadline, tick)
        if self.exited():
            self._pump(self._is_drained, monotonic() + DRAIN)
            return ""
        self.signal_group(signal.SIGTERM)
        self.signal_group(signal.SIGCONT)  # a stopped process would not hear it
        if not self._pump(self._is_gone, monotonic() + TERM_GRACE, _TICK):
            self.end_group()
        self._pump(self._is_drained, monotonic() + _TICK)
        return "cancelled" if in_time else "timeout"

    def exited(self) -> bool:
        """Whether the command itself, not necessarily its children, is over."""
        if not self._over:
            try:
                flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
                self._status = os.waitid(os.P_PID, self._process.pid, flags)
                self._over = self._status is not None
            except ChildProcessError:
                self._over = True  # someone else in this program reaps all children
        return self._over

    def signal_group(self, number: int) -> None:
        """Signal everything in the command's group, as long as the group is certainly ours."""
        if self.exited() and self._status is None:
            return  # reaped elsewhere: the number may be a stranger's by now
        try:
            os.killpg(self._process.pid, number)
        except OSError:
            pass  # already empty, or everything in it became another user's

    def end_group(self) -> None:
        """Kill what is in the group and wait until it is gone; a fork cannot slip past one SIGKILL to a group."""
        self.signal_group(signal.SIGKILL)
        self._pump(self._is_gone, monotonic() + KILL_WAIT, _BLIND_TICK)

    def ended(self, cause: str, seconds: float) -> CommandEnd:
        """The record of the end."""
        status, code, signum, why = self._status, None, None, ""
        if status is None:
            cause, why = cause or "unknown", "another part of this program took its exit status"
        elif status.si_code == os.CLD_EXITED:
            cause, code = cause or "exited", status.si_status
        else:
            cause, signum = cause or "signal", status.si_status
        out, err = self._stdout, self._stderr
        if self._spill is None:
            return CommandEnd(cause, seconds, code, signum, out.kept(), err.kept(), out.size, why)
        back = self._spill.read_back()
        return CommandEnd(cause, seconds, code, signum, back.stdout, back.stderr, out.size, why, back.notice)

    def close(self) -> None:
        """Let go of the pipes and of the zombie."""
        from subprocess import TimeoutExpired

        self._selector.close()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        if self._pidfd is not None:
            os.close(self._pidfd)
        try:
            self._process.wait(KILL_WAIT)
        except TimeoutExpired:
            pass  # stuck in the kernel; it is dead as soon as it comes out

    def _pump(self, done: Callable[[], bool], deadline: float, tick: float | None = None) -> bool:
        """Move bytes until `done()` or `deadline`; whether it was done."""
        if self._pidfd is None:
            tick = _BLIND_TICK
        while not done():
            left = deadline - monotonic()
            if left <= 0:
                return False
            for key, _ in self._selector.select(left if tick is None else min(left, tick)):
                move = self._pipes.get(key.fd)
                if move is None or not move(key.fd):
                    self._selector.unregister(key.fileobj)
                    if move is not None:
                        self._drop(key.fd)
        return True

    def _drop(self, fd: int) -> None:
        """Close a pipe that is at its end."""
        del self._pipes[fd]
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None and not pipe.closed and pipe.fileno() == fd:
                pipe.close()

    def _feed(self, fd: int) -> bool:
        try:
            self._input = self._input[os.write(fd, self._input[:KEPT_BYTES]) :] if self._input else self._input
        except BlockingIOError:
            return True
        except OSError:
            return False  # it does not want to read; that is its right
        return bool(self._input)

    def _is_drained(self) -> bool:
        return all(move == self._feed for move in self._pipes.values())

    def _is_gone(self) -> bool:
        return self.exited() and not _group_lives(self._process.pid)


class _Kept:
    """The first or the last bytes of a stream, and how many there were."""

    def __init__(self, *, first: bool, also: Callable[[bytes], None] | None = None) -> None:
        """`also` is called with each piece that was read."""
        self.size = 0
        self._also = also
        self._first = first
        self._bytes = bytearray()

    def read(self, fd: int) -> bool:
        """Take what is there; whether more may come."""
        try:
            chunk = os.read(fd, KEPT_BYTES)
        except BlockingIOError:
            return True
        self.size += len(chunk)
        if self._also is not None:
            self._also(chunk)  # which keeps all of it
        elif not self._first:
            self._bytes += chunk
            if len(self._bytes) > 4 * KEPT_BYTES:
                del self._bytes[:-KEPT_BYTES]
        elif len(self._bytes) < KEPT_BYTES:
            self._bytes += chunk
        return bool(chunk)

    def kept(self) -> bytes:
        return bytes(self._bytes[:KEPT_BYTES] if self._first else self._bytes[-KEPT_BYTES:])


def _pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None  # a sandbox that forbids it, or no descriptor left: then we look now and then


def _group_lives(group: int) -> bool:
    """Whether a process in the group runs; one whose main thread has exited does."""
    for name in os.listdir("/proc"):
        fields = stat_fields(name) if name.isdigit() else None
        if fields is not None and int(fields[2]) == group and runs(name, fields):
            return True
    return False
