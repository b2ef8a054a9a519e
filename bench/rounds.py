"""
Interleaved rounds of two sides, and what they come to.

Machines drift: a neighbour starts, a core warms up. Ours and the yardstick therefore take turns, and the
rounds go on until both medians stand still or the time is used up. A row that moves a gigabyte of memory counts by its
best rounds instead: there a neighbour, or the host of a virtual machine, makes one round in two several times slower.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

#: The standard error of a median, in parts of it, at which more rounds change nothing worth knowing.
STILL = 0.03

#: From the distance between the quartiles to the standard error of the median, for normal noise.
_TO_ERROR = 1.2533 / 1.349


class Sample(NamedTuple):
    """One round of one side."""

    value: float
    facts: Mapping[str, float] = {}  # never mutated; a NamedTuple default
    faults: tuple[str, ...] = ()  #: what must never happen and did


class Goal(NamedTuple):
    """A ratio to reach: so many times faster at least, or so many times the time at most."""

    sign: str  #: "≥" or "≤"
    ratio: float

    def __str__(self) -> str:
        return f"{self.sign} {self.ratio:g}×"

    def met(self, ratio: float) -> bool:
        return ratio >= self.ratio if self.sign == "≥" else ratio <= self.ratio


class Row(NamedTuple):
    """Something to measure: two sides that answer in the same unit."""

    name: str
    unit: str
    ours: Callable[[], Sample]
    yardstick: Callable[[], Sample]
    goal: Goal | None = None
    is_rate: bool = False  #: more is better
    seconds: float = 20.0  #: of measuring, at most, but for the fewest rounds
    fewest: int = 5
    most: int = 40
    as_time_ratio: bool = False  #: the ratio says how long ours takes, not how fast it is
    by_best: bool = False  #: each side counts by its best round: where neighbours can only slow it down, and do by half

    def failed(self, why: str) -> dict[str, object]:
        """The row as printed when it could not be measured."""
        record = dict.fromkeys(("ours", "yardstick", "ratio"))
        goal, met = (None, None) if self.goal is None else (str(self.goal), False)
        return {"name": self.name, **record, "unit": self.unit, "goal": goal, "met": met, "error": why}


class Outcome(NamedTuple):
    """What the rounds of a row came to."""

    row: Row
    ours: float
    yardstick: float
    rounds: int
    facts: Mapping[str, float]
    faults: tuple[str, ...]

    @property
    def ratio(self) -> float:
        """Times faster; for rows judged by their time, times the time."""
        more = self.ours / self.yardstick
        return more if self.row.is_rate or self.row.as_time_ratio else 1 / more

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached; None where there is none. A fault is never a goal met."""
        if self.row.goal is None:
            return None
        return self.row.goal.met(self.ratio) and not self.faults

    def record(self) -> dict[str, object]:
        """The row as printed."""
        record: dict[str, object] = {
            "name": self.row.name,
            "ours": rounded(self.ours),
            "yardstick": rounded(self.yardstick),
            "ratio": rounded(self.ratio),
            "unit": self.row.unit,
            "goal": None if self.row.goal is None else str(self.row.goal),
            "met": self.met,
            "rounds": self.rounds,
        }
        record.update({name: rounded(value) for name, value in self.facts.items()})
        if self.faults:
            record["faults"] = list(self.faults)
        return record


def measured(
    row: Row,
    *,
    quick: bool = False,
    tell: Callable[[str], None] = lambda text: None,
    now: Callable[[], float] = time.monotonic,
) -> Outcome:
    """Take turns until both medians stand still, the time is used up, or there are enough; `tell` hears of each."""
    ours: list[Sample] = []
    yardstick: list[Sample] = []
    fewest, most = (1, 1) if quick else (row.fewest, row.most)
    end = now() + row.seconds
    while len(ours) < fewest or (len(ours) < most and now() < end and not (_still(ours) and _still(yardstick))):
        # Whoever goes second finds the machine as the first left it: take turns in that too.
        sides = [(ours, row.ours), (yardstick, row.yardstick)]
        for samples, side in sides if len(ours) % 2 == 0 else reversed(sides):
            samples.append(side())
        tell(f"{row.name} round {len(ours)}: ours {ours[-1].value:.5g}, yardstick {yardstick[-1].value:.5g} {row.unit}")
    return Outcome(
        row,
        _summed_up(row, ours),
        _summed_up(row, yardstick),
        len(ours),
        {**_worst(ours), **{f"yardstick_{name}": value for name, value in _worst(yardstick).items()}},
        tuple(dict.fromkeys(fault for sample in ours for fault in sample.faults)),
    )


def rounded(value: float) -> float:
    """Four digits say more than the noise allows."""
    return float(f"{value:.4g}")


def spread(values: list[float]) -> float:
    """The standard error of the median, in parts of it."""
    if len(values) < 2:
        return 0.0
    lower, median, upper = statistics.quantiles(values, n=4, method="inclusive")
    return _TO_ERROR * (upper - lower) / math.sqrt(len(values)) / median if median else 0.0


def _still(samples: list[Sample]) -> bool:
    return spread([sample.value for sample in samples]) < STILL


def _summed_up(row: Row, samples: list[Sample]) -> float:
    values = [sample.value for sample in samples]
    if not row.by_best:
        return statistics.median(values)
    return max(values) if row.is_rate else min(values)


def _worst(samples: list[Sample]) -> dict[str, float]:
    """Each fact at its largest: waits, doubles and losses are told by their worst round."""
    names = dict.fromkeys(name for sample in samples for name in sample.facts)
    return {name: max(sample.facts.get(name, 0.0) for sample in samples) for name in names}
