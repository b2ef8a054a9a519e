from __future__ import annotations

import os
from pathlib import Path

import pytest
from a2a.client import Client
from a2a.client.errors import A2AClientError
from a2a.types.a2a_pb2 import TaskState
from a2a.utils.errors import A2AError

from support import a2a_places as a2a
from support.a2a_places import OurServer
from taskyard.errors import StorageError, UsageError
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.jobs import Jobs
from taskyard.servers.a2a.tasks import MAX_MESSAGES, MessageLog, new_message


@pytest.fixture
def folder(tmp_path: Path) -> JobPaths:
    (tmp_path / "jobs" / "a00000001").mkdir(parents=True)
    return JobPaths(str(tmp_path), "a00000001")


def test_a_message_is_begun_then_done_and_one_that_was_refused_was_never_sent(folder: JobPaths) -> None:
    letters = MessageLog(folder)
    assert letters.read() == {}
    for name in ("one", "two"):
        letters.begin(new_message(name, "blue", asked=7, question="Which?"))
    letters.done("one")
    letters.refused("two")

    [found] = letters.read().values()
    assert (found.id, found.text, found.asked, found.question, found.is_done) == ("one", "blue", 7, "Which?", True)
    assert os.stat(f"{folder.path}/a2a.jsonl").st_mode & 0o777 == 0o600


def test_what_a_dying_writer_left_half_spoils_nothing_after_it(folder: JobPaths) -> None:
    path = Path(folder.path) / "a2a.jsonl"
    path.write_bytes(b'{"id": "half", "te')
    letters = MessageLog(folder)
    letters.begin(new_message("whole", "blue", asked=0, question=""))
    path.write_bytes(path.read_bytes() + b'[]\n{"id": 3}\n\xff\xfe\n')

    assert list(letters.read()) == ["whole"]


def test_messages_to_a_task_are_bounded(folder: JobPaths) -> None:
    letters = MessageLog(folder)
    for number in range(MAX_MESSAGES):
        letters._append(new_message(str(number), "x", asked=0, question="")._asdict())

    with pytest.raises(UsageError, match=str(MAX_MESSAGES)):
        letters.begin(new_message("more", "x", asked=0, question=""))


def test_a_link_in_its_place_is_not_followed(folder: JobPaths, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("")
    os.symlink(target, f"{folder.path}/a2a.jsonl")

    with pytest.raises(StorageError):
        MessageLog(folder).done("one")
    assert target.read_text() == ""


@pytest.mark.req("X-02")
@pytest.mark.parametrize("node", ["a pipe", "a link", "a huge file", "a folder"])
def test_the_server_answers_whatever_another_program_put_in_their_place(
    server: OurServer, tmp_path: Path, node: str
) -> None:
    target = tmp_path / "target"
    target.write_text("")

    def put(path: str) -> None:
        if node == "a pipe":
            os.mkfifo(path)
        elif node == "a link":
            os.symlink(target, path)
        elif node == "a folder":
            os.mkdir(path)
        else:
            Path(path).touch()
            os.truncate(path, 1 << 40)

    asking: list[str] = []

    async def body(client: Client) -> None:
        task = await a2a.begun(client, "/ask Which one?\nThank you.")
        asking.append(task.id)
        await a2a.until(client, task.id, lambda task: task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED)
        put(f"{server.yard.home}/jobs/{task.id}/a2a.jsonl")
        with pytest.raises((A2AError, A2AClientError)):
            await a2a.begun(client, "The blue one", task_id=task.id)
        other = await a2a.begun(client, "done")
        await a2a.until(client, other.id, a2a.is_over)

    try:
        server.talk(body)
    finally:
        Jobs(server.yard.home).stop(*asking)
    assert target.read_text() == ""


def test_a_pipe_in_its_place_keeps_no_writer_waiting(folder: JobPaths) -> None:
    os.mkfifo(f"{folder.path}/a2a.jsonl")
    with pytest.raises(StorageError, match="named pipe"):
        MessageLog(folder).done("one")
