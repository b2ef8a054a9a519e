"""One run of a model with tools: requests, answers, tools, until it has its answer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any, cast

from pydantic_ai import Agent
from pydantic_ai.exceptions import (
    AgentRunError,
    ContentFilterError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
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
from pydantic_ai.models import Model, infer_model
from pydantic_ai.run import AgentRun
from pydantic_ai.settings import ModelSettings
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.usage import UsageLimits

from taskyard import config
from taskyard.clock import now_ms
from taskyard.engines import quiet
from taskyard.engines.engine import Brief, RateLimit, Said
from taskyard.engines.model.finishing import fault_in
from taskyard.engines.model.patience import Patient
from taskyard.engines.model.providers import OWN, TRIAL
from taskyard.engines.model.tools import MOST_FAULTS, ToolsLost, file_tools, own_tools
from taskyard.engines.speech import LONGEST_ANSWER, Speech

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.engines.engine import Watcher

#: Requests of one agent: one that goes round in circles must end some time.
_MOST_REQUESTS = 1_000

#: Characters of what a tool gave back, in the transcript, and of an error.
_LONGEST_RESULT, _LONGEST_WHY = 20_000, 1_000

#: What no second try makes better.
_FINAL = (ModelRequestRejectedError, ModelQuotaExceededError, ContentFilterError, UsageLimitExceeded)

#: What the model of trials calls: a tool that only reads.
_TRIED = ("TaskList",)

_INSTRUCTIONS = """\
You are an agent that works on its own, in the background, in the folder {folder}. Nobody watches: do what you are asked
for, look at what came of it, and say in your last message what you did and found. That message is your whole answer.
Use Read, Edit and Write for files in this folder, and Bash for everything else. The Task tools are a list that you
share with other agents: keep it true if your work is on it."""


class Memory:
    """What outlives one run of an agent that is sent on."""

    def __init__(self) -> None:
        self.messages: Sequence[ModelMessage] = ()


async def run(brief: Brief, watcher: Watcher, memory: Memory) -> Said:
    """What came of it. The conversation in `memory` is the one to go on with."""
    quiet.keep_libraries_quiet()
    try:
        model = _model(brief.model or "", own_tools=brief.own_tools)
    except (UserError, ImportError, AttributeError, TypeError, ValueError) as error:
        return Said(error=f"the model {brief.model} cannot be used: {str(error)[:_LONGEST_WHY]}")
    files = file_tools(brief)
    if not brief.own_tools:
        return await _Conversation(brief, watcher, model, [files]).work(memory)
    async with contextlib.AsyncExitStack() as stack:
        try:
            ours = await stack.enter_async_context(own_tools(brief, watcher))
        except (OSError, ExceptionGroup) as error:
            return Said(error=f"its tools cannot be started: {_first(error)}", is_retryable=True)
        return await _Conversation(brief, watcher, model, [files, ours]).work(memory)


def _first(error: BaseException) -> str:
    """What went wrong, without the tasks it went wrong in."""
    found = error
    while isinstance(found, BaseExceptionGroup):
        found = cast("BaseExceptionGroup[BaseException]", found).exceptions[0]
    return str(found)[:_LONGEST_WHY] or type(found).__name__


class _Conversation:
    """One run."""

    def __init__(
        self, brief: Brief, watcher: Watcher, model: Model, toolsets: Sequence[AbstractToolset[object]]
    ) -> None:
        self._brief = brief
        self._watcher = watcher
        self._model = model
        self._speech = Speech(watcher)
        self._agent = Agent(
            Patient(model, watcher),
            name="taskyard",
            instructions=_INSTRUCTIONS.format(folder=brief.cwd),
            toolsets=toolsets,
            retries={"tools": MOST_FAULTS, "output": 3},
        )

    async def work(self, memory: Memory) -> Said:
        """Its answer, or why there is none."""
        try:
            async with self._agent:  # its connections end with it
                return await self._to_the_end(memory)
        except (ModelRateLimitError, ModelUnavailableError) as error:
            return self._limited(error)
        except _FINAL as error:
            return Said(self._speech.answer, str(error)[:_LONGEST_WHY])
        except AgentRunError as error:
            return Said(self._speech.answer, str(error)[:_LONGEST_WHY], is_retryable=True)
        except UserError as error:
            return Said(error=f"the model {self._brief.model} cannot be used so: {str(error)[:_LONGEST_WHY]}")
        except ToolsLost as error:
            return Said(error=f"its tools are gone: {str(error)[:_LONGEST_WHY]}", is_retryable=True)
        finally:
            self._speech.pause()

    def _limited(self, error: ModelRateLimitError | ModelUnavailableError) -> Said:
        """Its provider refused it for longer than a request is worth a wait: the turn goes on when it can."""
        seconds = error.retry_after
        until = None if seconds is None else now_ms() + round(max(seconds, 0.0) * 1000)
        maker = (self._brief.model or "").partition(":")[0]
        return Said(self._speech.answer, rate_limit=RateLimit(maker, str(error)[:_LONGEST_WHY], until))

    async def _to_the_end(self, memory: Memory) -> Said:
        settings = ModelSettings(max_retries=0, timeout=config.load().agent_silence)  # `Patient` tries again, and tells
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
                        if (fault := self._heard_out(node.model_response, run)) is not None:
                            return fault
                        await self._use_tools(node, run)
            finally:
                passing.cancel()
                memory.messages = run.all_messages()
            assert run.result is not None
            return Said(str(run.result.output)[-LONGEST_ANSWER:])

    async def _pass_on(self, run: AgentRun[object, Any]) -> None:
        """What is sent to the agent while it works is in its next request."""
        async for text in self._watcher.messages():
            self._watcher.record({"type": "user", "text": text})
            with contextlib.suppress(UserError):  # it has just come to its end
                run.enqueue(text)

    async def _listen(self, node: Any, run: AgentRun[object, Any]) -> None:
        """Take in an answer as it comes."""
        async with node.stream(run.ctx) as stream:
            async for event in stream:
                if isinstance(event, PartStartEvent) and isinstance(event.part, (TextPart, ThinkingPart)):
                    self._says(event.part.content, is_thought=isinstance(event.part, ThinkingPart))
                elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, (TextPartDelta, ThinkingPartDelta)):
                    self._says(event.delta.content_delta, is_thought=isinstance(event.delta, ThinkingPartDelta))

    def _says(self, text: str | None, *, is_thought: bool) -> None:
        self._speech.says(text or "", kind="thought" if is_thought else "assistant")

    def _heard_out(self, response: ModelResponse, run: AgentRun[object, Any]) -> Said | None:
        """Count an answer; what is wrong with it, if it is not whole: then none of its tools is used."""
        usage = response.usage
        self._watcher.used_tokens({"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens})
        if run.usage.cost is not None:
            self._watcher.costs(float(run.usage.cost))
        return fault_in(response, self._model)

    async def _use_tools(self, node: Any, run: AgentRun[object, Any]) -> None:
        async with node.stream(run.ctx) as events:
            async for event in events:
                if isinstance(event, FunctionToolCallEvent):
                    self._speech.acts()
                    name, given = event.part.tool_name, _given(event)
                    self._watcher.record({"type": "tool_use", "id": event.tool_call_id, "name": name, "input": given})
                    self._watcher.used_tool(name, given)
                elif isinstance(event, FunctionToolResultEvent):
                    text = str(event.part.content)[:_LONGEST_RESULT]
                    self._watcher.record({"type": "tool_result", "id": event.tool_call_id, "text": text})


def _given(event: FunctionToolCallEvent) -> dict[str, Any]:
    """What a tool was given; of what cannot be read, the text."""
    try:
        return event.part.args_as_dict()
    except (ValueError, AssertionError):
        return {"text": str(event.part.args)[:_LONGEST_WHY]}


def _model(name: str, *, own_tools: bool) -> Model:
    """The model of a name. That of trials calls only the one tool of ours that changes nothing, if it has ours.

    Raises:
        UserError, ImportError, AttributeError, TypeError, ValueError: it cannot be had, and why.
    """
    lead, _, place = name.partition(":")
    if name == TRIAL:
        from pydantic_ai.models.test import TestModel

        return TestModel(call_tools=list(_TRIED) if own_tools else [])
    if lead != OWN:
        return infer_model(name)
    from importlib import import_module

    module, _, attribute = place.partition(":")
    found: Model[Any] = getattr(import_module(module), attribute)
    if not _is_model(found):
        raise TypeError(f"{place} is no model of pydantic-ai")
    return found


def _is_model(value: object) -> bool:
    return isinstance(value, Model)
