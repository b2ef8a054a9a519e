"""
What a task list does when one caller uses it alone: the models that histories are checked against.

Answers are "ok" or the error's code; a refusal is right if its reason is true at that moment. What
depends on other tasks (`blocked`, `agent_busy`) is accepted wherever it changes nothing.

    create(id) · claim|start|complete|release(id, agent) · delete(id)
    reopen(id)  is setting the status to pending, whatever it was
    get(id)    answers (status, owner) or "not_found"
    next_id()  answers the id as an int (of `IdCounter`)
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

from support.linearizable import Event

PENDING, IN_PROGRESS, COMPLETED = "pending", "in_progress", "completed"


class TaskState(NamedTuple):
    """What is seen of a task."""

    status: str = PENDING
    owner: str | None = None


#: The task's state, or why there is none: "unborn" may become one, "deleted" never again.
State = TaskState | str
UNBORN, DELETED = "unborn", "deleted"


class TaskModel:
    """One task: `args[0]` is its id, `args[1]` the agent where there is one."""

    def __init__(self, *, initial: State = UNBORN, owner_completes: bool = False) -> None:
        self.initial = initial
        self.owner_completes = owner_completes  # a completion by another than the owner is impossible

    def part(self, event: Event) -> Hashable:
        return event.args[0]

    def start(self) -> State:
        return self.initial

    def only_looks(self, event: Event) -> bool:
        return event.t1 is not None and (event.op == "get" or event.result != "ok")

    def step(self, state: State, event: Event) -> Sequence[State]:
        after = self._after(state, event)
        if event.t1 is None:
            return [] if after is None else [after]
        if event.op == "get":
            seen = tuple(state) if isinstance(state, TaskState) else "not_found"
            return [state] if event.result == seen else []
        if event.result == "ok":
            return [] if after is None else [after]
        return [state] if _refusal_is_true(state, event) else []

    def _after(self, state: State, event: Event) -> State | None:
        """The state after the operation succeeded; None if it cannot."""
        if event.op == "create":
            return TaskState() if state == UNBORN else None
        if not isinstance(state, TaskState):
            return None
        if event.op == "get":
            return state
        if event.op == "delete":
            return DELETED
        return self._moved(state, event.op, _agent(event))

    def _moved(self, task: TaskState, op: str, agent: str | None) -> TaskState | None:
        is_free = task.owner in (None, agent)
        match op:
            case "claim" if is_free and task.status != COMPLETED:
                return TaskState(task.status, agent)
            case "start" if is_free and task.status != COMPLETED:
                return TaskState(IN_PROGRESS, agent)
            case "complete" if is_free or task.status == COMPLETED or not self.owner_completes:
                return TaskState(COMPLETED, task.owner)
            case "release" if is_free and task.status != COMPLETED:
                return TaskState(PENDING, None)
            case "reopen":
                return task if task.status == PENDING else TaskState(PENDING, None)
            case "claim" | "start" | "complete" | "release":
                return None
            case _:
                raise ValueError(f"no such operation on a task: {op!r}")


class IdCounter:
    """Ids only count up. `issued` are all ids seen, so that a gap (a refused create spends one) is no fault."""

    def __init__(self, issued: Iterable[int]) -> None:
        self.issued = sorted(set(issued))

    @classmethod
    def of(cls, history: Iterable[Event]) -> IdCounter:
        """The counter that gave out the ids of `history`."""
        return cls(event.result for event in history if isinstance(event.result, int))

    def part(self, event: Event) -> Hashable:
        return "the id counter"

    def start(self) -> int:
        return 0

    def only_looks(self, event: Event) -> bool:
        return not isinstance(event.result, int)

    def step(self, state: int, event: Event) -> Sequence[int]:
        """The next id is the lowest issued one above the last: a lower one would come too late."""
        if not isinstance(event.result, int):
            return [state]  # refused or never returned: it spent an id that nobody saw, or none
        following = bisect_right(self.issued, state)
        return [event.result] if self.issued[following : following + 1] == [event.result] else []


def _agent(event: Event) -> str | None:
    agent = event.args[1] if len(event.args) > 1 else None
    if agent is not None and not isinstance(agent, str):
        raise TypeError(f"the agent is no name: {event}")
    return agent


def _refusal_is_true(state: State, event: Event) -> bool:
    """Whether the reason given holds in `state`."""
    if not isinstance(state, TaskState):
        return event.result == "not_found"
    done = state.status == COMPLETED
    of_another = state.owner not in (None, _agent(event))
    match event.result:
        case "already_claimed":
            return of_another
        case "already_resolved":
            return done
        case "lease_lost":
            return state.owner != _agent(event)
        case "bad_transition":
            return done and event.op != "reopen"
        case "blocked" | "agent_busy":
            return not done
        case _:
            return False
