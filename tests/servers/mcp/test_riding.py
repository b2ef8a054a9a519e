"""Notices at the end of answers: what was on an answer that nobody waited for is not taken for read."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any, cast

import anyio
import anyio.from_thread
import pytest

from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
from taskyard.servers.mcp.callers import Caller, Request
from taskyard.servers.mcp.calls import CallTimeouts, build_tools
from taskyard.servers.mcp.piggyback import Piggyback, PiggybackItems
from taskyard.servers.mcp.task_tools import TASK_TOOLS
from taskyard.yard import open as open_yard


class Only:
    """The one caller there is."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def find(self, request: Request) -> Caller:
        return self._caller

    async def close(self) -> None:
        self._caller.close()


@pytest.mark.req("N-07", "B-05")
def test_what_was_on_an_answer_that_was_given_up_comes_with_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = Jobs(os.environ["TASKYARD_HOME"], agent="ada")
    ended = jobs.run(Shell("true"))
    jobs.wait(jobs.start(Shell("true")).id, timeout=20)
    jobs.close()
    take = Piggyback.next

    async def body() -> None:
        scope = anyio.CancelScope()

        def given_up(self: Piggyback, *, exclude: frozenset[str]) -> PiggybackItems:
            found = take(self, exclude=exclude)
            anyio.from_thread.run_sync(scope.cancel)
            return found

        caller = Caller(open_yard(list="demo", agent="ada"))
        listing = next(
            tool
            for tool in build_tools(TASK_TOOLS, Only(caller), pace=CallTimeouts(), structured=True)
            if tool.name == "TaskList"
        )
        session = SimpleNamespace(client_capabilities=None)
        request = SimpleNamespace(session=session, protocol_version="2026-07-28", request_id=1)
        context = cast("Any", SimpleNamespace(request_context=request))
        with monkeypatch.context() as patched:
            patched.setattr(Piggyback, "next", given_up)
            with scope:
                await listing.run({}, context)
        assert scope.cancelled_caught
        (notice,) = (await listing.run({}, context)).meta["taskyard/notices"]
        assert notice["task_id"] != ended.id
        assert (await listing.run({}, context)).meta is None
        caller.close()

    anyio.run(body)
