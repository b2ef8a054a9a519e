"""A thousand tasks and two hundred jobs stay smooth."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.tui import NOW, Scenery, driven, home_of, scene, view_of
from taskyard.jobs.model import Job, JobStatus
from taskyard.tasks.model import Task
from taskyard.ui.snapshot import Snapshot, build_snapshot
from taskyard.ui.tui.keys import strip_of

TASKS = [Task(str(at), f"Part {at} of the whole", owner="ada") for at in range(1, 1_001)]
JOBS = [Job(f"b{at:08d}", "local_bash", JobStatus.RUNNING, f"make {at}", start_time=NOW) for at in range(200)]


@pytest.mark.serial
@pytest.mark.req("U-03")
@driven
async def test_one_changed_row_costs_little_against_showing_all_of_them(tmp_path: Path) -> None:
    app = view_of(Scenery(scene(tasks=(), jobs=()), home_of(tmp_path)))
    first = build_snapshot(scene(tasks=TASKS, jobs=JOBS))
    second = build_snapshot(scene(tasks=[*TASKS[:4], TASKS[4]._replace(subject="Other"), *TASKS[5:]], jobs=JOBS))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        main, rows, nothing = app.main, app.main.tasks, build_snapshot(scene(tasks=(), jobs=()))

        def taken(shown: Snapshot, *, draws: Sequence[int]) -> float:
            start = time.perf_counter()
            main.show(shown)
            for at in draws:
                strip_of(rows.draw(rows.items[at], 56)[0], 58)
            return time.perf_counter() - start

        whole, one = [], []
        for _ in range(5):
            main.show(nothing)
            whole.append(taken(first, draws=range(len(TASKS))))
            redrawn = rows.redrawn
            one.append(taken(second, draws=[4]))
            assert rows.redrawn - redrawn == 1
        assert min(one) < min(whole) / 5
