"""How a team's work went: counts by the log, time, tokens and cost by the jobs, and the word about a verifier."""

from __future__ import annotations

from collections import Counter

from taskyard.errors import JobNotFound
from taskyard.shapes import as_object
from taskyard.tasklist.nudge import verification_nudge
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from taskyard.app import Yard
    from taskyard.tasklist.model import Task


class Tally:
    """What the lead counts on the way."""

    def __init__(self, began: int) -> None:
        self.began = began  #: epoch ms
        self.ended = began
        self.jobs: list[str] = []
        self.died = 0
        self.replaced = 0
        self.faults: list[str] = []


class Outcome(NamedTuple):
    """How it went."""

    team: str
    tasks: tuple[Task, ...]
    done_by: Mapping[str, int]  #: how many tasks each completed
    seconds: float
    jobs: tuple[str, ...]
    died: int
    replaced: int
    tokens: int
    tools: int
    cost_usd: float | None  #: None: no engine said
    nudge: str | None  #: who should check it, where nobody did
    faults: tuple[str, ...]

    @property
    def open(self) -> tuple[Task, ...]:
        """What was not done."""
        return tuple(task for task in self.tasks if not task.is_done)

    @classmethod
    def of(cls, yard: Yard, team: str, tally: Tally, *, since: int) -> Self:
        """The outcome by list, log and jobs as they are now; of the log what came from entry `since` on."""
        tasks = tuple(yard.tasks.list())
        done: Counter[str] = Counter()
        for change in yard.tasks.log(since=since):
            if change.act.cause == "complete" and not change.aborted:
                real = [task for task in change.tasks.values() if task is not None and not task.is_internal]
                done[change.act.by or "somebody"] += len(real)
        tokens, tools, cost = _spent(yard, tally.jobs)
        settings = yard.settings
        return cls(
            team,
            tasks,
            {name: count for name, count in sorted(done.items()) if count},
            (tally.ended - tally.began) / 1000,
            tuple(tally.jobs),
            tally.died,
            tally.replaced,
            tokens,
            tools,
            cost,
            verification_nudge(tasks, verifier=settings.verifier) if settings.verify_nudge else None,
            tuple(tally.faults),
        )


def _spent(yard: Yard, jobs: list[str]) -> tuple[int, int, float | None]:
    tokens = tools = 0
    cost: float | None = None
    for job_id in jobs:
        try:
            facts = yard.jobs.get(job_id).facts
        except JobNotFound:
            continue
        usage = as_object(facts.get("usage")) or {}
        tokens += _count(usage.get("total_tokens"))
        tools += _count(usage.get("tool_uses"))
        if isinstance(usd := facts.get("costUsd"), (int, float)) and not isinstance(usd, bool):
            cost = (cost or 0.0) + float(usd)
    return tokens, tools, cost


def _count(value: object) -> int:
    return value if type(value) is int and value > 0 else 0
