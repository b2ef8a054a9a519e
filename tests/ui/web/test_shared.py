"""The page and its API where lists are in a database, also while that is away."""

from __future__ import annotations

from collections.abc import Iterator

import anyio
import pytest

import taskyard
from support.gate import Gate, gate
from support.web import Web, with_web

pytestmark = pytest.mark.req("X-01")


@pytest.fixture
def door(address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    with gate(address) as made:
        monkeypatch.setenv("TASKYARD_STORE", made.address)
        with taskyard.open(list="other", is_person=True) as yard:
            yard.tasks.create("Elsewhere")
        yield made


@pytest.mark.req("U-04")
def test_the_page_shows_and_changes_lists_in_a_database(door: Gate) -> None:
    async def talk(web: Web) -> None:
        made = await web.post("/api/tasks", {"subject": "One"})
        assert made.status == 201
        async with web.listen("/api/stream") as stream:
            stream.rewind()
            shown = await stream.until(lambda told: "1" in told.data.get("tasks", {}))
            assert shown.data["tasks"]["1"]["subject"] == "One"
            stream.rewind()
            await stream.until(lambda told: told.data.get("lists") == ["other", "plan"])
            await web.post("/api/tasks", {"subject": "Two"})
            await stream.until(lambda told: "2" in told.data.get("tasks", {}))
        lists = (await web.get("/api/lists.json")).data
        assert [(one["name"], one["open"], one["current"]) for one in lists] == [("other", 1, False), ("plan", 2, True)]
        assert 'taskyard_tasks{list="other",state="ready"} 1' in (await web.get("/metrics")).body.decode()
        assert (await web.get("/api/tasks/1.json?list=other")).data["task"]["subject"] == "Elsewhere"

    with_web(talk, allow_actions=True)


def test_a_database_that_is_away_is_a_state_of_the_page_and_503_of_its_api(door: Gate) -> None:
    async def talk(web: Web) -> None:
        await web.post("/api/tasks", {"subject": "One"})
        async with web.listen("/api/stream") as stream:
            await stream.next("snapshot")
            door.shut()
            gone = await stream.until(lambda told: told.data.get("is_disconnected") is True)
            assert gone.data["problems"][0].startswith("Disconnected from the database ")

            for path in ("/api/lists.json", "/api/tasks/1.json", "/api/timeline.json"):
                refused = await web.get(path)
                assert (refused.status, refused.error["code"]) == (503, "disconnected"), path
                assert refused.headers["retry-after"]
            health = await web.ask("GET", "/healthz", token=None)
            assert (health.status, health.json) == (503, {"status": "disconnected"})

            door.open()
            back = await stream.until(lambda told: told.data.get("is_disconnected") is False)
            assert back.data["problems"] == []
        assert (await web.get("/api/tasks/1.json")).data["task"]["subject"] == "One"
        assert (await web.ask("GET", "/healthz", token=None)).json == {"status": "ok"}

    with_web(talk, allow_actions=True)


def test_what_is_done_on_the_page_waits_for_a_database_that_comes_back(door: Gate) -> None:
    async def talk(web: Web) -> None:
        door.shut()
        async with anyio.create_task_group() as tasks:

            async def act() -> None:
                assert (await web.post("/api/tasks", {"subject": "Patient"})).status == 201

            tasks.start_soon(act)
            await anyio.sleep(0.2)
            door.open()
        found = (await web.get("/api/tasks/1.json")).data
        assert found["task"]["subject"] == "Patient"

    with_web(talk, allow_actions=True)
