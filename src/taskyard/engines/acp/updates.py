"""What an agent tells in the middle of a turn, and asks: to the transcript, the counts, whoever can answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
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

#: Seconds within which the title and input of a tool call come after the call itself; one that has none is told then.
_PIECES = 1.0

#: Characters of what a tool gave back, in the transcript.
_LONGEST_RESULT = 20_000

#: Characters of the name of a tool: agents write a sentence there.
_LONGEST_NAME = 200

#: Tool calls that are remembered by their id; an agent that makes more of them is counted twice for some.
_MOST_CALLS = 10_000

#: Questions that wait for an answer: nobody answers more, and none of them is allowed by itself.
_MOST_WAITING = 50

#: What has Codex' adapter report a failed turn as such: by default it ends as if it had succeeded, with the error as
#: its last words.
FAILURES = {"jetbrains": {"air": {"version": 1, "capabilities": ["sessionFailure"]}}}

#: What Codex' adapter calls the review of a request by a model, in its default mode: one that failed is a refusal.
_REVIEW = "guardian_assessment:"

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

    def __init__(
        self,
        watcher: Watcher,
        memory: Memory,
        *,
        folder: str = "/",
        permissions: str = "",
        reads: Sequence[str] = (),
    ) -> None:
        self._folder, self._permissions, self._reads = folder, permissions, reads
        self._watcher = watcher
        self._memory = memory
        self._turn = anyio.Lock()  # one question at a time: an answer has no name on it
        self._calls: dict[str, dict[str, Any]] = {}  # what is known of each
        self._told: set[str] = set()
        self._cost_before = 0.0
        self.speech = Speech(watcher)
        self.asking = 0  #: questions that wait for somebody
        self.is_muted = False  #: it only repeats what was said before
        self.used: int | None = None  #: tokens of the conversation, where it tells them
        self.refused: list[str] = []  #: tools that were refused in this turn
        self.failure: tuple[str, str] | None = None  #: category and words of what the agent reports as failed

    def goes_on(self) -> None:
        """The session is the one there was: what that had cost is known."""
        self._cost_before = self._memory.cost

    def begin(self) -> None:
        """A turn begins."""
        self.speech = Speech(self._watcher)
        self.refused, self.failure = [], None

    def end(self) -> None:
        """The turn is over: what was known of tools is all there is."""
        for call in self._calls:
            self._tell(call)
        self.speech.pause()

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
        raw: dict[str, Any] = tool_call.model_dump(mode="json", by_alias=True, exclude_none=True)
        call = as_text(raw.get("toolCallId"))
        self._learn(call, raw)
        seen = self._calls.get(call, raw)
        name = _name(seen)
        self._tell(call)
        paths = [as_text((as_object(one) or {}).get("path")) for one in as_list(seen.get("locations")) or []]
        if permission.allowed(self._permissions, as_text(seen.get("kind")), paths, self._folder, reads=self._reads):
            once = permission.once(known)
            if once is not None:
                return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=once.id))
        self.speech.pause()
        self.asking += 1
        try:
            async with self._turn:
                chosen = await self._decided(permission.question(_wanted(seen), known), known)
        finally:
            self.asking -= 1
        if chosen is None or chosen.kind.startswith("reject"):
            self.refused.append(name)
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
        """A tool begins, or gets on: told once, when it is known what it was given."""
        call = as_text(raw.get("toolCallId"))
        self._learn(call, raw)
        is_over = raw.get("status") in ("completed", "failed")
        if is_over or _is_given(self._calls.get(call, {})):
            self._tell(call)
        elif call not in self._told:
            asyncio.get_running_loop().call_later(_PIECES, self._tell, call)
        if raw.get("status") == "failed" and call.startswith(_REVIEW):
            self.refused.append(_reviewed(self._calls.get(call, {})))
        if is_over:
            text = "\n".join(_text(part) for part in as_list(raw.get("content")) or [])[:_LONGEST_RESULT]
            self._watcher.record({"type": "tool_result", "id": call, "status": raw["status"], "text": text})

    def _learn(self, call: str, raw: Mapping[str, Any]) -> None:
        """Keep what is told of a call, which comes in pieces, until the call itself is told."""
        if len(self._calls) >= _MOST_CALLS:
            self._told.clear()
            self._calls.clear()
        self._calls[call] = {**self._calls.get(call, {}), **{key: value for key, value in raw.items() if value}}

    def _tell(self, call: str) -> None:
        if call in self._told or call not in self._calls:
            return
        known = self._calls[call]
        self._told.add(call)
        self.speech.acts()
        name, given = _name(known), as_object(known.get("rawInput")) or _places(known)
        self._watcher.record({"type": "tool_use", "id": call, "name": name, "input": given})
        self._watcher.used_tool(name, given)

    def _plan(self, raw: Mapping[str, Any]) -> None:
        self.speech.pause()
        self._watcher.record({"type": "plan", "entries": raw.get("entries")})

    def _usage(self, raw: Mapping[str, Any]) -> None:
        """What the conversation weighs by now, and what it has cost."""
        used = raw.get("used")
        self.used = used if type(used) is int else self.used
        self._watcher.used_tokens({"input_tokens": used})
        cost = as_object(raw.get("cost")) or {}
        amount = cost.get("amount")
        if as_text(cost.get("currency")).upper() == "USD" and isinstance(amount, (int, float)):
            self._memory.cost = float(amount)
            self._watcher.costs(max(self._memory.cost - self._cost_before, 0.0))

    def reports(self, raw: Mapping[str, Any]) -> None:
        """What the agent reports as failed, where it does so by its own means (FAILURES)."""
        found = as_object(raw.get("_meta")) or {}
        for key in ("jetbrains", "air", "sessionFailure"):
            found = as_object(found.get(key)) or {}
        if not found:
            return
        words = as_text(found.get("title"))
        self._watcher.record({"type": "note", "text": words})
        self.failure = (as_text(found.get("category")), words) if found.get("severity") == "error" else None


_ACTS = {
    "agent_message_chunk": Updates._said,  # pyright: ignore[reportPrivateUsage]
    "agent_thought_chunk": Updates._thought,  # pyright: ignore[reportPrivateUsage]
    "tool_call": Updates._tool,  # pyright: ignore[reportPrivateUsage]
    "tool_call_update": Updates._tool,  # pyright: ignore[reportPrivateUsage]
    "plan": Updates._plan,  # pyright: ignore[reportPrivateUsage]
    "session_info_update": Updates.reports,
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


def _is_given(known: Mapping[str, Any]) -> bool:
    """Whether it is known what a tool was given; where it works is told before that."""
    return bool(set(as_object(known.get("rawInput")) or {}) - {"cwd"})


def _places(raw: Mapping[str, Any]) -> dict[str, object]:
    """What a tool is about, where the agent does not say what it was given."""
    paths = [as_text((as_object(one) or {}).get("path")) for one in as_list(raw.get("locations")) or []]
    return {"path": paths[0]} if paths else {}


def _reviewed(raw: Mapping[str, Any]) -> str:
    """The tool that a review is about."""
    action = as_object((as_object(raw.get("rawInput")) or {}).get("action")) or {}
    return (as_text(action.get("command")) or as_text(action.get("type")) or "tool")[:_LONGEST_NAME]


def _name(raw: Mapping[str, Any]) -> str:
    """A tool's own name where the agent says it, else its title, which may be a sentence."""
    own = as_object((as_object(raw.get("_meta")) or {}).get("claudeCode")) or {}
    return (as_text(own.get("toolName")) or as_text(raw.get("title")) or as_text(raw.get("kind")) or "tool")[
        :_LONGEST_NAME
    ]


def _wanted(raw: Mapping[str, Any]) -> str:
    """What it asks permission for, in words."""
    given = as_object(raw.get("rawInput")) or {}
    shown = "\n".join(f"  {key}: {permission.cut(str(value), 700)}" for key, value in list(given.items())[:8])
    return f"{as_text(raw.get('title')) or as_text(raw.get('kind')) or 'It wants to use a tool'}\n{shown}".strip()
