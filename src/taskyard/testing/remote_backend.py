"""Conformance checks for implementations of `RemoteBackend`; they run work on a real remote."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from taskyard.core.system import boottime
from taskyard.core.values import NamedTuple
from taskyard.errors import RemoteAway, RemoteRefused
from taskyard.jobs.remote.backend import PollResult, RemoteState, Work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from taskyard.jobs.remote.backend import RemoteBackend

    BackendFactory = Callable[[], RemoteBackend]
    WorkShape = Callable[[Work], Work]

#: Lines that a session has to print: a shell must not change them, and the last line end may be missing.
LINES = (
    "one",
    "two  $HOME `id` 'q' \"d\" \\n %s",
    "three ✓ 𝄞 é",
    '{"type": "assistant", "message": {"content": [{"type": "text", "text": "four"}]}}',
    "five " * 400,
    *(f"line {number}" for number in range(6, 40)),
    "the last",
)

#: Seconds between polls.
_POLL_INTERVAL = 0.05

_T = TypeVar("_T")

#: Id of a session that was never started.
_UNKNOWN_SESSION = "taskyard-check-unknown"


class BackendCheck(NamedTuple):
    """The remote under test, and work for it."""

    make: BackendFactory
    talkative: WorkShape
    failing: WorkShape
    endless: WorkShape
    asking: WorkShape | None
    read: Callable[[str], Sequence[str]]
    patience: float
    prefix: str

    def work(self, shape: WorkShape, name: str, prompt: str = "Say it.") -> Work:
        """Return work of a shape, with an id that no other check uses."""
        return shape(Work(f"{self.prefix}{name}", prompt))


def check_remote_backend(
    make: BackendFactory,
    *,
    talkative: WorkShape,
    failing: WorkShape,
    endless: WorkShape,
    asking: WorkShape | None = None,
    away: BackendFactory | None = None,
    stranger: BackendFactory | None = None,
    read: Callable[[str], Sequence[str]] = str.splitlines,
    patience: float = 60.0,
    prefix: str = "r",
) -> None:
    """Assert the guarantees of every remote backend.

    Args:
        make: Makes a new backend for the same remote on each call.
        talkative: Gets a `Work` with id and prompt, and returns it with what the remote needs beside, so that
            its session prints the lines of the prompt, best over a second or two, and completes.
        failing: The same for a session that fails soon.
        endless: The same for a session that runs until it is stopped.
        asking: The same for a session that asks a question and completes once it gets a message; None if the
            remote accepts no messages: then every `send` must be refused.
        away: Makes a backend for a remote that cannot be reached.
        stranger: Makes a backend for the same remote, with credentials that it rejects.
        read: Returns the printed lines, given the text of the polls.
        patience: Seconds that any step may take on the remote.
        prefix: Prefix of work ids; a new one for each run where a remote never forgets.
    """
    place = BackendCheck(make, talkative, failing, endless, asking, read, patience, prefix)
    for check in _CHECKS:
        _run_check(check(place), check.__name__)
    if away is not None:
        _run_check(_an_unreachable_remote_is_away(away), "a_place_that_is_away_is_told_as_away")
    if stranger is not None:
        _run_check(_bad_credentials_are_refused(stranger), "a_stranger_is_refused")


def _run_check(check: Awaitable[None], name: str) -> None:
    async def carried_out() -> None:
        await check

    try:
        asyncio.run(carried_out())
    except AssertionError as error:
        raise AssertionError(f"{name.strip('_').replace('_', ' ')}: {error}") from error


async def _output_is_complete_and_delivered_once(place: BackendCheck) -> None:
    """Submit twice, poll with new backends in between, and repeat each poll."""
    work = place.work(place.talkative, "talk", "\n".join(LINES))
    session = await _with_new_backend(place, lambda backend: backend.submit(work))
    again = await _with_new_backend(place, lambda backend: backend.submit(work))
    assert again == session, f"a second submit of {work.id} began {again} beside {session}"
    cursor, parts = "", list[str]()
    while True:
        seen = await _poll_twice(place, session, cursor)
        parts.append(seen.text)
        cursor = seen.cursor
        if seen.state.is_final:
            break
        assert not seen.text or seen.text.endswith("\n"), f"half a line came before the end: {seen.text[-80:]!r}"
        await asyncio.sleep(_POLL_INTERVAL)
    assert seen.state is RemoteState.COMPLETED, f"it is {seen.state}: {seen.error}"
    said = list(place.read("".join(parts)))
    assert said == list(LINES), f"lines were lost, doubled or changed: {_first_difference(said)}"
    await _assert_final(place, session, seen, whole="".join(parts))
    assert await _with_new_backend(place, lambda backend: backend.submit(work)) == session, (
        "a submit after the end began another"
    )


async def _what_fails_is_failed_and_says_why(place: BackendCheck) -> None:
    work = place.work(place.failing, "fail")
    session = await _with_new_backend(place, lambda backend: backend.submit(work))
    seen = await _poll_until(place, session, lambda seen: seen.state.is_final)
    assert seen.state is RemoteState.FAILED, f"it is {seen.state}"
    assert seen.error.strip(), "it does not say why"
    await _assert_final(place, session, seen)


async def _a_stop_ends_it_and_may_be_repeated(place: BackendCheck) -> None:
    work = place.work(place.endless, "endless")
    session = await _with_new_backend(place, lambda backend: backend.submit(work))
    other = await _with_new_backend(place, lambda backend: backend.submit(place.work(place.endless, "other")))
    assert other != session, "work of two ids shares a session"
    if place.asking is None:
        await _expect_refusal(
            place, lambda backend: backend.send(session, "hello"), "what is sent to it, as it takes nothing"
        )
    seen = await _with_new_backend(place, lambda backend: backend.poll(session))
    assert not seen.state.is_final, f"it is {seen.state} already: {seen.error}"
    await _with_new_backend(place, lambda backend: backend.stop(session))
    seen = await _poll_until(place, session, lambda seen: seen.state.is_final)
    assert seen.state is RemoteState.STOPPED, f"after a stop it is {seen.state}: {seen.error}"
    await _assert_final(place, session, seen)
    left = await _with_new_backend(place, lambda backend: backend.poll(other))
    assert not left.state.is_final, f"the stop of one session ended another: {left.state}"
    await _with_new_backend(place, lambda backend: backend.stop(other))
    await _poll_until(place, other, lambda seen: seen.state is RemoteState.STOPPED)


async def _a_question_is_shown_until_it_is_answered(place: BackendCheck) -> None:
    if place.asking is None:
        return
    work = place.work(place.asking, "ask")
    session = await _with_new_backend(place, lambda backend: backend.submit(work))
    seen = await _poll_until(place, session, lambda seen: seen.state is not RemoteState.RUNNING)
    assert seen.state is RemoteState.NEEDS_INPUT, f"it is {seen.state}: {seen.error}"
    assert seen.question.strip(), "it does not say what it asks"
    await _with_new_backend(place, lambda backend: backend.send(session, "The blue one, please."))
    seen = await _poll_until(place, session, lambda seen: seen.state.is_final)
    assert seen.state is RemoteState.COMPLETED, f"it was answered and is {seen.state}: {seen.error}"


async def _an_unknown_session_is_lost(place: BackendCheck) -> None:
    seen = await _with_new_backend(place, lambda backend: backend.poll(_UNKNOWN_SESSION))
    assert seen.state is RemoteState.LOST, f"it is {seen.state}"
    assert seen.error.strip(), "it does not say that it is unknown"
    await _with_new_backend(place, lambda backend: backend.stop(_UNKNOWN_SESSION))
    await _expect_refusal(
        place, lambda backend: backend.send(_UNKNOWN_SESSION, "hello"), "what is sent to an unknown session"
    )


async def _an_unreachable_remote_is_away(away: BackendFactory) -> None:
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


async def _bad_credentials_are_refused(stranger: BackendFactory) -> None:
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


async def _with_new_backend(place: BackendCheck, act: Callable[[RemoteBackend], Awaitable[_T]]) -> _T:
    """Run one call on a new backend: no state may be kept between calls."""
    backend = place.make()
    try:
        return await asyncio.wait_for(act(backend), place.patience)
    finally:
        await backend.close()


async def _poll_twice(place: BackendCheck, session: str, cursor: str) -> PollResult:
    """Poll twice with one cursor; the second text must begin with the first. Return the second result."""
    first = await _with_new_backend(place, lambda backend: backend.poll(session, cursor))
    second = await _with_new_backend(place, lambda backend: backend.poll(session, cursor))
    assert second.text.startswith(first.text), f"asked again from {cursor!r}, another text came"
    if first.state.is_final:
        assert second == first, f"it was over, and changed: {first} became {second}"
    return second


async def _poll_until(place: BackendCheck, session: str, is_so: Callable[[PollResult], bool]) -> PollResult:
    deadline = boottime() + place.patience
    while True:
        seen = await _with_new_backend(place, lambda backend: backend.poll(session))
        if is_so(seen):
            return seen
        assert boottime() < deadline, f"after {place.patience:.0f} s it is still {seen.state}"
        await asyncio.sleep(_POLL_INTERVAL)


async def _assert_final(place: BackendCheck, session: str, seen: PollResult, *, whole: str | None = None) -> None:
    """Assert that nothing changes any more, not even by a stop."""
    await _with_new_backend(place, lambda backend: backend.stop(session))
    after = await _with_new_backend(place, lambda backend: backend.poll(session, seen.cursor))
    assert (after.state, after.cursor, after.text) == (seen.state, seen.cursor, ""), f"{after} after the end ({seen})"
    if whole is not None:
        assert await _read_all(place, session) == whole, "from its beginning it tells something else"
    await _expect_refusal(place, lambda backend: backend.send(session, "too late"), "what is sent after the end")


async def _read_all(place: BackendCheck, session: str) -> str:
    """Return the whole output of a finished session, by as many polls as it takes."""
    deadline, cursor, parts = boottime() + place.patience, "", list[str]()
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
        assert boottime() < deadline, f"it is over, and from its beginning it is {seen.state}"


async def _expect_refusal(place: BackendCheck, act: Callable[[RemoteBackend], Awaitable[object]], what: str) -> None:
    try:
        await _with_new_backend(place, act)
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
    "submit": lambda backend: backend.submit(Work(_UNKNOWN_SESSION, "Say it.", command="true")),
    "poll": lambda backend: backend.poll(_UNKNOWN_SESSION),
    "send": lambda backend: backend.send(_UNKNOWN_SESSION, "hello"),
    "stop": lambda backend: backend.stop(_UNKNOWN_SESSION),
}

_CHECKS: tuple[Callable[[BackendCheck], Awaitable[None]], ...] = (
    _output_is_complete_and_delivered_once,
    _what_fails_is_failed_and_says_why,
    _a_stop_ends_it_and_may_be_repeated,
    _a_question_is_shown_until_it_is_answered,
    _an_unknown_session_is_lost,
)
