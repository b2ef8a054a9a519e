"""The server is killed in the middle of everything; tasks go on, and are found by the next one."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from a2a.client import Client
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    ListTasksRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskState,
)

from support import a2a_places as a2a
from support.a2a_places import Yard
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.remote.backend import RemoteState, Work
from taskyard.servers.a2a.tasks import MessageLog, new_message

pytestmark = pytest.mark.req("X-02", "K-03")


_LONG = "/count 100 0.005\n/ask Go on?\n/count 100"


def test_a_task_goes_on_when_the_server_is_killed_and_the_next_one_tells_all_of_it(yard: Yard) -> None:
    with yard.serve() as first:
        wish = {"message_id": "once", "context_id": "talk"}
        task = first.talk(lambda client: a2a.begun(client, _LONG, **wish))
        first.stop(signal.SIGKILL)

    async def body(client: Client) -> None:
        again = await a2a.begun(client, _LONG, **wish)
        assert again.id == task.id, "the same message began another job"
        listed = await client.list_tasks(ListTasksRequest(context_id="talk"))
        assert [each.id for each in listed.tasks] == [task.id]
        told: list[StreamResponse] = []
        async for each in client.subscribe(SubscribeToTaskRequest(id=task.id)):
            told.append(each)
            if len(told) == 1:
                await a2a.until(client, task.id, a2a.asks)
                await a2a.begun(client, "yes", task_id=task.id)
        assert told[0].HasField("task")
        assert told[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED
        done = await a2a.until(client, task.id, a2a.is_over)
        lines = [line for line in a2a.said(done).splitlines() if line.isdigit()]
        assert lines == [str(number) for number in range(1, 101)] * 2

    with yard.serve() as second:
        second.talk(body)
    assert len(yard.jobs().list(ended=True)) == 1
    assert not list(Path(yard.home).glob("outbox/*/*/*")), "its end is news for who asked, and for nobody here"


def test_a_question_waits_for_its_answer_while_there_is_no_server(yard: Yard) -> None:
    with yard.serve() as first:

        async def ask(client: Client) -> Task:
            task = await a2a.begun(client, "/ask Which?\n/ask And now?")
            return await a2a.until(client, task.id, a2a.asks)

        task = first.talk(ask)
        first.stop(signal.SIGKILL)

    async def answer(client: Client) -> None:
        await a2a.begun(client, "blue", task_id=task.id, message_id="answer")
        second = await a2a.until(client, task.id, lambda task: a2a.asks(task) and "told: blue" in a2a.said(task))
        await a2a.begun(client, "blue", task_id=task.id, message_id="answer")
        assert a2a.asks(await a2a.until(client, task.id, lambda _: True)), "one answer was given to two questions"
        assert second.status.message.message_id != task.status.message.message_id
        stopped = await client.cancel_task(CancelTaskRequest(id=task.id))
        assert stopped.status.state == TaskState.TASK_STATE_CANCELED

    with yard.serve() as second:
        second.talk(answer)


def test_an_answer_that_the_server_died_over_is_given_again_and_only_to_its_own_question(yard: Yard) -> None:
    with yard.serve() as server:

        async def body(client: Client) -> None:
            task = await a2a.begun(client, "/ask Which?\n/ask And now?")
            asking = await a2a.until(client, task.id, a2a.asks)
            asked = int(asking.status.message.message_id.rpartition("-")[2])
            letters = MessageLog(JobPaths(yard.home, task.id))
            # As far as a server came that was killed.
            letters.begin(new_message("half", "blue", asked=asked, question="Which?"))
            assert a2a.asks(await a2a.until(client, task.id, lambda _: True)), "nobody answered it yet"
            await a2a.begun(client, "blue", task_id=task.id, message_id="half")
            await a2a.until(client, task.id, lambda task: a2a.asks(task) and "told: blue" in a2a.said(task))
            letters.begin(new_message("gone", "red", asked=asked, question="Which?"))
            await a2a.begun(client, "red", task_id=task.id, message_id="gone")
            assert a2a.asks(await a2a.until(client, task.id, lambda _: True)), "it answered another question"
            await client.cancel_task(CancelTaskRequest(id=task.id))

        server.talk(body)


#: Follows a session to its end, and writes down each cursor before what it brought; killed at any moment, it goes on.
_FOLLOWER = """
import asyncio, json, os, sys
from pathlib import Path
from taskyard.jobs.remote.a2a import A2aBackend
from taskyard.jobs.remote.remotes import Remote

async def main(url, token, session, book):
    path = Path(book)
    backend = A2aBackend(Remote("there", "a2a", url), token)
    while True:
        known = json.loads(path.read_text()) if path.exists() else {"cursor": "", "text": ""}
        seen = await backend.poll(session, known["cursor"])
        half = path.with_suffix(".half")
        half.write_text(json.dumps({"cursor": seen.cursor, "text": known["text"] + seen.text}))
        half.rename(path)
        if seen.state.is_final:
            return print(seen.state, flush=True)
        await asyncio.sleep(0.01)

asyncio.run(main(*sys.argv[1:]))
"""


def test_a_client_that_is_killed_again_and_again_hears_every_line_once(yard: Yard, tmp_path: Path) -> None:
    book = tmp_path / "book"
    with yard.serve() as server:
        session = a2a.talk(server.backend(), lambda made: made.submit(Work("r00000001", "/count 400 0.005")))
        command = [sys.executable, "-c", _FOLLOWER, server.url, server.token, session, str(book)]
        for wait in (0.9, 1.0, None):
            with subprocess.Popen(command, env=yard.env, stdout=subprocess.PIPE, text=True) as follower:
                try:
                    out, _ = follower.communicate(timeout=wait or a2a.LONGEST)
                except subprocess.TimeoutExpired:
                    follower.kill()
        assert out.strip() == RemoteState.COMPLETED
    assert json.loads(book.read_text())["text"].split() == [str(number) for number in range(1, 401)]
