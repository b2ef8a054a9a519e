"""
A call that waits for the job it starts: answered at the job's end, or, when that takes too long, with the job's id.

Whoever gives up such a call wants its job ended. Where nothing may run in the background, it is waited for to the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import anyio

from taskyard.errors import JobEnded
from taskyard.mcp_server.answers import Answer
from taskyard.mcp_server.calls import Call
from taskyard.mcp_server.for_task import for_task
from taskyard.mcp_server.results import ended
from taskyard.mcp_server.waiting import waited
from taskyard.runtime.background import is_background_disabled
from taskyard.runtime.model import Job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.runtime.kind import Spec


async def run(call: Call, spec: Spec, goes_on: Callable[[Job], Answer]) -> Answer:
    """Start a job and answer how it went; `goes_on` makes the answer if it goes on in the background."""
    job = await _begun(call, spec)
    try:
        job = await waited(call, job, _patience(call), until_it_asks=not is_background_disabled())
        return await (_ended(call, job) if job.is_final else _left(call, job, goes_on))
    except BaseException:  # the call was cancelled: whoever gives up a job in the foreground wants it ended
        with anyio.CancelScope(shield=True):
            await call.caller.jobs.stop(job.id)
        raise


async def _begun(call: Call, spec: Spec) -> Job:
    """A job in the foreground; whatever happens meanwhile, it is known then, so that it can be ended."""
    started: list[Job] = []
    with anyio.CancelScope(shield=True):
        started.append(await call.caller.jobs.start(for_task(call, spec), backgrounded=False))
    return started[0]


def _patience(call: Call) -> float | None:
    """How long a job in the foreground is waited for; where nothing may go on in the background, to its end."""
    if is_background_disabled():
        return None
    return call.patience if call.defer_after is None else min(call.defer_after, call.patience)


async def _ended(call: Call, job: Job) -> Answer:
    return ended(await call.caller.jobs.output(job.id))


async def _left(call: Call, job: Job, goes_on: Callable[[Job], Answer]) -> Answer:
    """The job goes on without a call that waits for it; where its client has a task to look at, also without us."""
    try:
        await call.caller.jobs.to_background(job.id, keep=call.defer_after is not None)
    except JobEnded:
        return await _ended(call, job)
    job = await asyncio.to_thread(call.caller.jobs.get, job.id)
    return await _ended(call, job) if job.is_final else goes_on(job)._replace(deferred=job.id)
