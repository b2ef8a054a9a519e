"""`taskyard mcp --http` as clients meet it: who they are to it, what they hold, and what becomes of both."""

from __future__ import annotations

import json
import os
from pathlib import Path

import anyio
import pytest

import taskyard
from support.mcp_http import HttpServer, together
from support.mcp_server import Mode, Model
from support.wait import until
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell

BOTH: list[Mode] = ["auto", "legacy"]  # the current protocol, and the one before it


def home() -> str:
    return os.environ["TASKYARD_HOME"]


def filled(count: int = 2) -> taskyard.Yard:
    yard = taskyard.open(list="demo")
    for number in range(count):
        yard.tasks.create(f"Task {number}")
    return yard


@pytest.mark.req("T-05")
@pytest.mark.parametrize("mode", BOTH)
@pytest.mark.usefixtures("cold")
def test_it_serves_the_current_protocol_and_the_one_before(mode: Mode) -> None:
    async def body(model: Model) -> None:
        assert model.client.protocol_version == ("2026-07-28" if mode == "auto" else "2025-11-25")
        assert "no need to poll" in (model.client.instructions or "")
        assert {"TaskCreate", "Bash", "SendMessage"} <= {tool.name for tool in (await model.client.list_tools()).tools}
        assert (await model.call("TaskCreate", subject="A")).text == "Task #1 created successfully: A"
        assert (await model.call("Bash", command="echo hello")).data["output"] == "hello\n"
        assert (await model.refused("TaskGet", taskId="7")).text == "Task not found"

    with HttpServer() as server:
        server.talk(body, mode=mode)
        assert server.ready["list"] == "demo"


@pytest.mark.req("T-05")
@pytest.mark.parametrize("mode", BOTH)
def test_a_caller_is_called_as_its_request_says_else_as_its_client_does(mode: Mode) -> None:
    async def body() -> None:
        for number, (agent, query, expected) in enumerate(
            [("ada", "?agent=eve", "ada"), (None, "?agent=eve", "eve"), (None, "", "my-robot-1")], 1
        ):
            async with server.client(agent, query=query, own="my robot #1", mode=mode) as model:
                await model.call("TaskCreate", subject="A")
                assert (await model.call("TaskClaim")).data["task"]["owner"] == expected
                await model.call("TaskUpdate", taskId=str(number), status="completed")
        async with server.client("x" * 201, mode=mode) as model:
            assert (await model.refused("TaskList")).code == "bad_name"

    with HttpServer() as server:
        together(body)


@pytest.mark.req("T-05")
def test_the_name_it_was_started_with_is_every_callers() -> None:
    async def body() -> None:
        async with server.client("eve", mode="legacy") as one, server.client(mode="legacy") as two:
            owners = [(await model.call("TaskClaim")).data["task"]["owner"] for model in (one, two)]
            assert owners == ["ada", "ada-2"]

    with filled(), HttpServer("--agent", "ada") as server:
        together(body)


@pytest.mark.req("L-09", "L-10")
def test_two_sessions_of_one_name_are_two_agents_and_what_they_claim_goes_back_when_they_end() -> None:
    async def body() -> None:
        async with server.client("ada", mode="legacy") as one:
            assert (await one.call("TaskClaim")).data["task"]["owner"] == "ada"
            async with server.client("ada", mode="legacy") as two:
                task = (await two.call("TaskUpdate", taskId="2", status="in_progress")).data["task"]
                assert (task["owner"], task["lease"]["kind"]) == ("ada-2", "time")
                assert (await one.refused("TaskUpdate", taskId="2", status="completed")).code == "already_claimed"
            assert yard.tasks.get("2").owner is None, "the end of a session is answered when all of it is back"
            assert yard.tasks.get("1").owner == "ada"
        assert (yard.tasks.get("1").owner, yard.tasks.get("1").status.value) == (None, "pending")

    with filled() as yard, HttpServer() as server:
        together(body)


@pytest.mark.req("L-09")
def test_without_sessions_the_name_is_the_agent_and_its_claims_last_ten_minutes() -> None:
    async def body() -> None:
        async with server.client("ada") as one:
            await one.call("TaskClaim", taskId="1")
            await one.call("TaskUpdate", taskId="2", status="in_progress")
        async with server.client("ada") as again, server.client("eve") as other:
            assert (await other.refused("TaskUpdate", taskId="1", status="completed")).code == "already_claimed"
            for task_id in ("1", "2"):
                lease = yard.tasks.get(task_id).lease
                assert lease is not None
                assert (lease.owner, lease.kind, lease.span) == ("ada", "time", 600_000)
                assert not (await again.call("TaskUpdate", taskId=task_id, status="completed")).is_error

    with filled() as yard, HttpServer() as server:
        together(body)


