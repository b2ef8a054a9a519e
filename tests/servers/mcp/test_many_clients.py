"""Many clients at once, of both protocols, on one list."""

from __future__ import annotations

from collections import Counter
from functools import partial

import anyio
import pytest

import taskyard
from support.mcp_http import HttpServer, together
from support.mcp_server import Mode, Said

CLIENTS = 20
EACH = 4


def mode_of(number: int) -> Mode:
    return "auto" if number % 2 else "legacy"


@pytest.mark.req("L-02", "T-05")
def test_many_clients_create_at_once_and_no_id_is_lost_or_given_twice() -> None:
    made: list[str] = []

    async def work(number: int) -> None:
        async with server.client(f"agent{number}", mode=mode_of(number)) as model:
            for count in range(EACH):
                said = await model.call("TaskCreate", subject=f"{number}.{count}")
                made.append(said.data["task"]["id"])

    with HttpServer() as server:
        together(*(partial(work, number) for number in range(CLIENTS)))
    assert sorted(made, key=int) == [str(number) for number in range(1, CLIENTS * EACH + 1)]
    with taskyard.open(list="demo") as yard:
        assert {task.subject for task in yard.tasks.list()} == {
            f"{number}.{count}" for number in range(CLIENTS) for count in range(EACH)
        }


@pytest.mark.req("L-08", "L-09", "T-05")
def test_many_clients_claim_at_once_and_each_task_is_one_s() -> None:
    taken: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    with taskyard.open(list="demo") as yard:
        for number in range(CLIENTS * EACH):
            yard.tasks.create(f"Task {number}")

    async def work(number: int) -> None:
        # All of one name: with a session each is another agent, without they are one and the same.
        async with server.client("ada", mode=mode_of(number), own=f"robot{number}") as model:
            with anyio.fail_after(40):
                while not (said := await model.call("TaskClaim")).is_error:
                    taken[said.data["task"]["id"]] += 1
                    done = await model.call("TaskUpdate", taskId=said.data["task"]["id"], status="completed")
                    assert not done.is_error, done.texts
                refused[said.code] += 1

    with HttpServer() as server:
        together(*(partial(work, number) for number in range(CLIENTS)))
    assert sorted(taken, key=int) == [str(number) for number in range(1, CLIENTS * EACH + 1)]
    assert set(taken.values()) == {1}
    assert refused == {"nothing_free": CLIENTS}


@pytest.mark.req("L-08")
def test_of_many_that_want_the_same_task_one_gets_it() -> None:
    won: list[str] = []

    async def work(number: int) -> None:
        async with server.client(f"agent{number}", mode=mode_of(number), stay=True) as model:
            said = await model.call("TaskClaim", taskId="1")
            if not said.is_error:
                won.append(said.data["task"]["owner"])
            else:
                assert said.code == "already_claimed"

    with taskyard.open(list="demo") as yard:
        yard.tasks.create("A")
        with HttpServer() as server:
            together(*(partial(work, number) for number in range(CLIENTS)))
        assert won == [yard.tasks.get("1").owner]


@pytest.mark.req("N-07", "B-05")
def test_each_of_many_clients_hears_of_its_own_jobs_and_of_each_once() -> None:
    started: dict[str, set[str]] = {}
    heard: Counter[tuple[str, str]] = Counter()

    async def work(number: int) -> None:
        name = f"agent{number}"
        async with server.client(name, mode=mode_of(number)) as model:

            async def ask(tool: str, **arguments: object) -> Said:
                said = await model.call(tool, **arguments)
                heard.update((name, str(notice["task_id"])) for notice in said.notices)
                return said

            command = {"command": "true", "run_in_background": True}
            ids = {str((await ask("Bash", **command)).data["task_id"]) for _ in range(2)}
            started[name] = ids
            with anyio.fail_after(30):
                while sum(who == name for who, _ in heard) < len(ids):
                    await ask("TaskList")
            await ask("TaskList")

    with HttpServer() as server:
        together(*(partial(work, number) for number in range(8)))
    assert set(heard) == {(name, job) for name, ids in started.items() for job in ids}
    assert set(heard.values()) == {1}
