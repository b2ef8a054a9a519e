"""Colours are given out in the order of joining."""

from __future__ import annotations

import asyncio

import pytest

from support.teams import easily, team, until
from taskyard import BadValue, Teammate
from taskyard.agents.teammate.embedded import Working
from taskyard.agents.teammate.rules import PALETTE, next_colour


@pytest.mark.req("K-04")
def test_the_least_used_colour_comes_next() -> None:
    assert next_colour([]) == "red"
    assert next_colour(["red", None, "green"]) == "blue"
    assert next_colour(PALETTE) == "red"
    assert next_colour([*PALETTE, "red"]) == "blue"


@pytest.mark.req("K-04", "M-01")
def test_teammates_get_colours_in_the_order_of_joining_unless_one_is_named() -> None:
    async def scene() -> None:
        async with team() as yard:
            for name, colour in (("ada", None), ("bob", "cyan"), ("eve", None)):
                job = await yard.jobs.start(Working(Teammate(name, "crew", colour=colour), easily))
                await until(lambda job=job: yard.jobs.get(job.id).facts.get("isIdle"))  # type: ignore[misc]
            members = yard.teams.get("crew").members
            assert {m.name: m.colour for m in members} == {"lead": None, "ada": "red", "bob": "cyan", "eve": "blue"}

    asyncio.run(scene())


@pytest.mark.req("K-04")
def test_a_colour_that_is_none_is_refused() -> None:
    with pytest.raises(BadValue, match="one of red, blue"):
        Teammate("ada", "crew", colour="ultraviolet", command=("true",)).wanted()
