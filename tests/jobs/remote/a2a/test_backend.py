from __future__ import annotations

from collections.abc import Iterator

import anyio
import pytest

from support import a2a_places as a2a
from taskyard.errors import RemoteRefused
from taskyard.jobs.remote.a2a import A2aBackend
from taskyard.jobs.remote.backend import PollResult, RemoteState, Work
from taskyard.testing import check_remote_backend


@pytest.fixture(scope="module")
def place() -> Iterator[str]:
    with a2a.agent("--token", a2a.TOKEN) as url:
        yield url


def _slowly(work: Work) -> Work:
    lines = work.prompt.splitlines()
    return work._replace(prompt="\n".join([*lines[:3], "/wait 0.2", *lines[3:20], "/wait 0.2", *lines[20:]]))


@pytest.mark.req("X-02")
def test_an_agent_of_others_keeps_the_contract_of_a_place_that_runs_agents(place: str) -> None:
    check_remote_backend(
        lambda: a2a.backend(place, a2a.TOKEN),
        talkative=_slowly,
        failing=lambda work: work._replace(prompt="/fail no luck"),
        endless=lambda work: work._replace(prompt="/forever"),
        asking=lambda work: work._replace(prompt="/ask Which one?\nThank you."),
        away=lambda: a2a.backend("http://127.0.0.1:9", a2a.TOKEN),
        stranger=lambda: a2a.backend(place, "another-token-0123456789"),
        patience=20,
    )


def seen_of(url: str, prompt: str, name: str) -> PollResult:
    """What is seen of work, once it is over."""

    async def body(made: A2aBackend) -> PollResult:
        session = await made.submit(Work(name, prompt))
        while True:
            seen = await made.poll(session)
            if seen.state.is_final:
                return seen
            await anyio.sleep(0.02)

    return a2a.talk(a2a.backend(url, a2a.TOKEN), body)


def test_states_messages_and_artifacts_of_others_are_told_in_our_words(place: str) -> None:
    rejected = seen_of(place, "/reject not mine", "w1")
    wordless = seen_of(place, "/fail", "w2")
    talked = seen_of(place, '/say Thinking\n/data {"type": "note", "n": 1}\n/replace page\n/part end', "w3")

    assert (rejected.state, rejected.error) == (RemoteState.FAILED, "not mine")
    assert wordless.state is RemoteState.FAILED and "without giving a reason" in wordless.error
    assert set(talked.text.splitlines()) == {"Thinking", '{"n": 1, "type": "note"}', "page", "end"}


def test_an_agent_says_who_it_is_and_a_stranger_is_told_so_before_anything_begins(place: str) -> None:
    assert a2a.talk(a2a.backend(place, a2a.TOKEN), lambda made: made.probe()) == "runner 1.2: run"
    with pytest.raises(RemoteRefused, match="token"):
        a2a.talk(a2a.backend(place, "wrong-token-0123456789"), lambda made: made.probe())


def test_agents_that_speak_rest_or_list_nothing_are_places_too() -> None:
    with a2a.agent("--rest", "--no-list", "--token", a2a.TOKEN) as url:
        seen = seen_of(url, "one\n/part two", "w1")

    assert (seen.state, seen.text, seen.result) == (RemoteState.COMPLETED, "one\ntwo\n", "one\ntwo")
