"""Run shell commands and child processes with bounded time, output and clean-up.

`run_command` gives the command its own session and process group, its input in one piece, and a timeout. A
command that floods its output, never reads its input, ignores SIGTERM or leaves a daemon on its pipes is
drained within bounds, terminated, and cannot keep the caller waiting. Its exit is detected without reaping
it (`waitid` with WNOWAIT): while the leader is a zombie its pid cannot be reused, so a signal to the group
never hits an unrelated process.

The asyncio functions serve processes that a job starts for its work: argv, line reading, termination of the
whole group.
"""

from __future__ import annotations

import os
import re
import selectors
import signal
import sys
from functools import partial
from time import monotonic

from taskyard.core.system import is_running, stat_fields
from taskyard.core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    import threading
    from asyncio import BaseTransport, StreamReader
    from asyncio.subprocess import Process
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from taskyard.storage.spill import Spill


#: Bytes; the rest of a longer line is dropped, because a program may print anything.
LONGEST_LINE = 4 * 1024 * 1024

_CHUNK = 65_536

#: Bytes kept of each stream: enough for any reason or reply, and bounded however much is printed.
KEPT_BYTES = 64 * 1024

#: Seconds a group gets to exit on SIGTERM: test runners need about a second to write their reports.
TERM_GRACE = 2.0

#: Seconds to read output after the command's exit: `>(tee log)` needs some milliseconds.
DRAIN_TIMEOUT = 0.5

#: Seconds SIGKILL may take. Only a process stuck in the kernel takes longer, and waiting would not help.
KILL_TIMEOUT = 2.0

#: Seconds (a day): longer timeouts are typing errors, and some system calls refuse them.
MAX_TIMEOUT = 86_400.0

_TICK = 0.05  #: seconds between checks for an abort; a threading.Event wakes no selector
_NO_PIDFD_TICK = 0.01  #: seconds between checks for the exit where the sandbox has no pidfd

_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours and cursor movement
    r"|(?:\x1b[\]PX^_]|[\x90\x9d])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # titles, links and other strings
    r"|\x1b[ -/]*[0-~]"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class CommandResult(NamedTuple):
    """How a command ended, and its output."""

    cause: str  #: "exited", "signal", "timeout", "cancelled", "not_started" or "unknown"
    seconds: float
    exit_code: int | None = None
    signal: int | None = None
    stdout: bytes = b""  #: its first 64 KB; with both streams merged, the last
    stderr: bytes = b""  #: its last 64 KB
    stdout_size: int = 0  #: bytes printed in all
    why: str = ""  #: reason of "not_started" and "unknown"
    notice: str = ""  #: `stdout` and `stderr` are only the last lines; names the full file (`storage.spill`)


def run_command(
    command: str,
    *,
    cwd: str,
    timeout: float,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    cancel: threading.Event | None = None,
    merge_stderr: bool = False,
    kill_leftovers: bool = False,
    spill: Spill | None = None,
) -> CommandResult:
    """Run `command` with `/bin/sh -c` in `cwd` and return when it has ended, one way or another.

    `merge_stderr` interleaves stderr with stdout. `spill` keeps both streams completely, instead of the parts
    that a `CommandResult` holds. `kill_leftovers` also kills what the command left running in its group, which
    always happens after a timeout or an abort.
    """
    started = monotonic()
    if cancel is not None and cancel.is_set():
        return CommandResult("cancelled", 0.0)
    try:
        running = _RunningCommand(command, cwd=cwd, env=env, stdin=stdin, merge_stderr=merge_stderr, spill=spill)
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the command or the environment
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return CommandResult("not_started", monotonic() - started, why=f"{why} (in {cwd})")
    try:
        cause = running.run(started + min(timeout, MAX_TIMEOUT), cancel)
        if kill_leftovers:
            running.end_group()
        return running.ended(cause, monotonic() - started)
    except BaseException:
        running.signal_group(signal.SIGKILL)
        raise
    finally:
        running.close()


def decode_plain(data: bytes) -> str:
    """Decode `data` as text safe to show: no escape sequences, no control characters but newline and tab."""
    text = data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("", _ESCAPES.sub("", text))


