"""One run of a model with tools, on pydantic-ai: requests and tool calls until the final answer.

Tools are `Files` (read, edit and write below one folder: bounded, atomic, nothing outside of it) and
everything else by Taskyard's own MCP server, started for the run. A refused tool call is answered with a
sentence that names what to do instead, since a model reads it. Requests are retried with backoff while the
provider is overloaded (`RetryingModel`), and incomplete answers are detected (`fault_in`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import stat
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from pydantic_ai import Agent
from pydantic_ai.exceptions import (
    AgentRunError,
    ContentFilterError,
    ModelAPIError,
    ModelConnectionError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelServerError,
    ModelUnavailableError,
    UsageLimitExceeded,
    UserError,
)
from pydantic_ai.messages import (
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelMessage,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse, infer_model
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.run import AgentRun
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import RunContext, Tool, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset
from pydantic_ai.toolsets.abstract import ToolsetTool
from pydantic_ai.usage import UsageLimits
from pydantic_core import SchemaValidator, core_schema

from taskyard import __version__, config
from taskyard.agents.engines import process, provider
from taskyard.agents.engines.engine import LONGEST_ANSWER, AnswerBuffer, Brief, RateLimit, TurnResult
from taskyard.agents.engines.model import CUSTOM, TRIAL
from taskyard.agents.engines.process import Program
from taskyard.core import files as storage_files
from taskyard.core.system import now_ms
from taskyard.errors import TaskyardError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.agents.engines.engine import Recorder


#: Maximum bytes of a file that is read or changed.
LARGEST = 10_000_000

#: Maximum lines and characters of one answer, and characters of one line.
_MOST_LINES, _MOST_CHARACTERS, _LONGEST_LINE = 2_000, 60_000, 2_000


class ToolRefused(Exception):
    """The tool call cannot be done; the message states why."""


class Files:
    """The files below one folder; below `reads`, files are only read."""

    def __init__(self, folder: str, reads: Sequence[str] = ()) -> None:
        self._folder = os.path.realpath(folder)
        self._reads = [os.path.realpath(each) for each in reads]
        self._write_lock = threading.Lock()  # a model may call several tools at once

    def read(self, file_path: str, offset: int = 1, limit: int = _MOST_LINES) -> str:
        """Lines of a text file with their numbers, from line `offset` on, at most `limit` of them.

        Raises:
            Refused: it is no text file in the folder.
        """
        lines = self._text(self._place(file_path, *self._reads)).split("\n")
        if lines[-1] == "":
            lines.pop()
        first = max(offset, 1)
        shown: list[str] = []
        room = _MOST_CHARACTERS
        for number, line in enumerate(lines[first - 1 : first - 1 + max(min(limit, _MOST_LINES), 1)], first):
            room -= min(len(line), _LONGEST_LINE) + 8
            if room < 0:
                break
            shown.append(f"{number:6}\t{line[:_LONGEST_LINE]}{'…' if len(line) > _LONGEST_LINE else ''}")
        if not lines:
            return "The file is empty."
        if not shown:
            return f"The file has {len(lines)} lines, none from {first} on."
        last = first + len(shown) - 1
        more = f"\n… lines {last + 1} to {len(lines)}: read on with offset {last + 1}." if last < len(lines) else ""
        return "\n".join(shown) + more

    def write(self, file_path: str, content: str) -> str:
        """Put `content` into a file, in place of whatever it held; folders on the way are made.

        Raises:
            Refused: it is no place for a file in the folder.
        """
        path = self._place(file_path)
        with self._write_lock:
            existed = os.path.lexists(path)
            self._put(path, content)
        return f"{'Replaced' if existed else 'Created'} {file_path}."

    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> str:
        """Replace a piece of a text file by another. It must be there exactly once, unless all are replaced.

        Raises:
            Refused: it is not, or the file is none in the folder.
        """
        path = self._place(file_path)
        if not old_string:
            raise ToolRefused("old_string is empty: give the exact text to replace, or use Write.")
        if old_string == new_string:
            raise ToolRefused("old_string and new_string are the same: nothing would change.")
        with self._write_lock:
            text = self._text(path)
            count = text.count(old_string)
            if count == 0:
                raise ToolRefused(
                    f"old_string is not in {file_path}. Read it, and give the exact text with its spaces."
                )
            if count > 1 and not replace_all:
                raise ToolRefused(
                    f"old_string is in {file_path} {count} times. Give more of the text, or set replace_all."
                )
            self._put(path, text.replace(old_string, new_string))
        return f"Changed {file_path} in {count} place{'s' if count > 1 else ''}."

    def _place(self, file_path: str, *others: str) -> str:
        """Return the real path of a file in the folder, or in one of the `others`."""
        if not file_path or "\0" in file_path:
            raise ToolRefused("file_path is empty or has a zero byte in it.")
        path = os.path.realpath(os.path.join(self._folder, os.path.expanduser(file_path)))
        if not any(
            path != folder and os.path.commonpath([path, folder]) == folder for folder in (self._folder, *others)
        ):
            raise ToolRefused(f"{file_path} is not inside {self._folder}. Use Bash for what is elsewhere.")
        return path

    def _text(self, path: str) -> str:
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):
                raise ToolRefused(f"{path} is no plain file.")
            data = storage_files.read(path, most=LARGEST)
        except FileNotFoundError:
            data = None
        except OSError as error:
            raise ToolRefused(f"{path} cannot be read: {error.strerror}.") from error
        except TaskyardError as error:
            raise ToolRefused(str(error)) from error
        if data is None:
            raise ToolRefused(f"There is no file {path}.")
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise ToolRefused(f"{path} is no text in UTF-8. Use Bash to look at it.") from error

    def _put(self, path: str, content: str) -> None:
        """Write a temporary file, then rename it: no reader ever sees half of it."""
        try:
            data = content.encode()
        except UnicodeEncodeError as error:
            raise ToolRefused("The text has half a character in it, which no file can hold.") from error
        if len(data) > LARGEST:
            raise ToolRefused(f"That is more than {LARGEST:,} bytes.")
        beside = f"{path}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
        try:
            mode = _mode_of(path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            storage_files.create(beside, data, mode=0o666)
            try:
                if mode is not None:
                    os.chmod(beside, mode)
                os.rename(beside, path)
            except OSError:
                os.unlink(beside)
                raise
        except OSError as error:
            raise ToolRefused(f"{path} cannot be written: {error.strerror}.") from error
        except TaskyardError as error:
            raise ToolRefused(str(error)) from error


def _mode_of(path: str) -> int | None:
    """Return the mode of an existing file, to preserve it; None if there is none yet."""
    try:
        found = os.stat(path).st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found):
        raise ToolRefused(f"{path} is no plain file.")
    return stat.S_IMODE(found)


P = ParamSpec("P")

#: Timeout in seconds of one tool call: somewhat longer than the longest wait that a tool offers.
_TOOL_TIMEOUT = 660.0

#: Invalid tool calls in a row before the run fails.
MOST_FAULTS = 10

#: The server validates arguments itself, and answers with a sentence about what is wrong.
_ANY_OBJECT = SchemaValidator(core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema()))


class ToolsLost(Exception):
    """The tool server is gone."""


def file_tools(brief: Brief) -> FunctionToolset[object]:
    """Return Read, and unless the mode forbids it Edit and Write, below the agent's folder."""
    found = Files(brief.cwd, brief.reads)
    acts: dict[str, Callable[..., str]] = {"Read": found.read}
    if brief.permissions != "ask":
        acts |= {"Edit": found.edit, "Write": found.write}
    tools = [
        Tool(_refusal_as_answer(act), name=name, description=f"{(act.__doc__ or '').split('Raises:')[0].strip()}")
        for name, act in acts.items()
    ]
    return FunctionToolset(tools, id="files")