@pytest.mark.req("B-10")
def test_jobs_end_with_their_caller_unless_they_are_to_stay() -> None:
    jobs = Jobs(home(), agent="ada")
    kept = ""

    async def body() -> None:
        nonlocal kept
        async with server.client("eve", mode="legacy") as other, server.client("ada", mode="legacy") as model:
            theirs = (await other.call("Bash", command="sleep 60", run_in_background=True)).data["task_id"]
            mine = (await model.call("Bash", command="sleep 60", run_in_background=True)).data["task_id"]
            kept = jobs.start(Shell("sleep 60", on_parent_exit="keep")).id
            await model.client.__aexit__(None, None, None)
            end = (await anyio.to_thread.run_sync(lambda: jobs.wait(mine, timeout=20))).end
            assert end is not None
            assert (end.cause, end.by, end.proof) == ("stopped", "ada", "proved")
            assert not jobs.get(kept).is_final
            assert not jobs.get(theirs).is_final

    try:
        with HttpServer() as server:
            together(body)
    finally:
        jobs.stop(kept)
        jobs.close()


@pytest.mark.serial
@pytest.mark.req("L-09", "L-10", "B-10")
@pytest.mark.parametrize("mode", BOTH)
def test_whoever_is_silent_for_the_time_of_a_lease_is_gone(mode: Mode) -> None:
    job = ""

    async def body() -> None:
        nonlocal job
        async with server.client("ada", mode=mode, stay=True) as model:
            await model.call("TaskClaim")
            job = (await model.call("Bash", command="sleep 60", run_in_background=True)).data["task_id"]

    with filled() as yard, HttpServer(TASKYARD_MCP_LEASE="1") as server:
        together(body)
        until(lambda: yard.tasks.get("1").owner is None)
        end = Jobs(home()).wait(job, timeout=20).end
        assert end is not None
        assert (end.cause, end.by) == ("stopped", "ada")
        assert server.is_alive


@pytest.mark.serial
@pytest.mark.req("L-09")
@pytest.mark.parametrize("mode", BOTH)
def test_every_request_and_a_long_one_all_along_renews_what_its_caller_holds(mode: Mode) -> None:
    async def body() -> None:
        async with server.client("ada", mode=mode) as model:
            first = (await model.call("TaskClaim")).data["task"]["lease"]["expires"]
            job = (await model.call("Bash", command="sleep 60", run_in_background=True)).data["task_id"]
            await model.call("TaskOutput", task_id=job, timeout=2500)  # longer than the lease
            held = yard.tasks.get("1").lease
            assert held is not None
            assert (held.expires or 0) >= first + 1400
            with anyio.fail_after(10):
                while (held := yard.tasks.get("1").lease) and (held.expires or 0) < first + 4000:
                    await model.call("ListJobs")  # about something else altogether
            assert held is not None
            assert (await model.call("TaskUpdate", taskId="1", status="completed")).data["changed"] == ["status"]

    with filled() as yard, HttpServer(TASKYARD_MCP_LEASE="1") as server:
        together(body)


async def job_of(model: Model, jobs: Jobs, gate: Path) -> str:
    """A background job that ended after the answer to its start, which would have had its notice; its id."""
    command = f"until test -e {gate}; do sleep 0.01; done"
    job_id: str = (await model.call("Bash", command=command, run_in_background=True)).data["task_id"]
    gate.touch()  # noqa: ASYNC240 - a moment
    await anyio.to_thread.run_sync(lambda: jobs.wait(job_id, timeout=20))
    return job_id


async def notices_of(model: Model) -> list[dict[str, object]]:
    """The notices with the first answer that has any: the end of a job is seen a moment before its notice."""
    with anyio.fail_after(20):
        while not (found := (await model.call("TaskList")).notices):  # noqa: ASYNC110 - nobody tells
            await anyio.sleep(0.01)
    return found


