"""Processes that a job starts for its work: words to run, and an end for all of them."""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import StreamReader
    from asyncio.subprocess import Process
    from collections.abc import Sequence

#: Seconds between TERM and KILL: less than the grace of a job, so that its handler is not killed over it.
GRACE = 1.0


_CHUNK = 65_536


def words(command: str | Sequence[str]) -> list[str]:
    """What is run: a text by bash, a list of words as it is."""
    return ["bash", "-c", command] if isinstance(command, str) else list(command)


async def end(process: Process) -> None:
    """End a process that leads a group, with that group. Whoever left it is ended by the job's keeper.

    What it still prints is read by nobody, but read: one that is kept from printing does not end in good order.
    """
    from asyncio import create_task, wait_for

    _signal(process.pid, signal.SIGTERM)
    draining = [create_task(_drain(pipe)) for pipe in (process.stdout, process.stderr) if pipe is not None]
    try:
        await wait_for(process.wait(), GRACE)
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
