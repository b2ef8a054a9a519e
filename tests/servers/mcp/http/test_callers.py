"""Callers that leave while something of theirs is still on its way."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest

import taskyard
from support.wait import until
from taskyard import config
from taskyard.errors import Cancelled
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
from taskyard.servers.mcp.callers import Caller
from taskyard.servers.mcp.http import ActiveRequest, HttpCallers
from taskyard.servers.mcp.piggyback import Piggyback

LONGEST = 20.0


def callers() -> HttpCallers:
    settings = config.Settings(mcp_lease=2.0)
    return HttpCallers(agent=None, list="demo", tasks_dir=None, settings=settings)


async def found(everyone: HttpCallers, name: str) -> tuple[Caller, ActiveRequest]:
    """Whoever asks under a name, without a session."""
    active_request = ActiveRequest(everyone)
    http = SimpleNamespace(headers={"taskyard-agent": name}, query_params={}, scope={"taskyard.visit": active_request})
    session = SimpleNamespace(client_params=None)
    request = SimpleNamespace(request=http, protocol_version="2026-07-28", session=session, method="tools/call")
    return await everyone.find(cast("Any", request)), active_request


@pytest.mark.req("L-10", "B-10")
def test_what_a_call_on_its_way_takes_after_its_caller_left_goes_back_all_the_same() -> None:
    async def body() -> None:
        everyone = callers()
        caller, active_request = await found(everyone, "ada")
        yard.tasks.create("A")
        active_request.over()
        await everyone.end("name:ada")
        with pytest.raises(Cancelled):
            await caller.on_list(lambda late: late.tasks.claim("1"))
        caller.yard.tasks.claim("1")  # one that was at the list at that very moment
        job = caller.yard.jobs.start(Shell("sleep 60"))
        assert (await caller.with_notices(Piggyback.next)).notices == ()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(everyone.watch)
            await anyio.to_thread.run_sync(lambda: until(lambda: yard.tasks.get("1").owner is None, timeout=LONGEST))
            end = (await anyio.to_thread.run_sync(lambda: Jobs(yard.home).wait(job.id, timeout=LONGEST))).end
            tasks.cancel_scope.cancel()
        assert end is not None
        assert (end.cause, end.by) == ("stopped", "ada")
        await everyone.close()

    with taskyard.open(list="demo") as yard:
        anyio.run(body)


@pytest.mark.req("T-05")
def test_many_first_requests_of_one_name_at_once_are_one_caller() -> None:
    async def body() -> None:
        everyone = callers()
        seen: list[Caller] = []

        async def ask() -> None:
            caller, active_request = await found(everyone, "ada")
            seen.append(caller)
            active_request.over()

        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(ask)
        assert len(seen) == 20
        assert len({id(caller) for caller in seen}) == 1
        assert seen[0].name == "ada"
        await everyone.close()

    anyio.run(body)
