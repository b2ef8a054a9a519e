"""Requests that are being answered when the server ends, and those that come a moment later."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from starlette.responses import Response

from taskyard.servers.http.server import Exchanges


async def listens(_: Any, __: Any, ___: Any) -> None:
    await anyio.sleep_forever()


@pytest.mark.parametrize("is_late", [False, True])
def test_a_stream_is_told_that_the_server_ends_whether_it_began_before_or_after(is_late: bool) -> None:
    statuses: list[int] = []

    async def send(message: Any) -> None:
        statuses.extend([message["status"]] if "status" in message else [])

    async def run() -> None:
        exchanges = Exchanges(Response(status_code=503))
        scope = {"type": "http"}
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                if is_late:
                    exchanges.end()
                tasks.start_soon(lambda: exchanges.run(listens, scope, _nothing, send, listens=True))
                await anyio.wait_all_tasks_blocked()
                if not is_late:
                    exchanges.end()

    anyio.run(run)
    assert statuses == [503]


async def _nothing() -> Any:
    await anyio.sleep_forever()
