"""
A program with many teammates inside: `python -m bench.crowd FOLDER TEAMMATES TURNS`, measured as others are
(`bench.processes`).

Each of their tasks takes a tenth of the turns, so that each does about ten. It answers what each of them costs in
memory beyond the program around it, what was done twice or left, and what all of them cost while they idle.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from collections import Counter

import taskyard
from taskyard import Teammate
from taskyard.agents.identity import TeammateIdentity
from taskyard.agents.teammate.embedded import Working
from taskyard.agents.teammate.loop import Turn

TEAM = "crowd"

#: Tasks for each teammate.
EACH = 10

#: What is said in a turn: a page.
PAGE = "All work and no play makes a dull teammate. " * 45

#: Seconds over which idleness is measured.
_IDLE = 3.0

#: Nobody waits longer for all of them to be done.
_LONGEST = 1800.0


async def crowd(folder: str, count: int, turns: int) -> dict[str, float]:
    """Have them do everything, then idle."""
    done: Counter[str] = Counter()
    idle: set[str] = set()
    rested = asyncio.Event()
    in_task = max(1, turns // EACH)

    async def work(turn: Turn) -> str:
        assert turn.task is not None
        for number in range(in_task):
            turn.say(f"{number}: {PAGE}")
            await asyncio.sleep(0)
        done[turn.task.id] += 1
        return PAGE

    def on_idle(who: TeammateIdentity, is_idle: bool) -> None:
        (idle.add if is_idle else idle.discard)(who.name)
        if len(idle) == count and len(done) == count * EACH:
            rested.set()

    async with taskyard.open_async(tasks_dir=folder, list=TEAM, agent="lead") as yard:
        yard.teams.create(TEAM, lead="lead")
        for number in range(count * EACH):
            yard.tasks.create(f"Task {number}")
        before, began = memory(), time.monotonic()
        for number in range(count):
            teammate = Teammate(f"m{number}", TEAM, until="stopped", tasks_dir=folder)
            await yard.jobs.start(Working(teammate, work, [on_idle]))
        await asyncio.wait_for(rested.wait(), _LONGEST)
        took, grown = time.monotonic() - began, memory() - before
        await asyncio.sleep(1.0)  # what the last of them left to do is not idling
        used = time.process_time()
        await asyncio.sleep(_IDLE)
        busy = 100 * (time.process_time() - used) / _IDLE
        left = sum(not task.is_done for task in yard.tasks.list())
    return {
        "mb_each": round(grown / count, 3),
        "twice": float(sum(times > 1 for times in done.values())),
        "left": float(left),
        "idle_percent": round(busy, 2),
        "seconds": round(took, 1),
        "turns": float(in_task * sum(done.values())),
    }


def memory() -> float:
    """The proportional share of memory of this process, in MB."""
    with open("/proc/self/smaps_rollup", encoding="ascii") as file:
        pss = next(line for line in file if line.startswith("Pss:"))
    return int(pss.split()[1]) / 1000


def main(arguments: list[str]) -> int:
    """Measure, and say what came of it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # each job inside a program takes a handful
    folder, count, turns = arguments
    print("{}", flush=True)  # ready
    sys.stdin.readline()
    print(json.dumps(asyncio.run(crowd(folder, int(count), int(turns)))), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
