"""The fastest writers there are, whose starters are dead: their output stays below its cap, and they can be stopped."""

from __future__ import annotations

import os
import time

import pytest

from support.cli import process
from support.job_chaos import orphans, started_by_one_who_dies
from support.scale import FULL, scale
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.output import Output

#: In bytes; what comes through a terminal comes more slowly.
CAPS = {"file": 100_000_000, "terminal": 4_000_000}

#: How long they write, in seconds that count; and at most.
LONG = scale(30)
LONGEST = 4 * LONG

#: What is looked at together, in seconds. If the host of this machine took a processor away for so many hundredths of a
#: second in it, nobody could have been in time, and it counts for nothing.
WINDOW = 0.5
TAKEN = 5

WRITERS = {"yes": "yes", "counting": "seq 1000000000000", "four at once": "yes & yes & yes & yes & wait"}

#: More writers than processors may keep a keeper waiting, but not where it copies what they write.
KINDS = [
    (writer, into, place)
    for writer in WRITERS
    for into in CAPS
    for place in ("memory", "tmp_path")
    if (FULL and (writer, into) != ("four at once", "file"))
    or (writer, into, place) in [("yes", "file", "memory"), ("counting", "terminal", "memory")]
]


def on_disk(path: str) -> int:
    return os.stat(path).st_blocks * 512


def most_within(seconds: float, path: str) -> int:
    """The most that a file ever had on disk in that time, as often as one can look."""
    most, deadline = 0, time.monotonic() + seconds
    while time.monotonic() < deadline:
        most = max(most, on_disk(path))
        time.sleep(0.002)
    return most


def taken() -> int:
    """Hundredths of a second that the host took from this machine so far."""
    with open("/proc/stat", encoding="ascii") as file:
        return int(file.readline().split()[8])


@pytest.mark.req("O-04", "B-07", "B-09")
@pytest.mark.serial  # how fast a keeper is woken is the point of it
@pytest.mark.timeout(120)
@pytest.mark.parametrize(("writer", "into", "place"), KINDS)
def test_the_cap_holds_for_the_fastest_writer_whose_starter_is_dead(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, writer: str, into: str, place: str
) -> None:
    home = f"{request.getfixturevalue(place)}/home"
    jobs, cap = Jobs(home), CAPS[into]
    spec = Shell(WRITERS[writer], pty=into == "terminal", output_cap=cap, grace=0.2)
    job = started_by_one_who_dies(jobs, spec)
    output, most, counted = Output(JobPaths(home, job.id)), 0, 0.0
    numbers: list[int] = []
    began = time.monotonic()
    while counted < LONG and time.monotonic() < began + LONGEST:
        before, highest = taken(), most_within(WINDOW, job.output_file)
        if taken() - before < TAKEN:
            most, counted = max(most, highest), counted + WINDOW
        size = os.path.getsize(job.output_file)
        tail = output.tail(3)
        assert tail.next_offset >= size  # nothing newer than what is shown
        numbers += [int(line) for line in tail.text.split()[-2:-1] if writer == "counting"]
    wrote = time.monotonic() - began

    monkeypatch.setenv("TASKYARD_HOME", home)
    stopped = process("stop", job.id, "--json").data

    end = jobs.get(job.id).end
    assert end is not None
    assert (stopped["outcome"], end.cause, end.proof) == ("stopped", "stopped", "proved")
    assert cap // 4 < most < cap
    assert numbers == sorted(set(numbers))
    assert on_disk(job.output_file) < cap
    assert orphans(home) == {}
    print(f"{writer}: {end.size / 1e6 / wrote:,.0f} MB a second, at most {most / cap:.0%} of the cap in {counted} s")
