"""Somebody sets the clock, by a day, either way: no limit, no silence, no grace and no pause is measured by it."""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.ended_jobs import end_job
from support.python import run_python
from support.repo import SOURCE, python_files, shown
from support.wait import until
from support.wall_clock import WallClock
from taskyard.config import Settings
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.model import Job
from taskyard.jobs.notices import Outbox

DAY = 24 * 3600

#: How late a busy machine may be, in seconds.
LATE = 3.0


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WallClock:
    return WallClock(tmp_path, monkeypatch)


@pytest.fixture
def jobs(memory: Path, clock: WallClock) -> Iterator[Jobs]:
    found = Jobs(str(memory / "home"), settings=Settings(stall_after=0.5))
    yield found
    found.stop(*[job.id for job in found.list()], grace=0)
    found.close()


def begun(jobs: Jobs, spec: Shell) -> Job:
    """A job whose command has said its first word."""
    job = jobs.start(spec)
    until(lambda: Path(job.output_file).stat().st_size)
    return job


def seconds(act: Callable[[], object]) -> float:
    began = time.monotonic()
    act()
    return time.monotonic() - began


@pytest.mark.serial  # it measures time
@pytest.mark.req("B-08", "B-14")
@pytest.mark.parametrize("jump", [DAY, -DAY], ids=["forwards", "backwards"])
class TestTheClockJumps:
    def test_a_time_limit_is_as_long_as_it_says(self, jobs: Jobs, clock: WallClock, jump: int) -> None:
        began = time.monotonic()
        job = begun(jobs, Shell("echo up; date +%s; sleep 60", timeout=0.6))
        clock.jump(jump)

        ended = jobs.wait(job.id, timeout=30)

        assert 0.6 <= time.monotonic() - began < 0.6 + LATE
        assert ended.end is not None
        assert ended.end.cause == "timeout"
        assert ended.end.duration_ms is not None and 600 <= ended.end.duration_ms < 600 + LATE * 1000
        assert abs(ended.end.at - time.time() * 1000 - jump * 1000) < 60_000  # it was that clock that jumped

    def test_a_pause_is_as_long_as_it_was(self, jobs: Jobs, clock: WallClock, jump: int) -> None:
        job = begun(jobs, Shell("echo up; sleep 60", timeout=0.6))
        assert jobs.pause(job.id)
        clock.jump(jump)
        time.sleep(0.4)
        assert jobs.resume(job.id)

        ended = jobs.wait(job.id, timeout=30)

        assert ended.end is not None
        assert ended.end.cause == "timeout"
        assert 400 <= ended.end.paused_ms < 400 + LATE * 1000
        assert ended.end.duration_ms is not None and ended.end.duration_ms - ended.end.paused_ms >= 600

    def test_a_grace_is_as_long_as_it_says(self, jobs: Jobs, clock: WallClock, jump: int) -> None:
        job = begun(jobs, Shell("trap '' TERM; echo up; sleep 60 & wait; wait"))

        def stop() -> None:
            clock.jump(jump)
            assert jobs.stop(job.id, grace=0.4)[0].outcome == "stopped"

        assert 0.4 <= seconds(stop) < 0.4 + LATE

    @pytest.mark.req("O-08")
    def test_silence_is_as_long_as_it_was(self, jobs: Jobs, clock: WallClock, jump: int) -> None:
        job = begun(jobs, Shell("printf 'Overwrite? (y/n) '; sleep 60"))
        clock.jump(jump)

        assert 0.3 < seconds(lambda: until(lambda: jobs.get(job.id).needs_input)) < 0.5 + LATE


HOLD = """
import sys, time
from taskyard.jobs.notices import Outbox
print([notice.id for notice in Outbox(sys.argv[1]).take(hold=float(sys.argv[2]))])
"""

LOOK = """
import sys
from taskyard.jobs.notices import Outbox
print([notice.redelivered for notice in Outbox(sys.argv[1]).waiting()])
"""


@pytest.mark.req("B-05", "N-07")
def test_a_notice_taken_for_a_while_comes_back_after_that_while(memory: Path, clock: WallClock) -> None:
    home = str(memory / "home")
    end_job(home)
    assert len(run_python(HOLD, home, "60")) > 30
    clock.jump(DAY)
    assert run_python(LOOK, home) == "[]\n"  # it was not a minute

    end_job(home)
    assert len(run_python(HOLD, home, "0.01")) > 30
    clock.jump(-2 * DAY)
    until(lambda: run_python(LOOK, home) == "[True]\n")  # it was more than that


@pytest.mark.req("B-05")
def test_one_taken_on_another_machine_comes_back_by_the_clock(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = str(memory / "home")
    end_job(home)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr("taskyard.core.system.this_host", lambda: "another/boot")
        assert Outbox(home).take(hold=0.2)
    assert Outbox(home).waiting() == []
    until(Outbox(home).waiting)


@pytest.mark.req("B-08")
def test_keepers_measure_nothing_by_the_wall_clock() -> None:
    found = {
        f"{shown(path)}: {ast.unparse(node)}"
        for path in python_files(SOURCE / "taskyard" / "runtime" / "keeper")
        for node in _walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, (ast.BinOp, ast.Compare)) and {"now_ms()", "time.time()"} & _calls(node)
    }

    # What a clock says is written down, or put into words for people, and never reckoned with.
    assert found == set()


def _walk(tree: ast.AST) -> Iterator[ast.AST]:
    """All of it but what becomes the time of day."""
    if isinstance(tree, ast.Call) and ast.unparse(tree.func) == "time.localtime":
        return
    yield tree
    for child in ast.iter_child_nodes(tree):
        yield from _walk(child)


def _calls(node: ast.AST) -> set[str]:
    return {ast.unparse(each) for each in ast.walk(node) if isinstance(each, ast.Call)}
