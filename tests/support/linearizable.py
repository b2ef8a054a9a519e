"""
Whether a recorded concurrent run could have happened one operation at a time.

A history is linearizable if every operation can be given one moment between its call and its return,
such that a sequential model, run in the order of those moments, gives exactly the recorded answers.
The search is Wing and Gong's with Lowe's memoisation, and two things that keep thousands of events cheap:

* Parts. The model says which part (which task) an event is about; parts are checked one by one, which
  is sound because linearizability is local.
* What only looks goes first. An event whose answer never changes any state (a read, a refusal) is placed
  as soon as it may be next and is right, without branching: in any order that works it can be moved there.
  (One that happens to change nothing now, as completing the completed, must not be: later it might.)

t0 and t1 come from `now()`, CLOCK_MONOTONIC: one clock for all processes of a machine. An operation that
never returned (its process was killed) has t1 None: it happened at some later moment, or never.

    history = [Event("p1", "claim", ("1", "ada"), "ok", t0, t1), …]
    assert check(history, TaskModel()) is None

Models: `task_models`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

#: A history that needs more is too tangled to decide; recorded runs need a few per event.
MOST_CONFIGURATIONS = 2_000_000

#: Later than any clock says.
_NEVER = 1 << 64

S = TypeVar("S", bound=Hashable)


class Event(NamedTuple):
    """One operation of one process: what was asked, what was answered, and when."""

    process: str
    op: str
    args: tuple[Hashable, ...]
    result: Hashable
    t0: int
    t1: int | None

    @property
    def deadline(self) -> int:
        """The last moment at which it can have happened."""
        return _NEVER if self.t1 is None else self.t1

    def __str__(self) -> str:
        asked = f"{self.process}: {self.op}({', '.join(map(str, self.args))})"
        if self.t1 is None:
            return f"{asked} never returned  [{self.t0} ns, …]"
        return f"{asked} -> {self.result}  [{self.t0} ns, +{self.t1 - self.t0} ns]"


class Violation(NamedTuple):
    """Why a history cannot be."""

    text: str


class Undecided(Exception):
    """The search grew beyond `MOST_CONFIGURATIONS`: no answer either way."""


class Model(Protocol[S]):
    """What one thing does when nobody else is there."""

    def part(self, event: Event) -> Hashable:
        """What `event` is about; parts never influence each other."""
        ...

    def start(self) -> S:
        """The state of a part before its first event."""
        ...

    def only_looks(self, event: Event) -> bool:
        """Whether `event`, with the answer it got, leaves every state as it is."""
        ...

    def step(self, state: S, event: Event) -> Sequence[S]:
        """Every state `event` may leave behind, given its answer; none if that answer is impossible.

        Of an event that never returned: every state that any answer of it could leave behind.
        """
        ...


def now() -> int:
    """This moment, on the clock that every process of the machine shares."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def recorded(process: str, op: str, args: tuple[Hashable, ...], act: Callable[[], Hashable]) -> Event:
    """Run `act`, and keep its answer and the moments around it."""
    t0 = now()
    result = act()
    return Event(process, op, args, result, t0, now())


def check(history: Iterable[Event], model: Model[S]) -> Violation | None:
    """None if `history` is linearizable by `model`, else what contradicts it.

    Raises:
        Undecided: the search became too large.
        ValueError: an event ended before it began, so the times are not from one clock.
    """
    parts: dict[Hashable, list[Event]] = {}
    for event in history:
        if event.deadline < event.t0:
            raise ValueError(f"it ended before it began: {event}")
        parts.setdefault(model.part(event), []).append(event)
    for part, events in parts.items():
        if (why := _Search(events, model).contradiction()) is not None:
            return Violation(f"{part!r} is not linearizable. {why}")
    return None


class _Place(NamedTuple):
    """How far an order has come: which events it has placed, and the state they left."""

    first: int  #: the first returned event, by t0, that is not placed
    later: int  #: bits of the placed ones after it, counted from it
    lost: int  #: bits of the placed ones among those that never returned
    state: Hashable

    def placed(self) -> int:
        return self.first + self.later.bit_count() + self.lost.bit_count()

    def with_event(self, index: int, state: Hashable) -> _Place:
        """This place after returned event `index`, which leaves `state`."""
        first, later = self.first, self.later | 1 << (index - self.first)
        while later & 1:
            first, later = first + 1, later >> 1
        return _Place(first, later, self.lost, state)


class _Search(Generic[S]):
    """The hunt for one order of one part's events."""

    def __init__(self, events: Iterable[Event], model: Model[S]) -> None:
        in_order = sorted(events, key=lambda event: (event.t0, event.deadline))
        self.events = [event for event in in_order if event.t1 is not None]
        self.lost = [event for event in in_order if event.t1 is None]
        self.looks = [model.only_looks(event) for event in self.events]
        self.model = model

    def contradiction(self) -> str | None:
        """None if there is an order that explains every answer, else where all orders end."""
        stack = [_Place(0, 0, 0, self.model.start())]
        seen: set[_Place] = set()
        furthest = stack[0]
        while stack:
            place = self._settled(stack.pop())
            if place in seen:
                continue
            seen.add(place)
            if len(seen) > MOST_CONFIGURATIONS:
                raise Undecided(f"{len(seen):,} configurations of {len(self.events):,} events")
            if place.first == len(self.events):
                return None
            furthest = max(furthest, place, key=_Place.placed)
            stack.extend(self._branches(place))
        return self._told(furthest)

    def _settled(self, place: _Place) -> _Place:
        """`place` after every event that may be next, only looks, and saw this state."""
        while True:
            looks = [i for i in self._candidates(place) if self.looks[i] and self._step(place, self.events[i])]
            if not looks:
                return place
            for index in looks:
                place = place.with_event(index, place.state)

    def _branches(self, place: _Place) -> Iterator[_Place]:
        """The places one event further; the most promising, that which had to end first, comes last."""
        candidates = sorted(self._candidates(place), key=lambda i: self.events[i].deadline, reverse=True)
        deadline = min((self.events[i].deadline for i in candidates), default=_NEVER)
        for number, event in enumerate(self.lost):
            if event.t0 <= deadline and not place.lost >> number & 1:
                for state in self._step(place, event):
                    if state != place.state:  # with the state as it is, it may as well never have happened
                        yield place._replace(lost=place.lost | 1 << number, state=state)
        for index in (i for i in candidates if not self.looks[i]):
            for state in self._step(place, self.events[index]):
                yield place.with_event(index, state)

    def _candidates(self, place: _Place) -> list[int]:
        """The returned events that may be next: no other open one had ended before they began."""
        found: list[int] = []
        deadline, index, placed = _NEVER, place.first, place.later
        while index < len(self.events) and self.events[index].t0 <= deadline:
            if not placed & 1:
                found.append(index)
                deadline = min(deadline, self.events[index].deadline)
            index, placed = index + 1, placed >> 1
        return found

    def _step(self, place: _Place, event: Event) -> Sequence[S]:
        state: S = place.state  # type: ignore[assignment]  # places only ever hold what the model answered
        return self.model.step(state, event)

    def _told(self, place: _Place) -> str:
        total = len(self.events) + len(self.lost)
        lines = [
            f"The best order explains {place.placed()} of {total} events and leaves {place.state}; next can only be:"
        ]
        lines += [f"  {self.events[index]}" for index in self._candidates(place)[:8]]
        return "\n".join(lines)