def _refusal_as_answer(act: Callable[P, str]) -> Callable[P, str]:
    """Wrap a tool so that a refusal becomes its answer."""

    @wraps(act)
    def answer(*args: P.args, **kwargs: P.kwargs) -> str:
        try:
            return act(*args, **kwargs)
        except ToolRefused as refusal:
            return f"Refused: {refusal}"

    return answer


@asynccontextmanager
async def own_tools(brief: Brief, watcher: Recorder) -> AsyncGenerator[OwnTools]:
    """Run our own MCP server for the length of a `with` block and yield its tools.

    Raises:
        OSError, ExceptionGroup: it cannot be started.
    """
    program = await Program.start(provider.server_command(brief), provider.restrict_tools(brief), watcher)
    async with program, anyio.create_task_group() as group:
        said, heard = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, to_send = anyio.create_memory_object_stream[SessionMessage](0)
        group.start_soon(_read, program, said)
        group.start_soon(_write, program, to_send)
        info = types.Implementation(name="taskyard-agent", version=__version__)
        client = Client(
            _as_transport((heard, outgoing)),
            read_timeout_seconds=config.load_settings().agent_start,
            client_info=info,
            cache=None,
        )
        async with client:
            yield OwnTools(client, (await client.list_tools()).tools)
        await program.hang_up()
        group.cancel_scope.cancel()


