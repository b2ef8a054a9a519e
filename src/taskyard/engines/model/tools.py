"""What a model can do: files by `files`, everything else by our own MCP server, which is started for it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import wraps
from typing import Any, ParamSpec

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from pydantic_ai.tools import RunContext, Tool, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset
from pydantic_ai.toolsets.abstract import ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from taskyard import __version__, config
from taskyard.engines import own_server
from taskyard.engines.engine import Brief
from taskyard.engines.model.files import Files, Refused
from taskyard.engines.process import Program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.engines.engine import Watcher

P = ParamSpec("P")

#: Seconds for one answer: somewhat longer than the longest wait that a tool offers.
_PATIENCE = 660.0

#: Tool calls in a row that may not fit, before the run is given up.
MOST_FAULTS = 10

#: The server checks arguments itself, and says in a sentence what does not fit.
_ANY_OBJECT = SchemaValidator(core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema()))


class ToolsLost(Exception):
    """The server is gone."""


def file_tools(brief: Brief) -> FunctionToolset[object]:
    """Read, and unless its mode forbids it Edit and Write, below the agent's folder."""
    found = Files(brief.cwd, brief.reads)
    acts: dict[str, Callable[..., str]] = {"Read": found.read}
    if brief.permissions != "ask":
        acts |= {"Edit": found.edit, "Write": found.write}
    tools = [
        Tool(_answering(act), name=name, description=f"{(act.__doc__ or '').split('Raises:')[0].strip()}")
        for name, act in acts.items()
    ]
    return FunctionToolset(tools, id="files")


def _answering(act: Callable[P, str]) -> Callable[P, str]:
    """The same, with a refusal as an answer."""

    @wraps(act)
    def answer(*args: P.args, **kwargs: P.kwargs) -> str:
        try:
            return act(*args, **kwargs)
        except Refused as refusal:
            return f"Refused: {refusal}"

    return answer


@asynccontextmanager
async def own_tools(brief: Brief, watcher: Watcher) -> AsyncGenerator[OwnTools]:
    """The tools of our own server, for the length of a `with` block.

    Raises:
        OSError, ExceptionGroup: it cannot be started.
    """
    program = await Program.start(own_server.words(brief), own_server.permitted(brief), watcher)
    async with program, anyio.create_task_group() as group:
        said, heard = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, to_send = anyio.create_memory_object_stream[SessionMessage](0)
        group.start_soon(_read, program, said)
        group.start_soon(_write, program, to_send)
        info = types.Implementation(name="taskyard-agent", version=__version__)
        client = Client(
            _of((heard, outgoing)), read_timeout_seconds=config.load().agent_start, client_info=info, cache=None
        )
        async with client:
            yield OwnTools(client, (await client.list_tools()).tools)
        await program.hang_up()
        group.cancel_scope.cancel()


class OwnTools(AbstractToolset[object]):
    """What the server offers, as pydantic-ai has tools."""

    def __init__(self, client: Client, tools: Sequence[types.Tool]) -> None:
        self._client = client
        self._tools = tools

    @property
    def id(self) -> str:
        """Its name among toolsets."""
        return "taskyard"

    async def get_tools(self, ctx: RunContext[object]) -> dict[str, ToolsetTool[object]]:
        """All of them."""
        return {
            tool.name: ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(
                    name=tool.name, description=tool.description, parameters_json_schema=tool.input_schema
                ),
                max_retries=MOST_FAULTS,
                args_validator=_ANY_OBJECT,
            )
            for tool in self._tools
        }

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[object], tool: ToolsetTool[object]
    ) -> str:
        """What the server answers, a refusal too: a model reads what to do next."""
        try:
            answer = await self._client.call_tool(name, tool_args, read_timeout_seconds=_PATIENCE)
        except MCPError as error:
            raise ToolsLost(str(error)) from error
        return "\n\n".join(block.text for block in answer.content if isinstance(block, types.TextContent))


@asynccontextmanager
async def _of(streams: TransportStreams) -> AsyncGenerator[TransportStreams]:
    """Streams as a transport, which the client opens and closes."""
    try:
        yield streams
    finally:
        for stream in streams:
            await stream.aclose()


async def _read(program: Program, said: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
    async with said:
        async for line in program.lines():
            try:
                message = SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
            except ValueError as error:
                await said.send(error)
                continue
            try:
                await said.send(message)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return  # nobody listens any more


async def _write(program: Program, to_send: MemoryObjectReceiveStream[SessionMessage]) -> None:
    async with to_send:
        async for message in to_send:
            await program.say(message.message.model_dump_json(by_alias=True, exclude_unset=True) + "\n")
