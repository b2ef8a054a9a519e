"""The rows about the list: creating, claiming, listing; ours and the reference."""

from __future__ import annotations

import json
import os
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from bench.folders import DESCRIPTION, LIST, list_folder, scratch
from bench.processes import Answer, ours, race, reference, run, wall
from bench.rounds import Sample

AGENTS = 10
CONTESTED = 100
LONGEST_WAIT = 1.0  #: seconds; a claim that waits longer is a fault

#: How a side is called: the folder that holds the list, then the options.
Command = Callable[..., list[str]]


class Ground(NamedTuple):
    """Where rows are measured, and how large."""

    folder: str
    quick: bool = False
    foreign_writers: bool = True

    def size(self, full: int, small: int) -> int:
        return small if self.quick else full

    def warm_up(self) -> tuple[str, str]:
        """As many operations as Node's compiler wants to have seen; a quick look does without."""
        return ("--warm", str(self.size(100, 5)))

    def command(self, name: str, tasks_dir: str, *args: str) -> list[str]:
        """Our side."""
        return ours(name, "--dir", tasks_dir, "--foreign-writers", "yes" if self.foreign_writers else "no", *args)

    def reference(self, name: str, tasks_dir: str, *args: str) -> list[str]:
        """The yardstick, on the same list."""
        return reference(name, "--dir", os.path.join(tasks_dir, LIST), *args)


def creates_ours(ground: Ground, *, processes: int) -> Sample:
    return _creates(ground, ground.command, processes)


def creates_reference(ground: Ground, *, processes: int) -> Sample:
    return _creates(ground, lambda *args: ground.reference(*args, "--desc", DESCRIPTION), processes)


def _creates(ground: Ground, command: Command, processes: int) -> Sample:
    each = ground.size(500, 100) if processes == 1 else ground.size(50, 10)
    size = ("--n", str(each), *ground.warm_up())
    with scratch(ground.folder) as tasks_dir:
        list_folder(tasks_dir)
        answers = race([command("create", tasks_dir, *size)] * processes, home=ground.folder)
        ids = Counter(str(task_id) for answer in answers for task_id in answer["answers"])
        on_disk = sum(name.removesuffix(".json").isdigit() for name in os.listdir(os.path.join(tasks_dir, LIST)))
    faults: list[str] = []
    if len(ids) != processes * each:
        faults.append("an id was given twice")
    if on_disk != processes * each:
        faults.append("a task is missing")
    return Sample(processes * each / wall(answers), _lock_errors(answers), tuple(faults))


def claims_ours(ground: Ground) -> Sample:
    return _claims(ground, ground.command)


def claims_reference(ground: Ground, *, lean: bool = False) -> Sample:
    """`lean`: without the look at all tasks that the original takes before it gives one out."""
    return _claims(ground, lambda *args: ground.reference(*args, "--lean", "yes" if lean else "no"))


def _claims(ground: Ground, command: Command) -> Sample:
    agents = [f"agent-{number}" for number in range(AGENTS)]
    with scratch(ground.folder) as tasks_dir:
        folder = list_folder(tasks_dir, tasks=CONTESTED)
        size = ("--n", str(CONTESTED), *ground.warm_up())
        racers = [command("claim", tasks_dir, *size, "--agent", agent) for agent in agents]
        answers = race(racers, home=ground.folder)
        owners = _owners(folder)
    won = [
        [agent for agent, answer in zip(agents, answers) if answer["answers"][number] == "ok"]
        for number in range(CONTESTED)
    ]
    longest = max(answer["longest"] for answer in answers) / 1e9
    doubled = sum(len(winners) > 1 for winners in won)
    lost = sum(len(winners) == 0 for winners in won)
    wrong = sum(winners not in ([], [owner]) for winners, owner in zip(won, owners) if len(winners) < 2)
    faults = [
        *([f"{doubled} tasks were claimed twice"] if doubled else []),
        *([f"{lost} tasks were claimed by nobody"] if lost else []),
        *([f"{wrong} tasks have another owner than their winner"] if wrong else []),
        *([f"a claim waited longer than {LONGEST_WAIT:g} s"] if longest >= LONGEST_WAIT else []),
    ]
    facts = {"double_claims": float(doubled), "longest_wait_ms": longest * 1000, **_lock_errors(answers)}
    return Sample(wall(answers) * 1000, facts, tuple(faults))


def _owners(folder: str) -> list[str | None]:
    owners: list[str | None] = []
    for number in range(1, CONTESTED + 1):
        with open(os.path.join(folder, f"{number}.json"), encoding="utf-8") as file:
            owners.append(json.load(file).get("owner"))
    return owners


def list_ours(ground: Ground) -> Sample:
    return _warm(ground, ground.command("list", _large(ground), "--rounds", "15"))


def list_reference(ground: Ground) -> Sample:
    return _warm(ground, ground.reference("list", _large(ground), "--rounds", "5"))


def _warm(ground: Ground, command: Sequence[str]) -> Sample:
    answer = run(command, home=ground.folder)
    facts = {"after_a_change_ms": answer["after_a_change"] / 1e6} if "after_a_change" in answer else {}
    stale = () if answer.get("fresh", True) else ("another program's change was not seen",)
    return Sample(statistics.median(answer["times"]) / 1e6, facts, (*_miscounted(ground, answer), *stale))


def cold_ours(ground: Ground) -> Sample:
    return _cold(ground, ground.command("cold", _large(ground)))


def cold_reference(ground: Ground) -> Sample:
    return _cold(ground, ground.reference("cold", _large(ground)))


def _cold(ground: Ground, command: Sequence[str]) -> Sample:
    answer = run(command, home=ground.folder)
    return Sample(wall([answer]) * 1000, faults=_miscounted(ground, answer))


def _large(ground: Ground) -> str:
    """The tasks folder with the large list, made once per ground; both sides read the very same files."""
    tasks_dir = os.path.join(ground.folder, "large" if ground.foreign_writers else "large-alone")
    if not os.path.isdir(tasks_dir):
        list_folder(tasks_dir, tasks=_large_size(ground))
    return tasks_dir


def _large_size(ground: Ground) -> int:
    return ground.size(10_000, 1_000)


def _miscounted(ground: Ground, answer: Answer) -> tuple[str, ...]:
    return () if answer["count"] == _large_size(ground) else (f"{answer['count']} tasks were listed",)


class Flat:
    """Our create on a list of 10 tasks and of 10,000: one process does both in turns, and each side reads its half."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.unread: dict[str, list[float]] = {"small": [], "large": []}

    def at_ten(self) -> Sample:
        return self._next("small")

    def at_ten_thousand(self) -> Sample:
        return self._next("large")

    def _next(self, side: str) -> Sample:
        if not self.unread[side]:
            answer = self._measured()
            for name, values in self.unread.items():
                values.append(statistics.median(answer[name]) / 1000)
        return Sample(self.unread[side].pop(0))

    def _measured(self) -> Answer:
        with scratch(self.ground.folder) as large, scratch(self.ground.folder) as small:
            list_folder(large, tasks=_large_size(self.ground))
            list_folder(small, tasks=10)
            return run(self.ground.command("flat", large, "--small", small, "--n", "5"), home=self.ground.folder)


def _lock_errors(answers: Sequence[Answer]) -> dict[str, float]:
    """How often a lock was not to be had within its 2.9 s; the reference then tries again."""
    count = sum(answer.get("lock_errors", 0) for answer in answers)
    return {"lock_errors": float(count)} if count else {}