class OwnTools(AbstractToolset[object]):
    """The server's tools as a pydantic-ai toolset."""

    def __init__(self, client: Client, tools: Sequence[types.Tool]) -> None:
        self._client = client
        self._tools = tools

    @property
    def id(self) -> str:
        """The toolset's name."""
        return "taskyard"

    async def get_tools(self, ctx: RunContext[object]) -> dict[str, ToolsetTool[object]]:
        """Return all tools."""
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
        """Return the server's answer, also a refusal: the model reads what to do next."""
        try:
            answer = await self._client.call_tool(name, tool_args, read_timeout_seconds=_TOOL_TIMEOUT)
        except MCPError as error:
            raise ToolsLost(str(error)) from error
        return "\n\n".join(block.text for block in answer.content if isinstance(block, types.TextContent))


@asynccontextmanager
async def _as_transport(streams: TransportStreams) -> AsyncGenerator[TransportStreams]:
    """Wrap streams as a transport, which the client opens and closes."""
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
                return  # the reader is gone


async def _write(program: Program, to_send: MemoryObjectReceiveStream[SessionMessage]) -> None:
    async with to_send:
        async for message in to_send:
            await program.say(message.message.model_dump_json(by_alias=True, exclude_unset=True) + "\n")


#: Models of these modules, and subclasses, report a finish reason. A stream that ends without one was cut.
_FINISH_REASON_MODULES = tuple(
    f"pydantic_ai.models.{name}" for name in ("openai", "anthropic", "google", "groq", "mistral", "bedrock")
)


def fault_in(response: ModelResponse, model: Model) -> TurnResult | None:
    """Return the failed result for an incomplete answer; None if it is complete."""
    text = response.text or ""
    if response.finish_reason == "length":
        return TurnResult(text, "its answer was cut at the most tokens the model gives in one")
    if response.finish_reason == "content_filter":
        return TurnResult(text, "its answer was held back by a filter of the provider")
    if response.finish_reason == "error" or response.state != "complete" or _is_cut(response, model):
        return TurnResult(text, "its answer broke off in the middle", is_retryable=True)
    return None


def _is_cut(response: ModelResponse, model: Model) -> bool:
    return _reports_finish_reason(model) and not (response.provider_details or {}).get("finish_reason")


def _reports_finish_reason(model: Model) -> bool:
    """Return whether a model, or every model it consists of, reports a finish reason."""
    if isinstance(model, FallbackModel):
        return all(_reports_finish_reason(inner) for inner in model.models)
    if isinstance(model, WrapperModel):
        return _reports_finish_reason(model.wrapped)
    return any(base.__module__.startswith(_FINISH_REASON_MODULES) for base in type(model).__mro__)


T = TypeVar("T")

#: Maximum attempts of one request, and seconds of waiting in all: then the turn fails, and may be retried
#: later.
MOST_TRIES = 8
MOST_SECONDS = 600.0

#: Backoff in seconds before the second attempt if the provider names no time, doubled each time; and its
#: maximum.
_FIRST, _LONGEST = 1.0, 60.0

#: Maximum characters of an error message.
_LONGEST_RETRY_REASON = 300

_LIMITS = (ModelRateLimitError, ModelUnavailableError)
_RETRYABLE = (*_LIMITS, ModelServerError, ModelConnectionError)


def retry_delay(tries: int, waited: float, asked: float | None, jitter: float) -> float | None:
    """Return seconds until the next attempt, None if there is none: pure.

    Args:
        tries: Attempts so far.
        waited: Seconds waited so far.
        asked: Seconds the provider asks for: never less than these.
        jitter: From 0 to 1, so that many clients with the same delay do not retry at once.
    """
    if tries >= MOST_TRIES:
        return None
    if asked is not None:
        seconds = max(asked, 0.0) * (1 + jitter / 4) + jitter / 4
    else:
        seconds = min(_LONGEST, _FIRST * 2 ** (tries - 1)) * (0.5 + jitter / 2)
    return seconds if waited + seconds <= MOST_SECONDS else None