class _RunningCommand:
    """A started command, its pipes, and what was read from them so far."""

    def __init__(
        self,
        command: str,
        *,
        cwd: str,
        env: Mapping[str, str] | None,
        stdin: bytes | None,
        merge_stderr: bool,
        spill: Spill | None,
    ) -> None:
        import subprocess

        self._process: subprocess.Popen[bytes] = subprocess.Popen(
            ["/bin/sh", "-c", command],
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if merge_stderr else subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        self._spill = spill
        out, err = (None, None) if spill is None else (spill.write, partial(spill.write, stderr=True))
        self._stdout, self._stderr = _StreamBuffer(first=not merge_stderr, tee=out), _StreamBuffer(first=False, tee=err)
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
        """Wait for the exit; return what cut it short: "timeout", "cancelled" or ""."""
        tick = _TICK if cancel is not None else None
        in_time = self._pump(lambda: self.exited() or (cancel is not None and cancel.is_set()), deadline, tick)
        if self.exited():
            self._pump(self._is_drained, monotonic() + DRAIN_TIMEOUT)
            return ""
        self.signal_group(signal.SIGTERM)
        self.signal_group(signal.SIGCONT)  # a stopped process would not handle it
        if not self._pump(self._is_gone, monotonic() + TERM_GRACE, _TICK):
            self.end_group()
        self._pump(self._is_drained, monotonic() + _TICK)
        return "cancelled" if in_time else "timeout"

    def exited(self) -> bool:
        """Return whether the command itself, not necessarily its children, has exited."""
        if not self._over:
            try:
                flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
                self._status = os.waitid(os.P_PID, self._process.pid, flags)
                self._over = self._status is not None
            except ChildProcessError:
                self._over = True  # another part of this program reaps all children
        return self._over

    def signal_group(self, number: int) -> None:
        """Signal the command's process group, as long as the group is certainly ours."""
        if self.exited() and self._status is None:
            return  # reaped elsewhere: the pid may be reused by now
        try:
            os.killpg(self._process.pid, number)
        except OSError:
            pass  # already empty, or everything in it changed to another user

    def end_group(self) -> None:
        """Kill the group and wait until it is gone; a fork cannot escape one SIGKILL to a group."""
        self.signal_group(signal.SIGKILL)
        self._pump(self._is_gone, monotonic() + KILL_TIMEOUT, _NO_PIDFD_TICK)

    def ended(self, cause: str, seconds: float) -> CommandResult:
        """Return the result."""
        status, code, signum, why = self._status, None, None, ""
        if status is None:
            cause, why = cause or "unknown", "another part of this program took its exit status"
        elif status.si_code == os.CLD_EXITED:
            cause, code = cause or "exited", status.si_status
        else:
            cause, signum = cause or "signal", status.si_status
        out, err = self._stdout, self._stderr
        if self._spill is None:
            return CommandResult(cause, seconds, code, signum, out.kept(), err.kept(), out.size, why)
        back = self._spill.read_back()
        return CommandResult(cause, seconds, code, signum, back.stdout, back.stderr, out.size, why, back.notice)

    def close(self) -> None:
        """Close the pipes and reap the process."""
        from subprocess import TimeoutExpired

        self._selector.close()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        if self._pidfd is not None:
            os.close(self._pidfd)
        try:
            self._process.wait(KILL_TIMEOUT)
        except TimeoutExpired:
            pass  # stuck in the kernel; it dies as soon as the call returns

    def _pump(self, done: Callable[[], bool], deadline: float, tick: float | None = None) -> bool:
        """Move bytes until `done()` or `deadline`; return whether it was done."""
        if self._pidfd is None:
            tick = _NO_PIDFD_TICK
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
        """Close a pipe at end of file."""
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
            return False  # the command closed its input, which is no error
        return bool(self._input)

    def _is_drained(self) -> bool:
        return all(move == self._feed for move in self._pipes.values())

    def _is_gone(self) -> bool:
        return self.exited() and not _is_group_running(self._process.pid)


class _StreamBuffer:
    """The first or the last bytes of a stream, and its total size."""

    def __init__(self, *, first: bool, tee: Callable[[bytes], None] | None = None) -> None:
        """Keep the `first` or the last bytes; `tee` is called with each chunk instead of keeping it."""
        self.size = 0
        self._tee = tee
        self._first = first
        self._bytes = bytearray()

    def read(self, fd: int) -> bool:
        """Read what is available; return whether more may come."""
        try:
            chunk = os.read(fd, KEPT_BYTES)
        except BlockingIOError:
            return True
        self.size += len(chunk)
        if self._tee is not None:
            self._tee(chunk)  # keeps all of it
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
        return None  # forbidden by a sandbox, or no descriptor left: poll instead


def _is_group_running(group: int) -> bool:
    """Return whether a process of the group runs; one whose main thread has exited still does."""
    for name in os.listdir("/proc"):
        fields = stat_fields(name) if name.isdigit() else None
        if fields is not None and int(fields[2]) == group and is_running(name, fields):
            return True
    return False


#: Seconds between TERM and KILL: less than a job's grace, so that its handler is not killed meanwhile.
CHILD_TERM_GRACE = 1.0


#: Seconds between two checks for unread output of an exited process, and their limit.
_LINGER_POLL, _LINGER_TIMEOUT = 0.5, 5.0


def command_argv(command: str | Sequence[str]) -> list[str]:
    """Return the argv: a text is run by bash, a list as it is."""
    return ["bash", "-c", command] if isinstance(command, str) else list(command)


async def terminate(process: Process, *, grace: float = CHILD_TERM_GRACE) -> None:
    """Terminate a process that leads a group, with that group; `grace` seconds between TERM and KILL.

    Processes that left the group are killed by the job's supervisor. Output is drained and dropped: a process
    blocked on a full pipe does not exit cleanly.
    """
    from asyncio import create_task, wait_for

    _signal_group(process.pid, signal.SIGTERM)
    draining = [create_task(_drain(pipe)) for pipe in (process.stdout, process.stderr) if pipe is not None]
    try:
        await wait_for(process.wait(), grace)
    except TimeoutError:
        pass
    finally:
        _signal_group(process.pid, signal.SIGKILL)
        for task in draining:
            task.cancel()
        # asyncio has no other way to close pipes that a process passed on to others.
        process._transport.close()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportPrivateUsage]
    try:
        await wait_for(process.wait(), CHILD_TERM_GRACE)  # its pipes are closed: only the kernel can delay it now
    except TimeoutError:
        pass  # stuck in the kernel, and waiting would not help


