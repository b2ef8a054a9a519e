"""What every `RemoteBackend` promises, as checks that run work at a real place."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from taskyard.clock import elapsed
from taskyard.errors import RemoteAway, RemoteRefused
from taskyard.remote.backend import RemoteState, Seen, Work
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from taskyard.remote.backend import RemoteBackend

    Make = Callable[[], RemoteBackend]
    Shape = Callable[[Work], Work]

#: What a session is asked to say: nothing of it may be eaten by a shell, and the last line may lack its end.
LINES = (
    "one",
    "two  $HOME `id` 'q' \"d\" \\n %s",
    "three ✓ 𝄞 é",
    '{"type": "assistant", "message": {"content": [{"type": "text", "text": "four"}]}}',
    "five " * 400,
    *(f"line {number}" for number in range(6, 40)),
    "the last",
)

#: Seconds between two looks.
_LOOK = 0.05

_T = TypeVar("_T")

#: The id of a session that was never begun.
_NOBODY = "taskyard-check-nobody"


class Place(NamedTuple):
    """The place that is checked, and work for it."""

    make: Make
    talkative: Shape
    failing: Shape
    endless: Shape
    asking: Shape | None
    read: Callable[[str], Sequence[str]]
    patience: float
    prefix: str

    def work(self, shape: Shape, name: str, prompt: str = "Say it.") -> Work:
        """Work of a shape, with an id that no other check uses."""
        return shape(Work(f"{self.prefix}{name}", prompt))


def check_remote_backend(
    make: Make,
    *,
    talkative: Shape,
    failing: Shape,
    endless: Shape,
    asking: Shape | None = None,
    away: Make | None = None,
    stranger: Make | None = None,
    read: Callable[[str], Sequence[str]] = str.splitlines,
    patience: float = 60.0,
    prefix: str = "r",
) -> None:
    """Assert what every place that runs agents promises.

    Args:
        make: a backend for one and the same place, anew each time.
        talkative: gets a `Work` with an id and a prompt, and gives it back with what the place needs beside, so that
            its session says the lines of the prompt, best over a second or two, and completes.
        failing: the same for a session that fails soon.
        endless: for one that goes on until it is stopped.
        asking: for one that asks something, and completes once it is told something; None where a place takes nothing:
            then whatever is sent is refused.
        away: a backend for a place that cannot be reached.
        stranger: one for the same place, with credentials that it does not take.
        read: the lines that were said, of the text that polls gave.
        patience: seconds that anything may take there.
        prefix: what ids of work begin with; another one each time where a place never forgets.
    """
    place = Place(make, talkative, failing, endless, asking, read, patience, prefix)
    for check in _CHECKS:
        _checked(check(place), check.__name__)
    if away is not None:
        _checked(_a_place_that_is_away_is_told_as_away(away), "a_place_that_is_away_is_told_as_away")
    if stranger is not None:
        _checked(_a_stranger_is_refused(stranger), "a_stranger_is_refused")


def _checked(check: Awaitable[None], name: str) -> None:
    async def carried_out() -> None:
        await check

    try:
        asyncio.run(carried_out())
    except AssertionError as error:
        raise AssertionError(f"{name.strip('_').replace('_', ' ')}: {error}") from error


async def _what_is_said_comes_whole_and_once_whoever_asks(place: Place) -> None:
    """Submitted twice, polled by backends that are made anew in the middle, each poll repeated."""
    work = place.work(place.talkative, "talk", "\n".join(LINES))
    session = await _by_one(place, lambda backend: backend.submit(work))
    again = await _by_one(place, lambda backend: backend.submit(work))
    assert again == session, f"a second submit of {work.id} began {again} beside {session}"
    cursor, parts = "", list[str]()
    while True:
        seen = await _polled_twice(place, session, cursor)
        parts.append(seen.text)
        cursor = seen.cursor
        if seen.state.is_final:
            break
        assert not seen.text or seen.text.endswith("\n"), f"half a line came before the end: {seen.text[-80:]!r}"
        await asyncio.sleep(_LOOK)
    assert seen.state is RemoteState.COMPLETED, f"it is {seen.state}: {seen.error}"
    said = list(place.read("".join(parts)))
    assert said == list(LINES), f"lines were lost, doubled or changed: {_first_difference(said)}"
    await _assert_final(place, session, seen, whole="".join(parts))
    assert await _by_one(place, lambda backend: backend.submit(work)) == session, "a submit after the end began another"


async def _what_fails_is_failed_and_says_why(place: Place) -> None:
    work = place.work(place.failing, "fail")
    session = await _by_one(place, lambda backend: backend.submit(work))
    seen = await _until(place, session, lambda seen: seen.state.is_final)
    assert seen.state is RemoteState.FAILED, f"it is {seen.state}"
    assert seen.error.strip(), "it does not say why"
    await _assert_final(place, session, seen)


async def _a_stop_ends_it_and_may_be_repeated(place: Place) -> None:
    work = place.work(place.endless, "endless")
    session = await _by_one(place, lambda backend: backend.submit(work))
    other = await _by_one(place, lambda backend: backend.submit(place.work(place.endless, "other")))
    assert other != session, "work of two ids shares a session"
    if place.asking is None:
        await _refused(place, lambda backend: backend.send(session, "hello"), "what is sent to it, as it takes nothing")
    seen = await _by_one(place, lambda backend: backend.poll(session))
    assert not seen.state.is_final, f"it is {seen.state} already: {seen.error}"
    await _by_one(place, lambda backend: backend.stop(session))
    seen = await _until(place, session, lambda seen: seen.state.is_final)
    assert seen.state is RemoteState.STOPPED, f"after a stop it is {seen.state}: {seen.error}"
    await _assert_final(place, session, seen)
    left = await _by_one(place, lambda backend: backend.poll(other))
    assert not left.state.is_final, f"the stop of one session ended another: {left.state}"
    await _by_one(place, lambda backend: backend.stop(other))
    await _until(place, other, lambda seen: seen.state is RemoteState.STOPPED)


async def _a_question_is_shown_until_it_is_answered(place: Place) -> None:
    if place.asking is None:
        return
    work = place.work(place.asking, "ask")
    session = await _by_one(place, lambda backend: backend.submit(work))
    seen = await _until(place, session, lambda seen: seen.state is not RemoteState.RUNNING)
    assert seen.state is RemoteState.NEEDS_INPUT, f"it is {seen.state}: {seen.error}"
    assert seen.question.strip(), "it does not say what it asks"
    await _by_one(place, lambda backend: backend.send(session, "The blue one, please."))
    seen = await _until(place, session, lambda seen: seen.state.is_final)
    assert seen.state is RemoteState.COMPLETED, f"it was answered and is {seen.state}: {seen.error}"


async def _a_session_that_nobody_knows_is_lost(place: Place) -> None:
    seen = await _by_one(place, lambda backend: backend.poll(_NOBODY))
    assert seen.state is RemoteState.LOST, f"it is {seen.state}"
    assert seen.error.strip(), "it does not say that it is unknown"
    await _by_one(place, lambda backend: backend.stop(_NOBODY))
    await _refused(place, lambda backend: backend.send(_NOBODY, "hello"), "what is sent to an unknown session")


async def _a_place_that_is_away_is_told_as_away(away: Make) -> None:
    for verb, act in _VERBS.items():
        backend = away()
        try:
            await act(backend)
        except RemoteAway as error:
            assert error.why.strip(), f"{verb} does not say why"
        else:
            raise AssertionError(f"{verb} went well at a place that cannot be reached")
        finally:
            await backend.close()


async def _a_stranger_is_refused(stranger: Make) -> None:
    for verb, act in _VERBS.items():
        backend = stranger()
        try:
            await act(backend)
        except RemoteRefused as error:
            assert error.why.strip(), f"{verb} does not say why"
        else:
            raise AssertionError(f"{verb} went well with credentials that are not taken")
        finally:
            await backend.close()


async def _by_one(place: Place, act: Callable[[RemoteBackend], Awaitable[_T]]) -> _T:
    """What a backend answers that was made for this alone: nothing may be kept in between."""
    backend = place.make()
    try:
        return await asyncio.wait_for(act(backend), place.patience)
    finally:
        await backend.close()


async def _polled_twice(place: Place, session: str, cursor: str) -> Seen:
    """The second of two polls with one cursor, which must begin with what the first one told."""
    first = await _by_one(place, lambda backend: backend.poll(session, cursor))
    second = await _by_one(place, lambda backend: backend.poll(session, cursor))
    assert second.text.startswith(first.text), f"asked again from {cursor!r}, another text came"
    if first.state.is_final:
        assert second == first, f"it was over, and changed: {first} became {second}"
    return second


async def _until(place: Place, session: str, is_so: Callable[[Seen], bool]) -> Seen:
    deadline = elapsed() + place.patience
    while True:
        seen = await _by_one(place, lambda backend: backend.poll(session))
        if is_so(seen):
            return seen
        assert elapsed() < deadline, f"after {place.patience:.0f} s it is still {seen.state}"
        await asyncio.sleep(_LOOK)


async def _assert_final(place: Place, session: str, seen: Seen, *, whole: str | None = None) -> None:
    """That nothing changes any more, also by a stop."""
    await _by_one(place, lambda backend: backend.stop(session))
    after = await _by_one(place, lambda backend: backend.poll(session, seen.cursor))
    assert (after.state, after.cursor, after.text) == (seen.state, seen.cursor, ""), f"{after} after the end ({seen})"
    if whole is not None:
        assert await _from_the_beginning(place, session) == whole, "from its beginning it tells something else"
    await _refused(place, lambda backend: backend.send(session, "too late"), "what is sent after the end")


async def _from_the_beginning(place: Place, session: str) -> str:
    """What a session that is over said, by as many polls as it takes."""
    deadline, cursor, parts = elapsed() + place.patience, "", list[str]()
    while True:
        backend = place.make()
        try:
            seen = await backend.poll(session, cursor)
        finally:
            await backend.close()
        parts.append(seen.text)
        cursor = seen.cursor
        if seen.state.is_final:
            return "".join(parts)
        assert elapsed() < deadline, f"it is over, and from its beginning it is {seen.state}"


async def _refused(place: Place, act: Callable[[RemoteBackend], Awaitable[object]], what: str) -> None:
    try:
        await _by_one(place, act)
    except RemoteRefused as error:
        assert error.why.strip(), f"{what}: it does not say why"
    else:
        raise AssertionError(f"{what} was taken")


def _first_difference(said: Sequence[str]) -> str:
    for number, (want, have) in enumerate(zip(LINES, said, strict=False), 1):
        if want != have:
            return f"line {number} is {have[:80]!r}, not {want[:80]!r}"
    return f"{len(said)} lines, not {len(LINES)}"


_VERBS: dict[str, Callable[[RemoteBackend], Awaitable[object]]] = {
    "submit": lambda backend: backend.submit(Work(_NOBODY, "Say it.", command="true")),
    "poll": lambda backend: backend.poll(_NOBODY),
    "send": lambda backend: backend.send(_NOBODY, "hello"),
    "stop": lambda backend: backend.stop(_NOBODY),
}

_CHECKS: tuple[Callable[[Place], Awaitable[None]], ...] = (
    _what_is_said_comes_whole_and_once_whoever_asks,
    _what_fails_is_failed_and_says_why,
    _a_stop_ends_it_and_may_be_repeated,
    _a_question_is_shown_until_it_is_answered,
    _a_session_that_nobody_knows_is_lost,
)
