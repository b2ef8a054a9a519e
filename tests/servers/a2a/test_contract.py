"""Both ends are ours: what one offers, the other uses as it would any place that runs agents."""

from __future__ import annotations

import pytest

from support import a2a_places as a2a
from support.a2a_places import OurServer
from taskyard.jobs.remote.backend import Work
from taskyard.testing import check_remote_backend


def _slowly(work: Work) -> Work:
    lines = work.prompt.splitlines()
    return work._replace(prompt="\n".join([*lines[:3], "/wait 0.2", *lines[3:20], "/wait 0.2", *lines[20:]]))


@pytest.mark.req("X-02")
def test_what_we_offer_keeps_the_contract_of_a_place_that_runs_agents(server: OurServer) -> None:
    check_remote_backend(
        server.backend,
        talkative=_slowly,
        failing=lambda work: work._replace(prompt="/fail no luck"),
        endless=lambda work: work._replace(prompt="/forever"),
        asking=lambda work: work._replace(prompt="/ask Which one?\nThank you."),
        stranger=lambda: a2a.backend(server.url, "another-token-0123456789"),
        patience=20,
    )
