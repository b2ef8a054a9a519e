"""
Members inside one process, which is a job of its own: hundreds cost little more than their work, and when that
process is stuck, its keeper ends it with proof like any other.
"""

from __future__ import annotations

import asyncio

from taskyard.async_app import open_async

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from taskyard.crew.wish import Wish


def host(wish: Wish, names: Sequence[str], *, started: Callable[[dict[str, str]], None]) -> int:
    """Have members live here until all of them are done; how many did not end well. `started` gets their jobs."""
    return asyncio.run(_hosted(wish, names, started))


async def _hosted(wish: Wish, names: Sequence[str], started: Callable[[dict[str, str]], None]) -> int:
    async with open_async(list=wish.team) as yard:
        jobs = {name: (await yard.jobs.start(wish.spec(name, is_inside=True))).id for name in names}
        started(jobs)
        ended = await yard.jobs.wait_all(list(jobs.values()))
        return sum(job.status.value != "completed" for job in ended)
