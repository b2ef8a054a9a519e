"""The contract of places that run agents finds what is broken, and names it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.fake_places import FakePlace
from taskyard.errors import RemoteAway, RemoteRefused
from taskyard.jobs.remote.backend import PollResult, RemoteState, Work
from taskyard.testing import check_remote_backend
from taskyard.testing.fake_remote import FakeBackend


@pytest.fixture
def place(tmp_path: Path) -> Iterator[FakePlace]:
    found = FakePlace(tmp_path / "place")
    yield found
    found.kill()


class _BeginsTwice(FakeBackend):
    began = 0

    async def submit(self, work: Work) -> str:
        type(self).began += 1
        return await super().submit(work._replace(id=f"{work.id}-{self.began}"))


class _Doubles(FakeBackend):
    async def poll(self, session: str, cursor: str = "") -> PollResult:
        seen = await super().poll(session, cursor)
        return seen._replace(text=seen.text + seen.text)


class _HalfLines(FakeBackend):
    async def poll(self, session: str, cursor: str = "") -> PollResult:
        seen = await super().poll(session, cursor)
        if seen.state.is_final or len(seen.text) < 2:
            return seen
        return seen._replace(text=seen.text[:-2], cursor=str(int(seen.cursor) - 2))


class _Forgets(FakeBackend):
    async def poll(self, session: str, cursor: str = "") -> PollResult:
        seen = await super().poll(session, cursor)
        return seen._replace(text=seen.text.replace("line 20\n", ""))


class _RaisesForUnknown(FakeBackend):
    async def poll(self, session: str, cursor: str = "") -> PollResult:
        seen = await super().poll(session, cursor)
        if seen.state is RemoteState.LOST:
            raise RemoteRefused("broken", "no such session")
        return seen


class _FailsSilently(FakeBackend):
    async def poll(self, session: str, cursor: str = "") -> PollResult:
        return (await super().poll(session, cursor))._replace(error="")


class _StopIsNothing(FakeBackend):
    async def stop(self, session: str) -> None:
        pass


class _TakesAnything(FakeBackend):
    async def send(self, session: str, text: str) -> None:
        try:
            await super().send(session, text)
        except RemoteRefused:
            pass


class _KeepsACount(FakeBackend):
    """Right as long as it lives, and lost when it is made anew."""

    def __init__(self, *given: object) -> None:
        super().__init__(*given)  # type: ignore[arg-type]
        self._sessions: set[str] = set()

    async def submit(self, work: Work) -> str:
        session = await super().submit(work)
        self._sessions.add(session)
        return session

    async def poll(self, session: str, cursor: str = "") -> PollResult:
        if session not in self._sessions:
            return PollResult(RemoteState.LOST, "", error="who?")
        return await super().poll(session, cursor)


@pytest.mark.req("K-03", "X-02")
@pytest.mark.parametrize(
    ("broken", "promise"),
    [
        (_BeginsTwice, "a second submit"),
        (_Doubles, "lost, doubled or changed|another text"),
        (_HalfLines, "half a line"),
        (_Forgets, "lost, doubled or changed"),
        (_RaisesForUnknown, "no such session"),
        (_FailsSilently, "does not say why"),
        (_StopIsNothing, "still running"),
        (_TakesAnything, "after the end was taken"),
        (_KeepsACount, "it is lost"),
    ],
)
def test_a_broken_promise_is_named(place: FakePlace, broken: type[FakeBackend], promise: str) -> None:
    with pytest.raises((AssertionError, RemoteRefused), match=promise):
        check_remote_backend(
            lambda: broken(place.remote()),
            talkative=lambda work: work._replace(prompt=work.prompt.replace("\n", "\n/wait 0.005\n")),
            failing=lambda work: work._replace(prompt="/fail no fuel"),
            endless=lambda work: work._replace(prompt="/forever"),
            asking=lambda work: work._replace(prompt="/ask Which one?"),
            patience=2,
        )


@pytest.mark.req("K-03")
def test_a_place_that_is_away_and_one_that_refuses_are_told_apart(place: FakePlace) -> None:
    class Swapped(FakeBackend):
        async def _ask(self, verb: str, **words: object) -> dict[str, object]:
            raise RemoteAway("swapped", "it says that it is away")

    with pytest.raises(RemoteAway):
        check_remote_backend(
            lambda: place.backend(),
            talkative=lambda work: work,
            failing=lambda work: work._replace(prompt="/fail no fuel"),
            endless=lambda work: work._replace(prompt="/forever"),
            asking=lambda work: work._replace(prompt="/ask Which one?"),
            stranger=lambda: Swapped(place.remote()),
        )
