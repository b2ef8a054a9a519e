"""
Somebody else's A2A agent, built with the official SDK alone: a program that serves until it is ended.

    python a2a_agent.py [--token T] [--message] [--elsewhere URL] [--no-list] [--rest]

What it does is the text of the message, line by line, as at a fake place (`taskyard.testing.fake_remote`):
`/wait 0.1`, `/ask Which?`, `/fail why`, `/forever`, `/say words` (a status message), `/part words` (half a line),
`/data {"a": 1}`, `/replace words`, `/reject why`; any other line is appended to the artifact `out`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket

import uvicorn
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    Part,
    Role,
    Task,
    TaskState,
    TaskStatus,
)
from a2a.utils.errors import UnsupportedOperationError
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Value
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send


class Script(AgentExecutor):
    """Does what its prompt says."""

    def __init__(self, *, answers_at_once: bool) -> None:
        self.answers_at_once = answers_at_once
        self.left: dict[str, list[str]] = {}
        self.stopped: dict[str, asyncio.Event] = {}
        self.has_begun: set[str] = set()

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        text = context.get_user_input()
        if self.answers_at_once:
            answer = Message(message_id="m1", role=Role.ROLE_AGENT, parts=[Part(text=text.upper())])
            await event_queue.enqueue_event(answer)
            return
        task, where = context.task_id or "", context.context_id or ""
        updater = TaskUpdater(event_queue, task, where)
        if task not in self.left:
            self.left[task] = text.splitlines()
            first = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
            history = [context.message] if context.message is not None else []
            await event_queue.enqueue_event(Task(id=task, context_id=where, status=first, history=history))
        else:
            await self.say(updater, task, f"{text}\n")
        await updater.start_work()
        await self.go_on(updater, task)

    async def go_on(self, updater: TaskUpdater, task: str) -> None:
        left = self.left[task]
        while left:
            line = left.pop(0)
            verb, _, rest = line.partition(" ")
            act = getattr(self, f"do_{verb[1:]}", None) if verb.startswith("/") else None
            if act is None:
                await self.say(updater, task, f"{line}\n")
            elif not await act(updater, task, rest):
                return
        await updater.complete()

    async def do_wait(self, updater: TaskUpdater, task: str, rest: str) -> bool:
        await asyncio.sleep(float(rest))
        return True

    async def do_forever(self, updater: TaskUpdater, task: str, rest: str) -> bool:
        await self.stopped.setdefault(task, asyncio.Event()).wait()
        return False

    async def do_ask(self, updater: TaskUpdater, task: str, rest: str) -> bool:
        await updater.requires_input(updater.new_agent_message([Part(text=rest)]))
        return False

    async def do_fail(self, updater: TaskUpdater, task: str, rest: str) -> bool:
        await updater.failed(updater.new_agent_message([Part(text=rest)]) if rest else None)
        return False

    async def do_reject(self, updater: TaskUpdater, task: str, rest: str) -> bool:
        await updater.reject(updater.new_agent_message([Part(text=rest)]))
        return False

    async def do_say(self, updater: TaskUpdater, task: str, rest: str) -> bool:
        await updater.start_work(updater.new_agent_message([Part(text=rest)]))
        return True

    async def do_part(self, updater: TaskUpdater, task: str, rest: str) -> bool:
        await self.say(updater, task, rest)
        return True

    async def do_data(self, updater: TaskUpdater, task: str, rest: str) -> bool:
        await updater.add_artifact([Part(data=ParseDict(json.loads(rest), Value()))], artifact_id="data")
        return True

    async def do_replace(self, updater: TaskUpdater, task: str, rest: str) -> bool:
        await updater.add_artifact([Part(text=f"{rest}\n")], artifact_id="page")
        return True

    async def say(self, updater: TaskUpdater, task: str, text: str) -> None:
        await updater.add_artifact([Part(text=text)], artifact_id="out", append=task in self.has_begun)
        self.has_begun.add(task)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        self.stopped.setdefault(context.task_id or "", asyncio.Event()).set()
        await TaskUpdater(event_queue, context.task_id or "", context.context_id or "").cancel()


class Handler(DefaultRequestHandler):
    """As the SDK has it; without a list of tasks, if told so."""

    lists = True

    async def on_list_tasks(self, params: ListTasksRequest, context: object) -> ListTasksResponse:
        if not self.lists:
            raise UnsupportedOperationError
        return await super().on_list_tasks(params, context)  # type: ignore[no-any-return]


class Door:
    """Wants a token, but for the card."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app, self.token = app, f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_open = scope["type"] != "http" or scope["path"].startswith("/.well-known/")
        if is_open or self.token in dict(scope["headers"]).values():
            await self.app(scope, receive, send)
        else:
            await JSONResponse({"error": "unauthorized"}, 401)(scope, receive, send)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--token", default="")
    parser.add_argument("--message", action="store_true")
    parser.add_argument("--elsewhere", default="")
    parser.add_argument("--no-list", action="store_true")
    parser.add_argument("--rest", action="store_true")
    args = parser.parse_args()
    listening = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    binding, path = ("HTTP+JSON", "") if args.rest else ("JSONRPC", "/rpc")
    way = AgentInterface(url=(args.elsewhere or url) + path, protocol_binding=binding, protocol_version="1.0")
    card = AgentCard(
        name="runner",
        description="Does what it is told",
        version="1.2",
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        capabilities=AgentCapabilities(streaming=True),
        skills=[AgentSkill(id="run", name="run", description="Runs", tags=["run"])],
        supported_interfaces=[way],
    )
    handler = Handler(Script(answers_at_once=args.message), InMemoryTaskStore(), card)
    handler.lists = not args.no_list
    routes = [*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/rpc"), *create_rest_routes(handler)]
    app: ASGIApp = Starlette(routes=routes)
    if args.token:
        app = Door(app, args.token)
    print(url, flush=True)
    config = uvicorn.Config(app, log_level="error", access_log=False, timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
