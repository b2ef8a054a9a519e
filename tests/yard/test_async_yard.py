"""A yard for programs that run an event loop."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import taskyard


@pytest.mark.req("B-05", "B-13", "N-07")
def test_every_end_is_told_once_to_whoever_started_the_job(tmp_path: Path) -> None:
    async def work() -> list[tuple[str, str | None]]:
        async with taskyard.open_async(tasks_dir=tmp_path, list="plan", agent="ada") as yard:
            task = yard.tasks.create("Run them")
            commands = ["exit 0", "exit 3", "kill -9 $$"]
            started = [await yard.jobs.start(taskyard.Shell(command, name=task.subject)) for command in commands]
            told: list[tuple[str, str | None]] = []
            async with asyncio.timeout(20):
                async for notice in yard.notices():
                    told.append((notice.task_id, notice.status))
                    if len(told) == len(started):
                        break
        assert {job_id for job_id, _ in told} == {job.id for job in started}
        return told

    statuses = sorted(str(status) for _, status in asyncio.run(work()))

    assert statuses == ["completed", "failed", "failed"]