class RetryingModel(WrapperModel):
    """A model that retries requests while its provider is overloaded; a started answer is never retried."""

    def __init__(self, wrapped: Model, watcher: Recorder) -> None:
        super().__init__(wrapped)
        self._watcher = watcher

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Return one complete answer."""
        return await self._with_retries(
            lambda: self.wrapped.request(messages, model_settings, model_request_parameters)
        )

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Stream one answer."""
        async with AsyncExitStack() as stack:
            yield await self._with_retries(
                lambda: stack.enter_async_context(
                    self.wrapped.request_stream(messages, model_settings, model_request_parameters, run_context)
                )
            )

    async def _with_retries(self, ask: Callable[[], Awaitable[T]]) -> T:
        tries, waited = 0, 0.0
        while True:
            tries += 1
            try:
                return await ask()
            except _RETRYABLE as error:
                jitter = random.random()  # noqa: S311 - spreads load, keeps no secret
                seconds = retry_delay(tries, waited, error.retry_after, jitter)
                if seconds is None:
                    raise
                self._tell(error, seconds)
            await asyncio.sleep(seconds)
            waited += seconds

    def _tell(self, error: ModelAPIError, seconds: float) -> None:
        why = str(error)[:_LONGEST_RETRY_REASON]
        if isinstance(error, _LIMITS):
            self._watcher.limited(seconds, why)
        else:
            self._watcher.record({"type": "retry", "seconds": round(seconds, 3), "text": why})


#: Maximum requests of one agent: one that loops must end at some point.
_MOST_REQUESTS = 1_000

#: Maximum characters of a tool result in the transcript, and of an error.
_LONGEST_RESULT, _LONGEST_ERROR = 20_000, 1_000

#: Errors that no retry fixes.
_FINAL = (ModelRequestRejectedError, ModelQuotaExceededError, ContentFilterError, UsageLimitExceeded)

#: Tools that the trial model calls: read-only.
_TRIAL_TOOLS = ("TaskList",)

_INSTRUCTIONS = """\
You are an agent that works on its own, in the background, in the folder {folder}. Nobody watches: do what you are asked
for, look at what came of it, and say in your last message what you did and found. That message is your whole answer.
Use Read, Edit and Write for files in this folder, and Bash for everything else. The Task tools are a list that you
share with other agents: keep it true if your work is on it."""


class ConversationState:
    """State that outlives one run of an agent that continues later."""

    def __init__(self) -> None:
        self.messages: Sequence[ModelMessage] = ()


async def run(brief: Brief, watcher: Recorder, memory: ConversationState) -> TurnResult:
    """Run the model and return the result. Continues the conversation in `memory`."""
    process.quiet_libraries()
    try:
        model = _model(brief.model or "", own_tools=brief.own_tools)
    except (UserError, ImportError, AttributeError, TypeError, ValueError) as error:
        return TurnResult(error=f"the model {brief.model} cannot be used: {str(error)[:_LONGEST_ERROR]}")
    files = file_tools(brief)
    if not brief.own_tools:
        return await _Conversation(brief, watcher, model, [files]).work(memory)
    async with contextlib.AsyncExitStack() as stack:
        try:
            ours = await stack.enter_async_context(own_tools(brief, watcher))
        except (OSError, ExceptionGroup) as error:
            return TurnResult(error=f"its tools cannot be started: {_root_error(error)}", is_retryable=True)
        return await _Conversation(brief, watcher, model, [files, ours]).work(memory)


def _root_error(error: BaseException) -> str:
    """Return the innermost error of an exception group."""
    found = error
    while isinstance(found, BaseExceptionGroup):
        found = cast("BaseExceptionGroup[BaseException]", found).exceptions[0]
    return str(found)[:_LONGEST_ERROR] or type(found).__name__


