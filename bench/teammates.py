"""The row about teammates: what each of hundreds inside one program costs, and that nothing is done twice."""

from __future__ import annotations

import sys

from bench.folders import scratch
from bench.processes import run
from bench.rounds import Sample
from bench.task_list import Ground

COUNT = 300
TURNS = 500

#: Percent of a core that all of them may take together while they have nothing to do.
_STILL = 0.5


def memory_ours(ground: Ground) -> Sample:
    """Memory of each, in MB, once all have done their turns and idle."""
    count, turns = ground.size(COUNT, 20), ground.size(TURNS, 20)
    with scratch(ground.folder) as home:
        command = [sys.executable, "-P", "-m", "bench.crowd", f"{home}/tasks", str(count), str(turns)]
        answer = run(command, home=home, limit=1800)
    faults = [
        *(["tasks were done twice"] if answer["twice"] else []),
        *(["tasks were left"] if answer["left"] else []),
        *(["they do not idle"] if answer["idle_percent"] > _STILL else []),
    ]
    facts = {name: float(answer[name]) for name in ("twice", "left", "idle_percent", "seconds", "turns")}
    return Sample(float(answer["mb_each"]), facts, tuple(faults))
