"""A call that takes longer: answered with a task to clients that can look after one, and with an id to all others."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest
from mcp.client.client import Client
from mcp.client.extension import advertise
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent

from support.jobs import marked
from support.mcp_clients import run, stdio_client
from support.mcp_tasks import IDENTIFIER, Tasks, ask, put_off, until
from taskyard.jobs.jobs import Jobs

#: Nothing is waited for that takes longer than this.
SOON = {"TASKYARD_MCP_DEFER_AFTER": "0.1", "TASKYARD_STALL_AFTER": "0.2"}

#: What a command waits for: a file that the test makes.
WAITS = "until [ -e go ]; do sleep 0.02; done"


def go() -> None:
    """Let the command that waits go on."""
    Path("go").touch()


def text_of(answer: CallToolResult) -> str:
    return "\n".join(block.text for block in answer.content if isinstance(block, TextContent))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.mark.req("T-02", "T-05")
def test_a_command_that_takes_longer_answers_as_it_would_have_and_no_notice_follows(home: Path) -> None:
    async def work() -> None:
        tasks = Tasks()
        async with stdio_client(home, "--list", "demo", env=SOON, extensions=[tasks]) as client:
            async with anyio.create_task_group() as group:
                group.start_soon(_go_after, tasks.first)
                answer = await client.call_tool("Bash", {"command": f"{WAITS}; echo done"})
            (created,) = tasks.created
            assert (created.status, created.ttl_ms) == ("working", None)
            assert text_of(answer) == "done\n"
            assert answer.structured_content is not None
            assert answer.structured_content["task_id"] == created.task_id
            assert answer.structured_content["exitCode"] == 0

            quick = await client.call_tool("Bash", {"command": "echo quick"})
            assert text_of(quick) == "quick\n", "what is over at once is answered at once, and nothing rides along"
            assert len(tasks.created) == 1

    run(work)


@pytest.mark.req("T-02")
def test_a_command_that_fails_is_completed_with_its_error(home: Path) -> None:
    async def work() -> None:
        async with stdio_client(home, "--list", "demo", env=SOON, extensions=[Tasks()]) as client:
            created = await put_off(client, "Bash", {"command": f"{WAITS}; echo no; exit 3"})
            go()
            state = await until(client.session, created.task_id, "completed", "failed", "cancelled")
            answer = CallToolResult.model_validate(state["result"])
            assert (state["status"], answer.is_error) == ("completed", True)
            assert text_of(answer) == "no\n\nExit code 3"
            assert state["ttlMs"] > 0
            again = await ask(client.session, "tasks/get", created.task_id)
            assert again["result"] == state["result"], "whoever asks again hears the same"

    run(work)


@pytest.mark.req("T-02", "O-08")
def test_what_a_command_asks_can_be_answered_by_the_client(home: Path) -> None:
    def reply(message: str) -> Mapping[str, object]:
        return {"action": "accept", "content": {"answer": "yes" if "Really" in message else "no"}}

    async def work() -> None:
        tasks = Tasks(reply)
        script = "printf 'Really? (y/n) '; read a; printf 'Sure about \\033[31mred\\033[0m? (y/n) '; read b; echo $a $b"
        async with stdio_client(home, "--list", "demo", env=SOON, extensions=[tasks]) as client:
            answer = await client.call_tool("Bash", {"command": script, "stdin": True})
            assert text_of(answer).endswith("yes yes\n")
            first, second = tasks.asked.values()
            assert "Really? (y/n)" in first
            assert "Sure about red?" in second, "with nothing in it that would act instead of being read"

    run(work)


@pytest.mark.req("T-02", "O-08")
def test_an_answer_is_typed_once_and_those_to_other_questions_are_passed_over(home: Path) -> None:
    async def work() -> None:
        async with stdio_client(home, "--list", "demo", env=SOON, extensions=[Tasks()]) as client:
            script = f"printf 'Go on? (y/n) '; read a; {WAITS}; read -t 0.2 b; echo \"got $a,$b.\""
            created = await put_off(client, "Bash", {"command": script, "stdin": True})
            session, task_id = client.session, created.task_id
            asked = await until(session, task_id, "input_required")
            (key,) = asked["inputRequests"]
            yes = {"action": "accept", "content": {"answer": "y"}}

            await ask(session, "tasks/update", task_id, inputResponses={"input-0-00000000": yes, "": 7})
            await ask(session, "tasks/update", task_id, inputResponses={key: {"action": "cancel"}})
            same = await ask(session, "tasks/get", task_id)
            assert list(same["inputRequests"]) == [key], "nobody decided yet"
            with pytest.raises(MCPError, match="answer"):
                await ask(session, "tasks/update", task_id, inputResponses={key: {"action": "accept", "content": {}}})

            for _ in range(2):
                await ask(session, "tasks/update", task_id, inputResponses={key: yes})
            assert (await ask(session, "tasks/get", task_id))["status"] == "working"
            go()
            over = await until(session, task_id, "completed")
            assert "got y,." in text_of(CallToolResult.model_validate(over["result"]))

    run(work)


@pytest.mark.req("T-02", "O-08")
def test_a_command_whose_question_is_declined_reads_to_the_end(home: Path) -> None:
    async def work() -> None:
        tasks = Tasks(lambda _: {"action": "decline"})
        async with stdio_client(home, "--list", "demo", env=SOON, extensions=[tasks]) as client:
            script = "printf 'Overwrite? '; read a || echo 'left as it is'"
            answer = await client.call_tool("Bash", {"command": script, "stdin": True})
            assert text_of(answer).endswith("left as it is\n")

    run(work)


@pytest.mark.req("T-03", "B-09")
def test_a_cancelled_task_ends_with_everything_it_started(home: Path) -> None:
    async def work() -> None:
        async with stdio_client(home, "--list", "demo", env=SOON, extensions=[Tasks()]) as client:
            created = await put_off(client, "Bash", {"command": "sleep 4321.5 & sleep 4321.5; wait"})
            await ask(client.session, "tasks/cancel", created.task_id)
            over = await until(client.session, created.task_id, "cancelled", "completed")
            assert over["status"] == "cancelled"
            assert "was stopped" in over["statusMessage"]
            assert over["result"] is None
            assert marked("4321.5") == []
            await ask(client.session, "tasks/cancel", created.task_id)  # once more changes nothing
            listed = await client.call_tool("TaskList", {})
            assert text_of(listed) == "No tasks found", "whoever saw the end needs no notice of it"

    run(work)


@pytest.mark.req("T-02", "B-07")
@pytest.mark.usefixtures("cold")
def test_a_task_goes_on_and_answers_after_its_server_was_killed(home: Path) -> None:
    async def first(found: list[str]) -> None:
        async with stdio_client(home, "--list", "killed-demo", env=SOON, extensions=[Tasks()]) as client:
            created = await put_off(client, "Bash", {"command": f"{WAITS}; echo survived"})
            found.append(created.task_id)
            for server in marked("killed-demo"):
                os.kill(server, signal.SIGKILL)
            with pytest.raises(MCPError):
                await ask(client.session, "tasks/get", created.task_id)

    async def second(task_id: str) -> None:
        async with stdio_client(home, "--list", "other", env=SOON, extensions=[Tasks()]) as client:
            assert (await ask(client.session, "tasks/get", task_id))["status"] == "working"
            go()
            over = await until(client.session, task_id, "completed")
            assert text_of(CallToolResult.model_validate(over["result"])) == "survived\n"
            listed = await client.call_tool("TaskList", {})
            assert text_of(listed) == "No tasks found", "whoever saw the end needs no notice of it"

    task_ids: list[str] = []
    run(first, task_ids)
    run(second, task_ids[0])


@pytest.mark.req("N-07", "B-05")
def test_whoever_does_not_come_back_for_a_task_is_told_of_its_end(home: Path) -> None:
    async def first() -> None:
        async with stdio_client(home, "--list", "demo", env=SOON, extensions=[Tasks()]) as client:
            await put_off(client, "Bash", {"command": f"{WAITS}; echo done", "description": "the long one"})

    async def second() -> None:
        async with stdio_client(home, "--list", "demo", env=SOON) as client:
            listed = text_of(await client.call_tool("TaskList", {}))
            assert listed.count("<task-notification>") == 1
            assert "the long one" in listed

    run(first)
    go()
    jobs = Jobs(str(home))
    for job in jobs.list():
        jobs.wait(job.id, timeout=20)
    run(second)


@pytest.mark.req("N-07", "T-02")
def test_nobody_is_told_twice_who_looks_after_a_task_while_making_other_calls(home: Path) -> None:
    async def work() -> None:
        async with stdio_client(home, "--list", "demo", env=SOON, extensions=[Tasks()]) as client:
            created = await put_off(client, "Bash", {"command": f"{WAITS}; echo done"})
            go()
            await anyio.to_thread.run_sync(lambda: Jobs(str(home)).wait(created.task_id, timeout=20))
            assert text_of(await client.call_tool("TaskList", {})) == "No tasks found"
            assert (await ask(client.session, "tasks/get", created.task_id))["status"] == "completed"
            assert text_of(await client.call_tool("TaskList", {})) == "No tasks found"

    run(work)


@pytest.mark.req("T-02", "B-13")
def test_a_wait_for_a_job_is_put_off_as_well_and_leaves_the_job_alone(home: Path) -> None:
    async def work() -> None:
        tasks = Tasks()
        async with stdio_client(home, "--list", "demo", env=SOON, extensions=[tasks]) as client:
            started = await client.call_tool("Bash", {"command": f"{WAITS}; echo done", "run_in_background": True})
            assert started.structured_content is not None
            job_id = started.structured_content["task_id"]

            short = await client.call_tool("TaskOutput", {"task_id": job_id, "timeout": 400})
            assert "retrieval_status: timeout" in text_of(short)
            long = await put_off(client, "TaskOutput", {"task_id": job_id, "timeout": 600_000})
            assert long.task_id != job_id
            await ask(client.session, "tasks/cancel", long.task_id)
            assert (await ask(client.session, "tasks/get", long.task_id))["status"] == "working", "the job goes on"

            go()
            over = await until(client.session, long.task_id, "completed")
            said = text_of(CallToolResult.model_validate(over["result"]))
            assert "retrieval_status: success" in said
            assert said.endswith("output:\ndone\n")

    run(work)


@pytest.mark.req("T-04")
@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_an_unknown_task_is_refused_and_near_ones_are_named(home: Path, method: str) -> None:
    async def work() -> None:
        async with stdio_client(home, "--list", "demo", env=SOON, extensions=[Tasks()]) as client:
            answer = await client.call_tool("Bash", {"command": "true"})
            assert answer.structured_content is not None
            known = str(answer.structured_content["task_id"])
            near = known[:-1] + ("0" if known[-1] != "0" else "1")
            with pytest.raises(MCPError, match=known) as refused:
                await ask(client.session, method, near, inputResponses={})
            assert refused.value.code == -32602
            for bad in ("", "../../etc", f"{known}.1", f"{known}.x.y", f"{known}.1.1.1.1", "b" * 90, "b" * 9_000):
                with pytest.raises(MCPError) as refused:
                    await ask(client.session, method, bad, inputResponses={})
                assert refused.value.code == -32602

    run(work)


@pytest.mark.req("T-02", "T-05")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_that_did_not_ask_for_tasks_gets_an_answer_and_later_a_notice(home: Path, mode: str) -> None:
    patience = {**SOON, "TASKYARD_MCP_PATIENCE": "0.3"}

    async def work() -> None:
        async with stdio_client(home, "--list", "demo", env=patience, mode=mode) as client:
            await _without_tasks(client, home)

    run(work)


@pytest.mark.req("T-05")
def test_an_older_protocol_has_no_tasks_whatever_its_client_says(home: Path) -> None:
    patience = {**SOON, "TASKYARD_MCP_PATIENCE": "0.3"}

    async def work() -> None:
        claims = [advertise(IDENTIFIER)]
        async with stdio_client(home, "--list", "demo", env=patience, mode="legacy", extensions=claims) as client:
            assert client.protocol_version == "2025-11-25"
            await _without_tasks(client, home)

    run(work)


@pytest.mark.req("T-05")
def test_tasks_are_not_for_those_who_did_not_ask_for_them(home: Path) -> None:
    async def work() -> None:
        async with stdio_client(home, "--list", "demo", env=SOON) as client:
            with pytest.raises(MCPError) as refused:
                await ask(client.session, "tasks/get", "b12345678")
            assert refused.value.code == -32021
            assert refused.value.data == {"requiredCapabilities": {"extensions": {IDENTIFIER: {}}}}

    run(work)


@pytest.mark.req("B-11", "T-02")
def test_where_nothing_may_go_on_in_the_background_a_call_takes_as_long_as_it_takes(home: Path) -> None:
    disabled = {**SOON, "TASKYARD_MCP_PATIENCE": "0.1", "TASKYARD_DISABLE_BACKGROUND_TASKS": "1"}

    async def work() -> None:
        tasks = Tasks()
        async with stdio_client(home, "--list", "demo", env=disabled, extensions=[tasks]) as client:
            answer = await client.call_tool("Bash", {"command": "sleep 0.5; echo done"})
            assert text_of(answer) == "done\n"
            assert tasks.created == []

    run(work)


async def _without_tasks(client: Client, home: Path) -> None:
    answer = await client.call_tool("Bash", {"command": f"{WAITS}; echo done"})
    assert answer.structured_content is not None
    job_id = answer.structured_content["task_id"]
    assert f"goes on in the background with ID: {job_id}" in text_of(answer)
    go()
    await anyio.to_thread.run_sync(lambda: Jobs(str(home)).wait(job_id, timeout=20))
    assert "<task-notification>" in text_of(await client.call_tool("TaskList", {}))


async def _go_after(event: anyio.Event) -> None:
    await event.wait()
    go()