class _Conversation:
    """One run of the model."""

    def __init__(
        self, brief: Brief, watcher: Recorder, model: Model, toolsets: Sequence[AbstractToolset[object]]
    ) -> None:
        self._brief = brief
        self._watcher = watcher
        self._model = model
        self._answer_buffer = AnswerBuffer(watcher)
        self._agent = Agent(
            RetryingModel(model, watcher),
            name="taskyard",
            instructions=_INSTRUCTIONS.format(folder=brief.cwd),
            toolsets=toolsets,
            retries={"tools": MOST_FAULTS, "output": 3},
        )

    async def work(self, memory: ConversationState) -> TurnResult:
        """Return the answer, or why there is none."""
        try:
            async with self._agent:  # closes its connections
                return await self._run_to_end(memory)
        except (ModelRateLimitError, ModelUnavailableError) as error:
            return self._limited(error)
        except _FINAL as error:
            return TurnResult(self._answer_buffer.answer, str(error)[:_LONGEST_ERROR])
        except AgentRunError as error:
            return TurnResult(self._answer_buffer.answer, str(error)[:_LONGEST_ERROR], is_retryable=True)
        except UserError as error:
            return TurnResult(error=f"the model {self._brief.model} cannot be used so: {str(error)[:_LONGEST_ERROR]}")
        except ToolsLost as error:
            return TurnResult(error=f"its tools are gone: {str(error)[:_LONGEST_ERROR]}", is_retryable=True)
        finally:
            self._answer_buffer.pause()

    def _limited(self, error: ModelRateLimitError | ModelUnavailableError) -> TurnResult:
        """Return a rate-limited result, to be resumed later: the provider refused longer than a request waits."""
        seconds = error.retry_after
        until = None if seconds is None else now_ms() + round(max(seconds, 0.0) * 1000)
        maker = (self._brief.model or "").partition(":")[0]
        return TurnResult(self._answer_buffer.answer, rate_limit=RateLimit(maker, str(error)[:_LONGEST_ERROR], until))

    async def _run_to_end(self, memory: ConversationState) -> TurnResult:
        # `RetryingModel` retries, and reports it.
        settings = ModelSettings(max_retries=0, timeout=config.load_settings().agent_silence)
        async with self._agent.iter(
            self._brief.prompt,
            message_history=memory.messages or None,
            usage_limits=UsageLimits(request_limit=_MOST_REQUESTS),
            model_settings=settings,
        ) as run:
            passing = asyncio.create_task(self._pass_on(run))
            try:
                async for node in run:
                    if Agent.is_model_request_node(node):
                        await self._listen(node, run)
                    elif Agent.is_call_tools_node(node):
                        if (fault := self._check_response(node.model_response, run)) is not None:
                            return fault
                        await self._use_tools(node, run)
            finally:
                passing.cancel()
                memory.messages = run.all_messages()
            assert run.result is not None
            return TurnResult(str(run.result.output)[-LONGEST_ANSWER:])

    async def _pass_on(self, run: AgentRun[object, Any]) -> None:
        """Add messages sent to the agent while it works to its next request."""
        async for text in self._watcher.messages():
            self._watcher.record({"type": "user", "text": text})
            with contextlib.suppress(UserError):  # the run has just ended
                run.enqueue(text)

    async def _listen(self, node: Any, run: AgentRun[object, Any]) -> None:
        """Read an answer as it streams."""
        async with node.stream(run.ctx) as stream:
            async for event in stream:
                if isinstance(event, PartStartEvent) and isinstance(event.part, (TextPart, ThinkingPart)):
                    self._add_text(event.part.content, is_thought=isinstance(event.part, ThinkingPart))
                elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, (TextPartDelta, ThinkingPartDelta)):
                    self._add_text(event.delta.content_delta, is_thought=isinstance(event.delta, ThinkingPartDelta))

    def _add_text(self, text: str | None, *, is_thought: bool) -> None:
        self._answer_buffer.says(text or "", kind="thought" if is_thought else "assistant")

    def _check_response(self, response: ModelResponse, run: AgentRun[object, Any]) -> TurnResult | None:
        """Count an answer; return its fault if it is incomplete: then none of its tools is used."""
        usage = response.usage
        self._watcher.used_tokens({"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens})
        if run.usage.cost is not None:
            self._watcher.costs(float(run.usage.cost))
        return fault_in(response, self._model)

    async def _use_tools(self, node: Any, run: AgentRun[object, Any]) -> None:
        async with node.stream(run.ctx) as events:
            async for event in events:
                if isinstance(event, FunctionToolCallEvent):
                    self._answer_buffer.acts()
                    name, given = event.part.tool_name, _tool_args(event)
                    self._watcher.record({"type": "tool_use", "id": event.tool_call_id, "name": name, "input": given})
                    self._watcher.used_tool(name, given)
                elif isinstance(event, FunctionToolResultEvent):
                    text = str(event.part.content)[:_LONGEST_RESULT]
                    self._watcher.record({"type": "tool_result", "id": event.tool_call_id, "text": text})


def _tool_args(event: FunctionToolCallEvent) -> dict[str, Any]:
    """Return a tool's arguments; if they are invalid, the text."""
    try:
        return event.part.args_as_dict()
    except (ValueError, AssertionError):
        return {"text": str(event.part.args)[:_LONGEST_ERROR]}


def _model(name: str, *, own_tools: bool) -> Model:
    """Return the model of a name. The trial model calls only our read-only tool, if it has ours.

    Raises:
        UserError, ImportError, AttributeError, TypeError, ValueError: it is not available; states why.
    """
    lead, _, place = name.partition(":")
    if name == TRIAL:
        from pydantic_ai.models.test import TestModel

        return TestModel(call_tools=list(_TRIAL_TOOLS) if own_tools else [])
    if lead != CUSTOM:
        return infer_model(name)
    from importlib import import_module

    module, _, attribute = place.partition(":")
    found: Model[Any] = getattr(import_module(module), attribute)
    if not _is_model(found):
        raise TypeError(f"{place} is not a pydantic-ai model")
    return found


def _is_model(value: object) -> bool:
    return isinstance(value, Model)
