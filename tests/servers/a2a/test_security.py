"""Strangers, callers who want more than they may, and what is sent to do harm."""

from __future__ import annotations

import http.client
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import anyio.to_thread
import pytest
from a2a.client import Client
from a2a.types.a2a_pb2 import CancelTaskRequest, GetTaskRequest, ListTasksRequest, Part, SubscribeToTaskRequest
from a2a.utils.errors import A2AError, InvalidParamsError, InvalidRequestError, TaskNotFoundError
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value

import taskyard
from support import a2a_places as a2a
from support.a2a_places import OurServer, Yard
from taskyard.servers.a2a.handler import MAX_CALLER_STREAMS

pytestmark = pytest.mark.req("X-02")

CONFIG = f"""
a2a_tasks = 2
a2a_body_limit = 100000

[a2a]
name = "Ada's yard"

[a2a.skills.talk]
description = "Talks"
command = '''{a2a.OFFERED}'''

[a2a.skills.open]
description = "Shows what its tools were given"
command = '''{a2a.OFFERED}'''
transcript = true
"""

TALK: dict[str, Any] = {"metadata": {"skill": "talk"}}


class Got(NamedTuple):
    status: int
    headers: dict[str, str]
    body: Any


class Place(NamedTuple):
    yard: Yard
    server: OurServer

    def ask(self, method: str = "GET", path: str = "/rpc", body: object = None, **headers: str | None) -> Got:
        """A bare request, with the right token unless told otherwise; None leaves a header out."""
        usual = {"Authorization": f"Bearer {self.server.token}", "A2A-Version": "1.0"}
        sent = usual | {name.replace("_", "-"): value for name, value in headers.items()}
        given = {name: value for name, value in sent.items() if value is not None}
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection = http.client.HTTPConnection(self.server.url.removeprefix("http://"), timeout=a2a.LONGEST)
        try:
            connection.request(method, path, data, given)
            answer = connection.getresponse()
            text = answer.read()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Got(answer.status, found, json.loads(text) if text.startswith(b"{") else text)
        finally:
            connection.close()

    def rpc(self, method: str, **params: object) -> Any:
        """A bare call; its error, or None."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self.ask("POST", "/rpc", body).body.get("error")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    yard = Yard(tmp_path_factory.mktemp("guarded"))
    yard.configure(CONFIG)
    with yard.serve("--skill", "talk,open") as server:
        yield Place(yard, server)
        assert "Traceback" not in server.said
        assert server.token not in server.said
    yard.stop_jobs()


@pytest.mark.parametrize("path", ["/rpc", "/rest/tasks", "/rest/message:send", "/", "/nowhere"])
def test_without_a_token_nothing_is_told_but_the_card(place: Place, path: str) -> None:
    for bearer in (None, "Bearer wrong-token-0123456789", f"Basic {place.server.token}", f"Bearer {'x' * 9000}"):
        got = place.ask("POST", path, b"{}", Authorization=bearer)
        assert got.status == 401
        assert got.headers["www-authenticate"].startswith("Bearer")
    assert place.ask(path="/.well-known/agent-card.json", Authorization=None).body["name"] == "Ada's yard"


def test_the_card_says_what_is_offered_and_nothing_of_how(place: Place) -> None:
    card = place.ask(path="/.well-known/agent-card.json").body

    assert [skill["id"] for skill in card["skills"]] == ["talk", "open"]
    assert card["capabilities"]["pushNotifications"] is False
    assert card["securitySchemes"]
    told = json.dumps(card)
    assert not [word for word in ("offered_agent", "python", place.yard.home, os.uname().nodename) if word in told]


def test_a_name_or_a_page_that_is_not_ours_is_turned_away(place: Place) -> None:
    for path in ("/rpc", "/.well-known/agent-card.json"):
        assert place.ask("POST", path, b"{}", Host="evil.example").status == 421
        assert place.ask("POST", path, b"{}", Origin="https://evil.example").status == 403


def test_a_request_that_is_too_large_is_refused_before_it_is_understood(place: Place) -> None:
    assert place.ask("POST", "/rpc", b'{"x": "' + b"y" * 200_000 + b'"}').status == 413


def test_who_sends_half_a_request_keeps_nobody_out(place: Place) -> None:
    host, _, port = place.server.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))) as half:
        half.sendall(b"POST /rpc HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Le")
        assert place.ask(path="/.well-known/agent-card.json").status == 200


_PART = {"text": "hello"}


@pytest.mark.parametrize(
    "message",
    [
        {"messageId": "x1", "role": "ROLE_USER", "parts": [{"raw": "aGVsbG8=", "filename": "../../x"}]},
        {"messageId": "x2", "role": "ROLE_USER", "parts": [{"url": "http://127.0.0.1:9/secret"}]},
        {"messageId": "x3", "role": "ROLE_USER", "parts": [{"text": "nul \u0000 byte"}]},
        {"messageId": "x4", "role": "ROLE_USER", "parts": [{"text": "\ud800"}]},
        {"messageId": "x5", "role": "ROLE_USER", "parts": [{"text": "  "}]},
        {"messageId": "x6", "role": "ROLE_USER", "parts": []},
        {"messageId": "x7", "role": "ROLE_AGENT", "parts": [_PART]},
        {"messageId": "", "role": "ROLE_USER", "parts": [_PART]},
        {"messageId": "y" * 300, "role": "ROLE_USER", "parts": [_PART]},
        {"messageId": "x8", "contextId": "a\nb\u001b[31m", "role": "ROLE_USER", "parts": [_PART]},
        {"messageId": "x9", "taskId": "../../../etc/passwd", "role": "ROLE_USER", "parts": [_PART]},
        {"messageId": "x10", "role": "ROLE_USER", "parts": [_PART], "metadata": {"skill": "/bin/sh"}},
        {"messageId": "x11", "role": "ROLE_USER", "parts": [_PART], "metadata": {"skill": ["talk"]}},
        {"messageId": "x12", "role": "ROLE_USER", "parts": "text"},
        "message",
        None,
    ],
)
def test_what_cannot_be_a_message_begins_nothing(place: Place, message: object) -> None:
    if isinstance(message, dict):
        message = {"metadata": {"skill": "talk"}, **message}
    before = len(place.yard.jobs().list(ended=True))

    error = place.rpc("SendMessage", message=message)

    assert error["code"] in (-32602, -32600, -32001, -32005), error
    assert "taskyard/" not in json.dumps(error)
    assert len(place.yard.jobs().list(ended=True)) == before


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'"x"', b"\xff\xfe", b'{"a":' * 20_000, b'{"jsonrpc": "2.0"}'])
def test_what_is_no_request_is_answered_and_the_server_lives(place: Place, body: bytes) -> None:
    assert place.ask("POST", "/rpc", body).status in (200, 400)
    assert place.ask("POST", "/rest/message:send", body).status in (400, 500)
    assert place.ask(path="/.well-known/agent-card.json").status == 200


def test_nothing_of_what_runs_is_for_callers_to_say(place: Place, tmp_path: Path) -> None:
    planted = tmp_path / "planted"
    wish = {"skill": "talk", "command": f"touch {planted}", "engine": "claude", "cwd": "/", "env": {"A": "B"}}

    async def body(client: Client) -> None:
        task = await a2a.begun(client, "hello", metadata=wish)
        done = await a2a.until(client, task.id, a2a.is_over)
        assert a2a.said(done) == "hello\n"

    place.server.talk(body)
    assert not planted.exists()


def test_data_is_taken_as_text_and_never_as_anything_else(place: Place) -> None:
    async def body(client: Client) -> None:
        message = a2a.message("see:", **TALK)
        message.parts.append(Part(data=ParseDict({"answer": 42}, Value())))
        task = await a2a.sent(client, message)
        done = await a2a.until(client, task.id, a2a.is_over)
        assert a2a.said(done).splitlines()[0] == "see:"
        assert a2a.said(done).splitlines()[1] == '{"answer": 42}'

    place.server.talk(body)


def test_what_tools_were_given_is_told_only_where_the_skill_says_so(place: Place) -> None:
    async def body(client: Client) -> None:
        for skill, tells in (("talk", False), ("open", True)):
            task = await a2a.begun(client, "/tool Edit my-secret", metadata={"skill": skill})
            done = await a2a.until(client, task.id, a2a.is_over)
            assert ("Edit" in a2a.said(done), "my-secret" in a2a.said(done)) == (True, tells)

    place.server.talk(body)


def test_a_caller_has_so_many_tasks_at_once_and_the_next_when_one_is_over(place: Place) -> None:
    async def body(client: Client) -> None:
        tasks = [await a2a.begun(client, "/forever", **TALK) for _ in range(2)]
        with pytest.raises(InvalidRequestError, match="Try again"):
            await a2a.begun(client, "/forever", **TALK)
        for task in tasks:
            await client.cancel_task(CancelTaskRequest(id=task.id))
        done = await a2a.begun(client, "hello", **TALK)
        await a2a.until(client, done.id, a2a.is_over)

    place.server.talk(body)


def test_callers_see_their_own_tasks_alone_and_nobody_sees_the_jobs_of_the_person(place: Place) -> None:
    other = place.yard.cli("a2a", "token", "ada")["token"]
    own = place.yard.jobs().run(taskyard.Shell("echo mine"))

    async def body(client: Client) -> Any:
        task = await a2a.begun(client, "hello", message_id="same", **TALK)
        await a2a.until(client, task.id, a2a.is_over)
        with pytest.raises(TaskNotFoundError):
            await client.get_task(GetTaskRequest(id=own.id))
        with pytest.raises(TaskNotFoundError):
            await client.cancel_task(CancelTaskRequest(id=own.id))
        listed = await client.list_tasks(ListTasksRequest(page_size=100))
        assert own.id not in [each.id for each in listed.tasks]
        return task.id

    mine = place.server.talk(body)
    theirs = place.server.talk(body, token=other)
    assert mine != theirs

    async def peep(client: Client) -> None:
        with pytest.raises(TaskNotFoundError):
            await client.get_task(GetTaskRequest(id=mine))
        listed = await client.list_tasks(ListTasksRequest())
        assert [each.id for each in listed.tasks] == [theirs]

    place.server.talk(peep, token=other)


def test_a_token_that_is_replaced_or_taken_away_is_void_at_once(place: Place) -> None:
    old = place.yard.cli("a2a", "token", "bob")["token"]

    def status(token: str) -> int:
        return place.ask(path="/rest/tasks", Authorization=f"Bearer {token}").status

    assert status(old) == 200
    new = place.yard.cli("a2a", "token", "bob", "--new")["token"]
    assert (status(old), status(new)) == (401, 200)
    place.yard.cli("a2a", "token", "bob", "--remove")
    assert status(new) == 401


def test_a_tenant_or_a_skill_that_is_not_named_is_refused_with_what_there_is(place: Place) -> None:
    async def body(client: Client) -> None:
        with pytest.raises(InvalidParamsError, match="talk, open"):
            await a2a.begun(client, "hello")

    place.server.talk(body)
    assert "tenants" in place.rpc("GetTask", id="a00000000", tenant="x")["message"]


@pytest.mark.parametrize("gone", ["command", "interpreter", "folder", "both"])
def test_a_caller_sees_no_path_of_a_skill_that_cannot_start(yard: Yard, gone: str) -> None:
    hidden = yard.folder / "hidden-place"
    hidden.mkdir()
    program = hidden / "agent"
    program.write_text("#!/bin/sh\ncat\n", encoding="utf-8")
    program.chmod(0o755)
    yard.configure(
        f'[a2a.skills.s]\ndescription = "d"\nengine = "command"\ncommand = "{program} {{prompt}}"\ncwd = "{hidden}"\n'
    )
    seen: list[str] = []

    async def body(client: Client) -> None:
        try:
            task = await a2a.begun(client, "hello")
            seen.append(str(await a2a.until(client, task.id, a2a.is_over)))
        except A2AError as error:
            seen.append(f"{error!r} {error} {error.data}")

    with yard.serve("--skill", "s") as server:
        if gone in ("command", "both"):
            program.unlink()
        if gone == "interpreter":
            program.write_text(f"#!{hidden}/interpreter\n", encoding="utf-8")
        if gone in ("folder", "both"):
            hidden.rename(yard.folder / "elsewhere")
        server.talk(body)
    assert "hidden-place" not in seen[0]
    assert str(yard.folder) not in seen[0]


def test_a_caller_with_all_its_streams_open_leaves_streams_to_others(yard: Yard) -> None:
    yard.configure("a2a_tasks = 1000\n")
    tokens = {name: yard.cli("a2a", "token", name)["token"] for name in ("greedy", "honest")}

    async def streams(client: Client, task_id: str, count: int) -> list[Any]:
        opened = [client.subscribe(SubscribeToTaskRequest(id=task_id)) for _ in range(count)]
        return [(stream, await anext(aiter(stream))) for stream in opened]

    async def greedy(client: Client) -> None:
        task = await a2a.begun(client, "/forever")
        held = await streams(client, task.id, MAX_CALLER_STREAMS)
        with pytest.raises(InvalidRequestError, match="Too many streams"):
            await streams(client, task.id, 1)

        async def honest(client: Client) -> None:
            own = await a2a.begun(client, "/forever")
            assert len(await streams(client, own.id, MAX_CALLER_STREAMS)) == MAX_CALLER_STREAMS
            await client.cancel_task(CancelTaskRequest(id=own.id))

        await anyio.to_thread.run_sync(lambda: server.talk(honest, token=tokens["honest"]))
        assert len(held) == MAX_CALLER_STREAMS
        await client.cancel_task(CancelTaskRequest(id=task.id))

    with yard.serve() as server:
        server.talk(greedy, token=tokens["greedy"])


@pytest.mark.parametrize("path", ["/rpc", "/rpc/", "/rpc//"])
def test_a_trailing_slash_is_answered_and_not_redirected(place: Place, path: str) -> None:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}
    got = place.ask("POST", path, asked, Content_Type="application/json")
    assert got.status == 200
    assert "tasks" in got.body["result"]


@pytest.mark.parametrize("prompt", ["/wait 0", "hello"])
def test_every_artifact_has_a_part(place: Place, prompt: str) -> None:
    async def body(client: Client) -> None:
        task = await a2a.begun(client, prompt, **TALK)
        over = await a2a.until(client, task.id, a2a.is_over)
        assert all(artifact.parts for artifact in over.artifacts)
        assert bool([each for each in over.artifacts if each.artifact_id == "transcript"]) is (prompt == "hello")

    place.server.talk(body)


def test_what_a_task_used_has_the_keys_of_the_protocol(place: Place) -> None:
    async def body(client: Client) -> None:
        task = await a2a.begun(client, "/usage 900\nhello", **TALK)
        over = await a2a.until(client, task.id, a2a.is_over)
        usage = MessageToDict(over.metadata)["usage"]
        assert usage["totalTokens"] >= 900
        assert not [key for key in usage if "_" in key]

    place.server.talk(body)
