"""The Tasks extension from a client's side: it looks after tasks by itself, so that calls just take longer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import anyio
from mcp.client.client import Client
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.client.session import ClientSession
from mcp_types import CallToolResult, Request, RequestParams, Result, TextContent
from pydantic import ConfigDict

IDENTIFIER = "io.modelcontextprotocol/tasks"

#: What is answered to a question: its message in, the client's response out; None: look again without an answer.
Answer = Callable[[str], Mapping[str, object] | None]


class Created(Result):
    """A task in the place of an answer."""

    model_config = ConfigDict(extra="allow")

    result_type: Literal["task"] = "task"
    task_id: str
    status: str
    ttl_ms: int | None
    poll_interval_ms: int


class State(Result):
    """How a task stands, as it came."""

    model_config = ConfigDict(extra="allow")

    def __getitem__(self, name: str) -> Any:
        return (self.model_extra or {}).get(name)


class Params(RequestParams):
    """Whatever a request says."""

    model_config = ConfigDict(extra="allow")


class Asked(Request[Params, str]):
    """A request of the extension."""

    name_param = "taskId"


async def ask(session: ClientSession, method: str, task_id: str, **more: object) -> State:
    """Send `tasks/get` and the like."""
    params = Params.model_validate({"taskId": task_id, **more})
    return await session.send_request(Asked(method=method, params=params), State)


async def until(session: ClientSession, task_id: str, *statuses: str) -> State:
    """The task once it has one of these states."""
    while (found := await ask(session, "tasks/get", task_id))["status"] not in statuses:  # noqa: ASYNC110  # as the extension has it
        await anyio.sleep(0.02)
    return found


async def put_off(client: Client, name: str, arguments: dict[str, object]) -> Created:
    """Call a tool that takes longer; the task it is answered with."""
    found = await client.session.call_tool(name, arguments, allow_claimed=True)
    assert isinstance(found, Created), found
    return found


class Tasks(ClientExtension):
    """Waits for tasks, and answers what they ask."""

    identifier = IDENTIFIER

    def __init__(self, answer: Answer | None = None) -> None:
        self._answer = answer
        self.created: list[Created] = []  #: what was answered with a task
        self.first = anyio.Event()  #: something was
        self.asked: dict[str, str] = {}  #: what was asked, by its key

    def claims(self) -> Sequence[ResultClaim[Any]]:
        """Answers that are tasks."""
        return [ResultClaim(result_type="task", model=Created, resolve=self._resolve)]

    async def _resolve(self, created: Created, context: ClaimContext) -> CallToolResult:
        self.created.append(created)
        self.first.set()
        while True:
            state = await ask(context.session, "tasks/get", created.task_id)
            if state["status"] == "completed":
                return CallToolResult.model_validate(state["result"])
            if state["status"] == "cancelled":
                text = TextContent(type="text", text=state["statusMessage"])
                return CallToolResult(content=[text], is_error=True)
            await self._reply(created.task_id, state, context.session)
            await anyio.sleep(min(state["pollIntervalMs"] / 1000, 0.05))

    async def _reply(self, task_id: str, state: State, session: ClientSession) -> None:
        for key, request in (state["inputRequests"] or {}).items():
            message = request["params"]["message"]
            self.asked[key] = message
            response = self._answer(message) if self._answer is not None else None
            if response is not None:
                await ask(session, "tasks/update", task_id, inputResponses={key: response})
