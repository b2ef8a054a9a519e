"""From a monitor's record to its life: one source, again and again if it may be, until it is over."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time

from taskyard import children, config
from taskyard.errors import MissingExtra
from taskyard.kinds.monitoring.filter import Unfit
from taskyard.kinds.monitoring.watch import Watch
from taskyard.loading import Loading
from taskyard.runtime.kind import Outcome
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.kinds.monitor import Monitor
    from taskyard.runtime.context import JobContext

_CHUNK = 65536

#: Seconds before a lost source is tried again: the first, and the longest; a source that lived so long starts anew.
_FIRST, _LONGEST = 1.0, 60.0


class Gone(NamedTuple):
    """How a source ended."""

    why: str
    is_failure: bool


async def watch(monitor: Monitor, context: JobContext) -> Outcome:
    """Watch the source to its end."""
    notices = monitor.notices and config.load().monitor_notices
    heard = Watch(context, filter=monitor.filter, every=monitor.every, silence=monitor.silence, notices=notices)
    hearing = asyncio.create_task(_watched(monitor, heard))
    telling = asyncio.create_task(heard.tell())
    try:
        both: list[asyncio.Task[object]] = [hearing, telling]
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if telling.done():
            telling.result()  # it has no end but a failure, which is the monitor's
        gone = hearing.result()
        await _cancelled(telling)
        await heard.tell_the_rest()
    finally:
        await _cancelled(hearing, telling)
        heard.leave()
    return Outcome(error=gone.why) if gone.is_failure else Outcome(gone.why)


async def _cancelled(*tasks: asyncio.Task[object]) -> None:
    """End tasks; every wait in their ends is bounded."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _watched(monitor: Monitor, heard: Watch) -> Gone:
    delay = _FIRST
    began: Callable[[], object] = bool  # the first time is no news
    while True:
        start = time.monotonic()
        try:
            gone = await _attend(monitor, heard, began)
            heard.line_ended()
        except Unfit as error:
            return Gone(str(error), is_failure=True)
        if not monitor.reconnect:
            return gone
        if time.monotonic() - start > _LONGEST:
            delay = _FIRST
        heard.note(f"the source is lost: {gone.why}; next try in {delay:g} s")
        began = _back(heard)
        await asyncio.sleep(delay)
        delay = min(delay * 2, _LONGEST)


def _back(heard: Watch) -> Callable[[], object]:
    return lambda: heard.note("the source is back")


async def _attend(monitor: Monitor, heard: Watch, began: Callable[[], object]) -> Gone:
    """Hear one source for as long as it lives."""
    if monitor.command is not None:
        return await _attend_command(children.words(monitor.command), heard, began)
    try:
        with Loading():
            from taskyard.mcp_client import listening
    except ModuleNotFoundError as error:
        raise MissingExtra("A monitor of an MCP server", "mcp", error.name or "") from error
    token = None
    if monitor.token_env is not None and (token := os.environ.get(monitor.token_env)) is None:
        return Gone(f"the variable {monitor.token_env} is not set, which holds the token", is_failure=True)
    wish = listening.Wish(
        () if monitor.mcp_command is None else tuple(children.words(monitor.mcp_command)),
        monitor.mcp_url or "",
        token,
        tuple(monitor.resources),
        monitor.logs,
    )
    try:
        await listening.listen(wish, heard.event, began)
    except listening.Lost as error:
        return Gone(str(error), is_failure=True)
    return Gone("its server closed the subscription", is_failure=False)


async def _attend_command(argv: list[str], heard: Watch, began: Callable[[], object]) -> Gone:
    """Hear what a command prints; what it has to complain of goes to the output as it is."""
    try:
        process = await asyncio.create_subprocess_exec(
            *argv, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, start_new_session=True
        )
    except OSError as error:
        return Gone(f"{argv[0]} cannot be started: {error.strerror}", is_failure=True)
    parting = asyncio.create_task(children.part_with(process))
    try:
        began()
        assert process.stdout is not None
        while data := await process.stdout.read(_CHUNK):
            heard.raw(data)
            await asyncio.sleep(0)  # what is due is told also in the middle of a flood
        code = await process.wait()
    finally:
        parting.cancel()
        with contextlib.suppress(ProcessLookupError):
            await children.end(process)
    return Gone(f"its command ended ({children.how_it_ended(code)})", is_failure=code != 0)
