"""
A call that waits for a job: until its end, or for as long as its client will, and saying meanwhile how it stands.

The kernel tells of the end, of output and of a change in the job's record; nothing is looked at again and again.
"""

from __future__ import annotations

import asyncio
import time

import anyio

from taskyard.disk.async_follow import Folder, followed
from taskyard.mcp_server.calls import Call
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.model import Job
from taskyard.runtime.output import Output
from taskyard.runtime.output_text import for_terminal
from taskyard.view.agent_text import agent_line

#: Seconds between two words on how a call stands: at least, and at most.
_PROGRESS_EVERY, _SILENCE = 1.0, 5.0

#: Characters of the last line that such a word repeats.
_LONGEST_LINE = 200


async def waited(call: Call, job: Job, seconds: float | None, *, until_it_asks: bool = False) -> Job:
    """The job at its end, or as it is after `seconds`; also as soon as it waits for input, if that is to count."""
    waiting = asyncio.ensure_future(call.caller.jobs.wait(job.id, timeout=seconds))
    others = [asyncio.ensure_future(_asks(call, job))] if until_it_asks else []
    if call.wants_progress:
        others.append(asyncio.ensure_future(_narrated(call, job)))
    try:
        await asyncio.wait([waiting, *others[: int(until_it_asks)]], return_when=asyncio.FIRST_COMPLETED)
        return waiting.result() if waiting.done() else await asyncio.to_thread(call.caller.jobs.get, job.id)
    finally:
        for task in (waiting, *others):
            task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.gather(waiting, *others, return_exceptions=True)


async def _asks(call: Call, job: Job) -> None:
    """Until the job waits for input."""
    with followed(JobFolder(call.caller.yard.home, job.id).path) as folder:
        while True:
            names = await folder.news()
            if names is None or not {"job.json", "facts.json"}.isdisjoint(names):
                job = await asyncio.to_thread(call.caller.jobs.get, job.id)
                if job.needs_input:
                    return


async def _narrated(call: Call, job: Job) -> None:
    """Say how it stands when it prints something, though not all the time; and now and then if it does not."""
    began = time.monotonic()
    home = call.caller.yard.home
    with followed(JobFolder(home, job.id).path) as folder:
        await folder.news()
        while True:
            await asyncio.sleep(_PROGRESS_EVERY)
            await _printed(folder, _SILENCE - _PROGRESS_EVERY)
            job = await asyncio.to_thread(call.caller.jobs.get, job.id)
            line = await asyncio.to_thread(last_line, home, job)
            await call.progress(time.monotonic() - began, line or f"{job.description}: {job.status.value}")


async def _printed(folder: Folder, seconds: float) -> None:
    """Until something was printed, at most for so long."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        names = await folder.news(left)
        if names is None or not {"output", "facts.json"}.isdisjoint(names):
            return


def last_line(home: str, job: Job) -> str:
    """What was printed last, on one line, made safe, not half of what is being printed; of an agent what it is at."""
    line = agent_line(job)
    if line is None:
        line = " ".join(for_terminal(Output(JobFolder(home, job.id)).last_line(whole=True)).split())
    return line if len(line) <= _LONGEST_LINE else line[: _LONGEST_LINE - 1] + "…"
