"""The official client against our server, over both of its ways in."""

from __future__ import annotations

import os
from typing import Any

import anyio
import pytest
from a2a.client import Client
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import (
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from google.protobuf.json_format import MessageToDict

from support import a2a_places as a2a
from support.a2a_places import OurServer
from taskyard.jobs.remote.a2a import parts_text

pytestmark = pytest.mark.req("X-02")

ways = pytest.mark.parametrize("rest", [False, True], ids=["json-rpc", "rest"])


async def streamed(client: Client, text: str, **more: Any) -> list[StreamResponse]:
    """Everything that a stream tells."""
    request = SendMessageRequest(message=a2a.message(text, **more))
    return [each async for each in client.send_message(request)]


def kinds(stream: list[StreamResponse]) -> list[str]:
    return [each.WhichOneof("payload") or "" for each in stream]


def spoken(stream: list[StreamResponse]) -> str:
    """What a stream says, first to last."""
    first = a2a.said(stream[0].task)
    later = [each.artifact_update.artifact for each in stream[1:] if each.HasField("artifact_update")]
    return first + "".join(parts_text(artifact.parts) for artifact in later if artifact.artifact_id == "transcript")


@ways
def test_a_stream_tells_what_is_said_as_it_comes_and_ends_with_the_task(server: OurServer, rest: bool) -> None:
    stream = server.talk(lambda client: streamed(client, "one\n/wait 0.3\ntwo\n/wait 0.2\nthree"), rest=rest)

    assert kinds(stream)[0] == "task"
    assert "artifact_update" in kinds(stream)
    assert kinds(stream)[-1] == "status_update"
    assert stream[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED
    assert spoken(stream) == "one\ntwo\nthree\n"
    updates = [each.artifact_update for each in stream if each.HasField("artifact_update")]
    said = [bool(a2a.said(stream[0].task)), *(each.append for each in updates if each.artifact.artifact_id != "result")]
    assert all(said[1 if said[0] else 2 :]), "what is added must not replace what was said"


@ways
def test_a_question_is_input_required_and_the_next_message_answers_it(server: OurServer, rest: bool) -> None:
    async def body(client: Client) -> None:
        asked = await streamed(client, "/ask Which one?\nThank you.")
        status = asked[-1].status_update.status if len(asked) > 1 else asked[0].task.status
        assert status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        assert parts_text(status.message.parts) == "Which one?"
        task = asked[0].task
        stream = await streamed(client, "The blue one", task_id=task.id, context_id=task.context_id)
        assert stream[0].task.status.state != TaskState.TASK_STATE_INPUT_REQUIRED, "it was answered"
        done = await a2a.until(client, task.id, a2a.is_over)
        assert "told: The blue one\n" in a2a.said(done)
        said = [parts_text(message.parts) for message in done.history]
        assert said == ["/ask Which one?\nThank you.", "Which one?", "The blue one"]

    server.talk(body, rest=rest)


@ways
def test_a_cancel_ends_the_job_with_all_it_started_and_proves_it(server: OurServer, rest: bool) -> None:
    async def body(client: Client) -> None:
        task = await a2a.begun(client, "/spawn\n/forever")
        at_work = await a2a.until(client, task.id, lambda task: a2a.said(task).strip().isdigit())
        stopped = await client.cancel_task(CancelTaskRequest(id=task.id))
        assert stopped.status.state == TaskState.TASK_STATE_CANCELED
        assert MessageToDict(stopped.metadata)["proof"] == "proved"
        assert a2a.said(at_work).strip() not in os.listdir("/proc"), "its child lives"
        with pytest.raises(TaskNotCancelableError):
            await client.cancel_task(CancelTaskRequest(id=task.id))

    server.talk(body, rest=rest)


@ways
def test_tasks_are_listed_by_context_and_state_page_by_page_the_latest_first(server: OurServer, rest: bool) -> None:
    async def body(client: Client) -> None:
        mine: dict[str, Any] = {"context_id": f"pages-{rest}"}
        ids = [(await a2a.begun(client, f"number {number}", **mine)).id for number in range(3)]
        for each in ids:
            await a2a.until(client, each, a2a.is_over)
        failed = await a2a.begun(client, "/fail no", **mine)
        await a2a.until(client, failed.id, a2a.is_over)
        first = await client.list_tasks(ListTasksRequest(**mine, page_size=3))
        second = await client.list_tasks(ListTasksRequest(**mine, page_size=3, page_token=first.next_page_token))
        found = [task.id for task in (*first.tasks, *second.tasks)]
        assert (first.total_size, len(first.tasks), second.next_page_token) == (4, 3, "")
        assert found[0] == failed.id and sorted(found) == sorted([*ids, failed.id])
        assert not first.tasks[0].artifacts
        only = await client.list_tasks(ListTasksRequest(**mine, status=TaskState.TASK_STATE_FAILED))
        assert [task.id for task in only.tasks] == [failed.id]

    server.talk(body, rest=rest)


@ways
def test_a_failure_says_why(server: OurServer, rest: bool) -> None:
    stream = server.talk(lambda client: streamed(client, "/fail no luck"), rest=rest)

    status = stream[-1].status_update.status if len(stream) > 1 else stream[0].task.status
    assert (status.state, parts_text(status.message.parts)) == (TaskState.TASK_STATE_FAILED, "no luck")


def test_who_subscribes_later_is_told_how_it_stands_and_what_comes_past_questions_to_the_end(
    server: OurServer,
) -> None:
    async def body(client: Client) -> None:
        task = await a2a.begun(client, "early\n/ask Go on?\nlate")
        await a2a.until(client, task.id, a2a.asks)
        told: list[StreamResponse] = []
        listening = anyio.Event()
        async with anyio.create_task_group() as group:

            async def listen() -> None:
                async for each in client.subscribe(SubscribeToTaskRequest(id=task.id)):
                    told.append(each)
                    listening.set()

            group.start_soon(listen)
            await listening.wait()
            await a2a.begun(client, "yes", task_id=task.id)
        assert spoken(told).splitlines()[0] == "early"
        assert "told: yes\nlate\n" in spoken(told)
        assert told[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED
        with pytest.raises(UnsupportedOperationError):
            async for _ in client.subscribe(SubscribeToTaskRequest(id=task.id)):
                pass

    server.talk(body)


def test_a_message_to_a_task_that_is_over_or_unknown_is_refused(server: OurServer) -> None:
    async def body(client: Client) -> None:
        task = await a2a.begun(client, "done")
        await a2a.until(client, task.id, a2a.is_over)
        with pytest.raises(UnsupportedOperationError, match="over"):
            await a2a.begun(client, "more", task_id=task.id)
        with pytest.raises(TaskNotFoundError):
            await a2a.begun(client, "more", task_id="a00000000")
        with pytest.raises(TaskNotFoundError):
            await client.get_task(GetTaskRequest(id="../../etc"))

    server.talk(body)


def test_a_history_of_a_length_is_as_long(server: OurServer) -> None:
    async def body(client: Client) -> None:
        task = await a2a.begun(client, "done")
        short = await client.get_task(GetTaskRequest(id=task.id, history_length=0))
        whole = await client.get_task(GetTaskRequest(id=task.id))
        assert (len(short.history), len(whole.history)) == (0, 1)

    server.talk(body)


def test_push_notifications_are_not_offered(server: OurServer) -> None:
    async def body(client: Client) -> None:
        task = await a2a.begun(client, "done")
        wish = TaskPushNotificationConfig(task_id=task.id, id="x", url="http://127.0.0.1:9/")
        with pytest.raises(PushNotificationNotSupportedError):
            await client.create_task_push_notification_config(wish)

    server.talk(body)