@pytest.mark.serial
@pytest.mark.req("N-07", "B-05")
@pytest.mark.parametrize("mode", BOTH)
def test_a_notice_is_read_with_the_next_request_and_comes_again_if_there_is_none(mode: Mode, tmp_path: Path) -> None:
    jobs = Jobs(home(), agent="ada")

    async def first() -> None:
        async with server.client("ada", mode=mode, stay=True) as model:
            one = await job_of(model, jobs, tmp_path / "one")
            (notice,) = await notices_of(model)
            assert (notice["task_id"], notice["redelivered"]) == (one, False)
            assert not (await model.call("TaskList")).notices  # this request said that it arrived
            await job_of(model, jobs, tmp_path / "two")
            seen.extend(await notices_of(model))  # and then nothing more is heard of it

    async def second() -> None:
        async with server.client("ada", mode=mode) as model:
            (again,) = (await model.call("TaskList")).notices
            assert (again["id"], again["redelivered"]) == (seen[0]["id"], True)
            assert not (await model.call("TaskList")).notices

    seen: list[dict[str, object]] = []
    with HttpServer(TASKYARD_MCP_LEASE="1") as server:
        together(first)
        until(lambda: not list(Path(home(), "instances").glob("*.lock")), what="the caller is let go")
        together(second)
    jobs.close()


@pytest.mark.req("N-07", "B-05")
@pytest.mark.parametrize("mode", BOTH)
def test_a_notice_that_was_sent_by_a_server_that_is_killed_comes_again_from_the_next(mode: Mode) -> None:
    jobs = Jobs(home(), agent="ada")
    jobs.wait(jobs.start(Shell("true", on_parent_exit="keep")).id, timeout=20)
    jobs.close()

    async def hear() -> None:
        async with server.client("ada", mode=mode, stay=True) as model:
            seen.extend((await model.call("TaskList")).notices)
            if len(seen) == 1:
                server.kill()

    seen: list[dict[str, object]] = []
    server = HttpServer()
    together(hear)
    server = HttpServer()
    together(hear)
    server.stop()
    assert [notice["redelivered"] for notice in seen] == [False, True]
    assert len({notice["id"] for notice in seen}) == 1


@pytest.mark.req("L-09")
@pytest.mark.parametrize("mode", BOTH)
def test_claims_outlive_a_killed_server_and_their_caller_goes_on_at_the_next(mode: Mode) -> None:
    async def claim() -> None:
        async with server.client("ada", mode=mode, stay=True) as model:
            await model.call("TaskClaim")
            server.kill()

    async def go_on() -> None:
        async with server.client("eve", mode=mode) as other, server.client("ada", mode=mode) as model:
            assert (await other.refused("TaskClaim", taskId="1")).code == "already_claimed"
            assert (await model.call("TaskUpdate", taskId="1", status="completed")).data["task"]["owner"] == "ada"

    with filled(1) as yard:
        server = HttpServer()
        together(claim)
        assert yard.tasks.get("1").owner == "ada"
        server = HttpServer()
        together(go_on)
        server.stop()


@pytest.mark.req("T-05")
def test_there_is_room_for_another_as_long_as_somebody_holds_nothing() -> None:
    with filled() as yard, HttpServer(TASKYARD_MCP_CALLERS="2") as server:
        for agent in ("ada", "bob", "eve"):
            assert not server.call("TaskList", agent).json["result"].get("isError")
        for agent in ("bob", "eve"):
            assert not server.call("TaskClaim", agent).json["result"].get("isError")
        refused = server.call("TaskCreate", "ada", subject="A").json["result"]
        assert refused["structuredContent"]["error"]["code"] == "too_many_callers"
        assert server.call("TaskUpdate", "bob", taskId="1", status="completed").status == 200
        assert not server.call("TaskList", "ada").json["result"].get("isError")
        assert len(yard.tasks.list()) == 2


@pytest.mark.req("B-09")
def test_a_client_killed_mid_call_leaves_nothing_running(tmp_path: Path) -> None:
    marker = tmp_path / "pid"

    async def body() -> None:
        with anyio.move_on_after(LONG) as scope:
            async with server.client("ada") as model, anyio.create_task_group() as group:
                group.start_soon(lambda: model.call("Bash", command=f"echo $$ > {marker}; sleep 60"))
                await anyio.to_thread.run_sync(lambda: until(lambda: marker.exists() and marker.read_text().strip()))
                scope.cancel()

    with HttpServer() as server:
        together(body)
        pid = int(marker.read_text(encoding="utf-8"))
        until(lambda: not os.path.exists(f"/proc/{pid}"))
        assert server.is_alive


LONG = 30.0


@pytest.mark.req("T-05")
def test_what_it_says_of_itself_is_one_document() -> None:
    with HttpServer() as server:
        assert json.dumps(server.ready)
        assert set(server.ready) == {"url", "token_file", "list"}
        assert server.url == f"http://{server.address}/mcp"
        assert server.address.startswith("127.0.0.1:")
