"""What an agent tells in the middle of a turn, and asks: to the transcript, the counts, whoever can answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
from acp.schema import (
    AllowedOutcome,
    DeniedOutcome,
    PermissionOption,
    RequestPermissionResponse,
    ToolCallUpdate,
)
from pydantic import BaseModel

from taskyard.engines.acp import permission
from taskyard.engines.speech import Speech
from taskyard.shapes import as_list, as_object, as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.engines.engine import Watcher

#: Characters of what a tool gave back, in the transcript.
_LONGEST_RESULT = 20_000

#: Characters of the name of a tool: agents write a sentence there.
_LONGEST_NAME = 200

#: Tool calls that are remembered by their id; an agent that makes more of them is counted twice for some.
_MOST_CALLS = 10_000

#: Questions that wait for an answer: nobody answers more, and none of them is allowed by itself.
_MOST_WAITING = 50

#: How often somebody is asked again whose answer is none of the options.
_MOST_ASKING = 3


class Memory:
    """What outlives one run of an agent that is sent on."""

    def __init__(self, session: str | None = None) -> None:
        self.session = session  #: to go on with
        self.is_ours = False  #: it was begun by us, and no more is lost with it than what we said
        self.cost = 0.0  #: what that had cost when we last heard of it, in USD


class Updates:
    """What the protocol's library hands to a client (`acp.interfaces.Client`)."""

    def __init__(self, watcher: Watcher, memory: Memory) -> None:
        self._watcher = watcher
        self._memory = memory
        self._turn = anyio.Lock()  # one question at a time: an answer has no name on it
        self._calls: set[str] = set()
        self._cost_before = 0.0
        self.speech = Speech(watcher)
        self.asking = 0  #: questions that wait for somebody
        self.is_muted = False  #: it only repeats what was said before
        self.tells_usage = False

    def goes_on(self) -> None:
        """The session is the one there was: what that had cost is known."""
        self._cost_before = self._memory.cost

    def begin(self) -> None:
        """A turn begins."""
        self.speech = Speech(self._watcher)

    async def session_update(self, session_id: str, update: BaseModel, **_: Any) -> None:
        """Take in one update."""
        if self.is_muted:
            return
        raw: Mapping[str, Any] = update.model_dump(mode="json", by_alias=True, exclude_none=True)
        act = _ACTS.get(as_text(raw.get("sessionUpdate")))
        if act is not None:
            act(self, raw)

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        """Have somebody decide; if nobody can, nothing is allowed."""
        if self.asking >= _MOST_WAITING:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        known = [permission.Option(one.option_id, one.name, one.kind) for one in options]
        self.speech.pause()
        self.asking += 1
        try:
            async with self._turn:
                chosen = await self._decided(permission.question(_wanted(tool_call), known), known)
        finally:
            self.asking -= 1
        if chosen is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen.id))

    async def _decided(self, question: str, options: list[permission.Option]) -> permission.Option | None:
        asked = question
        for _ in range(_MOST_ASKING):
            self._watcher.record({"type": "question", "text": asked})
            answer = await self._watcher.ask(asked)
            self._watcher.record({"type": "answer", "text": answer})
            if answer is None:
                return None
            if (chosen := permission.chosen(answer, options)) is not None:
                return chosen
            asked = f"{question}\nAnswer with one of these, by its number or name, or y or n."
        return None

    # -- updates ------------------------------------------------------------------------------

    def _said(self, raw: Mapping[str, Any]) -> None:
        self.speech.says(_text(raw.get("content")))

    def _thought(self, raw: Mapping[str, Any]) -> None:
        self.speech.says(_text(raw.get("content")), kind="thought")

    def _tool(self, raw: Mapping[str, Any]) -> None:
        """A tool begins, or gets on: counted once."""
        call = as_text(raw.get("toolCallId"))
        if call not in self._calls:
            if len(self._calls) >= _MOST_CALLS:
                self._calls.clear()
            self._calls.add(call)
            self.speech.acts()
            name = (as_text(raw.get("title")) or as_text(raw.get("kind")) or "tool")[:_LONGEST_NAME]
            given = as_object(raw.get("rawInput")) or _places(raw)
            self._watcher.record({"type": "tool_use", "id": call, "name": name, "input": given})
            self._watcher.used_tool(name, given)
        if raw.get("status") in ("completed", "failed"):
            text = "\n".join(_text(part) for part in as_list(raw.get("content")) or [])[:_LONGEST_RESULT]
            self._watcher.record({"type": "tool_result", "id": call, "status": raw["status"], "text": text})

    def _plan(self, raw: Mapping[str, Any]) -> None:
        self.speech.pause()
        self._watcher.record({"type": "plan", "entries": raw.get("entries")})

    def _usage(self, raw: Mapping[str, Any]) -> None:
        """What the conversation weighs by now, and what it has cost."""
        self.tells_usage = True
        self._watcher.used_tokens({"input_tokens": raw.get("used")})
        cost = as_object(raw.get("cost")) or {}
        amount = cost.get("amount")
        if as_text(cost.get("currency")).upper() == "USD" and isinstance(amount, (int, float)):
            self._memory.cost = float(amount)
            self._watcher.costs(max(self._memory.cost - self._cost_before, 0.0))


_ACTS = {
    "agent_message_chunk": Updates._said,  # pyright: ignore[reportPrivateUsage]
    "agent_thought_chunk": Updates._thought,  # pyright: ignore[reportPrivateUsage]
    "tool_call": Updates._tool,  # pyright: ignore[reportPrivateUsage]
    "tool_call_update": Updates._tool,  # pyright: ignore[reportPrivateUsage]
    "plan": Updates._plan,  # pyright: ignore[reportPrivateUsage]
    "usage_update": Updates._usage,  # pyright: ignore[reportPrivateUsage]
}


def _text(value: object) -> str:
    """What a piece of content says; of what is no text, its type."""
    content = as_object(value) or {}
    inner = as_object(content.get("content"))  # a tool's content has one more layer
    if inner is not None:
        return _text(inner)
    if (text := as_text(content.get("text"))) or content.get("type") in ("text", None):
        return text
    if content.get("type") == "diff":
        return f"[changed {as_text(content.get('path'))}]"
    return f"[{as_text(content.get('type'))}]"


def _places(raw: Mapping[str, Any]) -> dict[str, object]:
    """What a tool is about, where the agent does not say what it was given."""
    paths = [as_text((as_object(one) or {}).get("path")) for one in as_list(raw.get("locations")) or []]
    return {"path": paths[0]} if paths else {}


def _wanted(tool_call: ToolCallUpdate) -> str:
    """What it asks permission for, in words."""
    given = as_object(tool_call.raw_input) or {}
    shown = "\n".join(f"  {key}: {str(value)[:300]}" for key, value in list(given.items())[:8])
    return f"{tool_call.title or tool_call.kind or 'It wants to use a tool'}\n{shown}".strip()
