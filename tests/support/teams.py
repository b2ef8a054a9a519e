"""Teammates in tests: a team with a lead, and work that is a function."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import taskyard
from taskyard import AsyncYard
from taskyard.agents.teammate.loop import Turn

#: Seconds that only guard against hanging.
SOON = 20.0


@asynccontextmanager
async def team(name: str = "crew", *, lead: str = "lead") -> AsyncIterator[AsyncYard]:
    """A team with a lead and an empty list, as its lead sees it."""
    async with taskyard.open_async(list=name, agent=lead) as yard:
        yard.teams.create(name, lead=lead)
        yield yard


async def until(condition: Callable[[], object]) -> None:
    """Return as soon as `condition()` is true; fail if it is not in time."""
    async with asyncio.timeout(SOON):
        while not condition():  # noqa: ASYNC110  # it may be a file that changes
            await asyncio.sleep(0.005)


async def easily(turn: Turn) -> str:
    """Work that goes well at once."""
    return f"did {turn.task.subject}" if turn.task is not None else "understood"
