"""What can be looked at."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio.to_thread
import pytest

from support.web import Web, with_web
from support.yards import write_task
from taskyard.config import tasks_dir
from taskyard.jobs.kinds.shell import Shell
from taskyard.ui.snapshot import snapshot_json


@pytest.mark.req("U-04")
def test_every_list_is_there_also_the_own_before_it_has_tasks() -> None:
    async def body(web: Web) -> None:
        folder = Path(tasks_dir())
        write_task(folder / "other", "1", status="completed")
        write_task(folder / "other", "2", blockedBy=["3"])
        write_task(folder / "other", "3")
        (folder / "other" / "4.json").write_text("{", encoding="utf-8")
        rows = {row["name"]: row for row in (await web.get("/api/lists.json")).data}
        assert set(rows) == {"plan", "other"}
        other = rows["other"]
        assert (other["open"], other["done"], other["damaged"], other["current"]) == (2, 1, 1, False)
        assert (other["ready"], other["blocked"], other["doing"]) == (1, 1, 0)
        assert rows["plan"]["current"] is True

    with_web(body)


@pytest.mark.req("U-04")
def test_each_view_is_a_part_of_the_snapshot() -> None:
    async def body(web: Web) -> None:
        web.yard.tasks.create("First")
        all_of_it = (await web.get("/api/snapshot.json")).data
        async with web.site.lists.shown(None) as shown:
            assert set(all_of_it) == {*snapshot_json(shown.view.snapshot), "id"}
        for view in ("board", "graph", "background"):
            part = (await web.get(f"/api/{view}.json")).data
            assert part == {key: all_of_it[key] for key in part}

    with_web(body)


@pytest.mark.req("U-04", "U-05")
def test_a_task_comes_with_its_edges_history_and_what_it_took(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_TASK", "plan/1")

    async def body(web: Web) -> None:
        tasks = web.yard.tasks
        first = tasks.create("First", description="At <b>length</b>", agent="eve")
        tasks.create("Second", blocked_by=[first.id])
        tasks.claim(first.id, agent="ada")
        await anyio.to_thread.run_sync(lambda: web.yard.jobs.run(Shell("true"), timeout=30))
        found = (await web.get("/api/tasks/1.json")).data
        assert found["description"] == "At <b>length</b>"
        assert [edge["subject"] for edge in found["edges"]["blocks"]] == ["Second"]
        assert [row["words"] for row in found["history"]][:: len(found["history"]) - 1] == [
            "eve created it",
            "ada claimed it",
        ]
        assert found["figures"]["jobs"] == len(found["jobs"]) == 1
        assert found["figures"]["words"].startswith("1 job")
        assert "token" not in (found["task"]["lease"] or {})

    with_web(body)


@pytest.mark.req("U-04")
def test_who_looks_at_a_failed_job_has_seen_it() -> None:
    async def body(web: Web) -> None:
        async with web.listen("/api/stream") as stream:
            await stream.next("snapshot")
            job = await anyio.to_thread.run_sync(lambda: web.yard.jobs.run(Shell("exit 3"), timeout=30))
            await stream.until(lambda told: told.data.get("attention") == 1)
            found = (await web.get(f"/api/jobs/{job.id}.json")).data
            assert found["view"]["word"] == "exit 3"
            assert found["record"]["exit_code"] == 3
            await stream.until(lambda told: told.data.get("attention") == 0)

    with_web(body)


@pytest.mark.req("U-05")
def test_a_job_is_shown_with_what_all_inside_it_took() -> None:
    async def body(web: Web) -> None:
        inner = f"{sys.executable} -m taskyard run -d true"
        job = await anyio.to_thread.run_sync(lambda: web.yard.jobs.run(Shell(inner), timeout=30))
        found = (await web.get(f"/api/jobs/{job.id}.json")).data
        assert found["figures"]["jobs"] == found["view"]["total"]["jobs"] == 2

    with_web(body)


def test_the_server_says_what_it_is_and_may() -> None:
    async def body(web: Web) -> None:
        found = (await web.get("/api/about.json")).data
        assert (found["list"], found["person"], found["allow_actions"]) == ("plan", "ada", True)
        assert found["server"] == web.site.numbers.start

    with_web(body, agent="ada", allow_actions=True)