async def wait_exit(process: Process) -> None:
    """Wait until a process itself has exited, even if others hold its pipes, for which asyncio waits too."""
    from asyncio import Event, get_running_loop

    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    loop = get_running_loop()
    ended = Event()
    loop.add_reader(handle, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(handle)
        os.close(handle)


async def close_pipes(process: Process) -> None:
    """Close the pipes of an exited process: processes it left behind may hold them, and print, for ever.

    All output of the process itself is read first; of what others print, only what comes within moments.
    """
    from asyncio import sleep
    from time import monotonic

    await wait_exit(process)
    until = monotonic() + _LINGER_TIMEOUT
    await sleep(_LINGER_POLL)
    while _unread_bytes(process) and monotonic() < until:  # noqa: ASYNC110 - no event signals an empty pipe
        await sleep(_LINGER_POLL)
    for number in (0, 1, 2):
        if (pipe := _pipe(process, number)) is not None:
            pipe.close()


def _unread_bytes(process: Process) -> int:
    """Return how many bytes of output are unread in its pipes."""
    from fcntl import ioctl
    from termios import FIONREAD

    pipes = [pipe for number in (1, 2) if (pipe := _pipe(process, number)) is not None and not pipe.is_closing()]
    counts = [ioctl(pipe.get_extra_info("pipe"), FIONREAD, bytes(4)) for pipe in pipes]
    return sum(int.from_bytes(count, sys.byteorder) for count in counts)


def _pipe(process: Process, number: int) -> BaseTransport | None:
    """Return our transport of a pipe, if there is one."""
    return process._transport.get_pipe_transport(number)  # type: ignore[attr-defined,no-any-return]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType, reportPrivateUsage]


def describe_exit(code: int | None) -> str:
    """Describe an exit code."""
    if code is None:
        return "it closed its output and still runs"
    return f"exit code {code}" if code >= 0 else f"killed by signal {-code}"


async def _drain(pipe: StreamReader) -> None:
    try:
        while await pipe.read(_CHUNK):
            pass
    except (OSError, RuntimeError):
        pass  # another task reads it


def _signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        pass  # the group is empty


async def read_lines(stream: StreamReader) -> AsyncIterator[str]:
    """Yield lines of any length, each cut at `LONGEST_LINE`; the last need not end with a newline."""
    held, is_cut = b"", False
    while chunk := await stream.read(_CHUNK):
        *whole, rest = (held + chunk).split(b"\n")
        for line in whole:
            if not is_cut:
                yield line.decode("utf-8", "replace").rstrip("\r")
            is_cut = False
        held = b"" if is_cut else rest
        if len(held) > LONGEST_LINE:
            yield held[:LONGEST_LINE].decode("utf-8", "replace")
            held, is_cut = b"", True
    if held and not is_cut:
        yield held.decode("utf-8", "replace").rstrip("\r")
