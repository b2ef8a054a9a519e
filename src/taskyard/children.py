"""Processes that a job starts for its work: words to run, and an end for all of them."""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import BaseTransport, StreamReader
    from asyncio.subprocess import Process
    from collections.abc import Sequence

#: Seconds between TERM and KILL: less than the grace of a job, so that its handler is not killed over it.
GRACE = 1.0

_CHUNK = 65_536

#: Seconds between two looks whether one that has ended left anything to read, and for how long there may be anything.
_LINGERING, _LONGEST_LINGERING = 0.5, 5.0


def words(command: str | Sequence[str]) -> list[str]:
    """What is run: a text by bash, a list of words as it is."""
    return ["bash", "-c", command] if isinstance(command, str) else list(command)


async def end(process: Process, *, grace: float = GRACE) -> None:
    """End a process that leads a group, with that group. Whoever left it is ended by the job's keeper.

    `grace`: seconds between TERM and KILL.

    What it still prints is read by nobody, but read: one that is kept from printing does not end in good order.
    """
    from asyncio import create_task, wait_for

    _signal(process.pid, signal.SIGTERM)
    draining = [create_task(_drain(pipe)) for pipe in (process.stdout, process.stderr) if pipe is not None]
    try:
        await wait_for(process.wait(), grace)
    except TimeoutError:
        pass
    finally:
        _signal(process.pid, signal.SIGKILL)
        for task in draining:
            task.cancel()
        # asyncio has no other way to let go of pipes that a process left to somebody else.
        process._transport.close()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportPrivateUsage]
    try:
        await wait_for(process.wait(), GRACE)  # its pipes are closed: only the kernel can take its time now
    except TimeoutError:
        pass  # stuck in there, and waiting would not help


async def over(process: Process) -> None:
    """Wait until a process itself has ended, whoever still holds its pipes: asyncio waits for those too."""
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


async def part_with(process: Process) -> None:
    """Let go of the pipes of a process that has ended: what it left behind may hold them, and print, for ever.

    What it printed itself is read before; of what others print, what comes in a moment.
    """
    from asyncio import sleep
    from time import monotonic

    await over(process)
    until = monotonic() + _LONGEST_LINGERING
    await sleep(_LINGERING)
    while _unread(process) and monotonic() < until:  # noqa: ASYNC110 - nobody tells when a pipe is empty
        await sleep(_LINGERING)
    for number in (0, 1, 2):
        if (pipe := _pipe(process, number)) is not None:
            pipe.close()


def _unread(process: Process) -> int:
    """Bytes of its output that nobody has taken out of its pipes."""
    from fcntl import ioctl
    from termios import FIONREAD

    pipes = [pipe for number in (1, 2) if (pipe := _pipe(process, number)) is not None and not pipe.is_closing()]
    counts = [ioctl(pipe.get_extra_info("pipe"), FIONREAD, bytes(4)) for pipe in pipes]
    return sum(int.from_bytes(count, sys.byteorder) for count in counts)


def _pipe(process: Process, number: int) -> BaseTransport | None:
    """Our end of a pipe, if it is one."""
    return process._transport.get_pipe_transport(number)  # type: ignore[attr-defined,no-any-return]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType, reportPrivateUsage]


def how_it_ended(code: int | None) -> str:
    """An exit code in words."""
    if code is None:
        return "it closed its output and goes on"
    return f"exit code {code}" if code >= 0 else f"killed by signal {-code}"


async def _drain(pipe: StreamReader) -> None:
    try:
        while await pipe.read(_CHUNK):
            pass
    except (OSError, RuntimeError):
        pass  # somebody else reads it


def _signal(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        pass  # nobody is left in it
