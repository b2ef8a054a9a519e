from __future__ import annotations

from collections.abc import Iterator

import pytest

from support import a2a_places as a2a
from taskyard.remote.backend import Work
from taskyard.testing import check_remote_backend


@pytest.fixture(scope="module")
def place() -> Iterator[str]:
    with a2a.agent("--token", a2a.TOKEN) as url:
        yield url


def _slowly(work: Work) -> Work:
    lines = work.prompt.splitlines()
    return work._replace(prompt="\n".join([*lines[:3], "/wait 0.2", *lines[3:20], "/wait 0.2", *lines[20:]]))


def check(url: str, prefix: str) -> None:
    check_remote_backend(
        lambda: a2a.backend(url, a2a.TOKEN),
        talkative=_slowly,
        failing=lambda work: work._replace(prompt="/fail no luck"),
        endless=lambda work: work._replace(prompt="/forever"),
        asking=lambda work: work._replace(prompt="/ask Which one?\nThank you."),
        away=lambda: a2a.backend("http://127.0.0.1:9", a2a.TOKEN),
        stranger=lambda: a2a.backend(url, "another-token-0123456789"),
        patience=20,
        prefix=prefix,
    )


@pytest.mark.req("X-02")
def test_an_agent_of_others_keeps_the_contract_of_a_place_that_runs_agents(place: str) -> None:
    check(place, "r")
