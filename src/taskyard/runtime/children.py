"""Processes that a handler starts for its work: words to run, and an end for all of them."""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Sequence

#: Seconds between TERM and KILL: less than the grace of a job, so that its handler is not killed over it.
GRACE = 1.0


def words(command: str | Sequence[str]) -> list[str]:
    """What is run: a text by bash, a list of words as it is."""
    return ["bash", "-c", command] if isinstance(command, str) else list(command)


async def end(process: Process) -> None:
    """End a process that leads a group, with that group. Whoever left it is ended by the job's keeper."""
    from asyncio import wait_for

    _signal(process.pid, signal.SIGTERM)
    try:
        await wait_for(process.wait(), GRACE)
    except TimeoutError:
        pass
    finally:
        _signal(process.pid, signal.SIGKILL)


def how_it_ended(code: int | None) -> str:
    """An exit code in words."""
    if code is None:
        return "it closed its output and goes on"
    return f"exit code {code}" if code >= 0 else f"killed by signal {-code}"


def _signal(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        pass  # nobody is left in it
