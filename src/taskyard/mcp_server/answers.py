"""
What a call answers: text for the model, and what else it should know. For programs that ask for it, the same as data.

A client hands its model either the text or `structuredContent`, where there is one: Claude Code and Codex the latter
alone, Gemini CLI and opencode the former. So answers have text only, unless the setting `mcp_structured` is on; then
`structuredContent` repeats under `notes` what the text says beyond the data.

Gemini CLI parses the first text of an answer without `structuredContent` as JSON and takes the value for it. A value
that is no object (a command that prints `1` or `[1]`) fails its own check, and its model reads that error instead of
the text. So answers to Gemini CLI always have `structuredContent`; its model reads the text alone.

A refusal is an answer like any other: it says what is wrong and what to do next, and is marked as an error.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, CallToolResult, TextContent
from pydantic import PrivateAttr, ValidationError

from taskyard.errors import Conflict, NotFound, TaskyardError, UsageError
from taskyard.mcp_server import advice
from taskyard.shapes import as_object

#: Where the records of notices are, in `_meta`.
NOTICES = "taskyard/notices"

#: Field names that one refusal repeats.
_MOST_FAULTS = 5


class Answer(NamedTuple):
    """One answer, before it is put into the protocol's words."""

    text: str
    data: Mapping[str, object]
    hints: tuple[str, ...] = ()  #: further blocks of text: what follows from it, what to do next
    is_error: bool = False
    deferred: str | None = None  #: what was asked for goes on, and can be had under this id


class Result(CallToolResult):
    """A result that remembers what of it was put off."""

    _deferred: str | None = PrivateAttr(default=None)

    @property
    def deferred(self) -> str | None:
        """The id under which it can be had."""
        return self._deferred

    def defer(self, task_id: str | None) -> None:
        """Remember under which id it goes on."""
        self._deferred = task_id


def result(
    answer: Answer,
    *,
    structured: bool,
    riding: Sequence[str] = (),
    notices: Sequence[Mapping[str, object]] = (),
) -> Result:
    """An answer in the protocol's words.

    Args:
        answer: What the tool says.
        structured: Whether data comes beside the text.
        riding: Text that comes along at its end.
        notices: The notices in it, for programs: no client shows `_meta` to a model.
    """
    notes = [text for text in (*answer.hints, *riding) if text]
    data: dict[str, Any] = {**answer.data, **({"notes": notes} if notes else {})}
    made = Result(
        content=[TextContent(type="text", text=text) for text in (answer.text, *notes) if text],
        structured_content=data if structured else None,
        is_error=answer.is_error,
        _meta={NOTICES: list(notices)} if notices else None,
    )
    made.defer(answer.deferred)
    return made


def refusal(error: TaskyardError, *, text: str | None = None) -> Answer:
    """An error that was raised on purpose; with `text`, under words that models know."""
    facts = {name: _plain(value) for name, value in error.facts().items()}
    said = advice.said(error)
    data = {"error": {**facts, "code": error.code, "message": said}}
    return Answer(said, data, is_error=True) if text is None else Answer(text, data, (said,), is_error=True)


def protocol_error(error: TaskyardError) -> MCPError:
    """The same for a request that is no tool call: the protocol's own error."""
    theirs = isinstance(error, (UsageError, NotFound, Conflict))
    return MCPError(INVALID_PARAMS if theirs else INTERNAL_ERROR, advice.said(error), refusal(error).data["error"])


def malformed(tool: str, fields: Iterable[str], error: ValidationError) -> Answer:
    """Arguments that do not fit: which, and what would."""
    known = list(fields)
    faults = list(dict.fromkeys(_fault(tool, known, item) for item in error.errors()))
    shown = faults[:_MOST_FAULTS]
    if len(faults) > len(shown):
        shown.append(f"{len(faults) - len(shown)} more fields do not fit.")
    text = " ".join([*shown, "Nothing was changed."])
    return Answer(text, {"error": {"code": "bad_arguments", "message": text, "fields": known}}, is_error=True)


def _fault(tool: str, known: Sequence[str], item: Mapping[str, Any]) -> str:
    place = ".".join(str(part) for part in item["loc"])[:100] or "the arguments"
    if item["type"] == "extra_forbidden":
        return f"{tool} has no field {place!r}; it has {', '.join(known) or 'none'}."
    if item["type"] == "missing":
        return f"{tool} needs {place!r}."
    return f"{place!r} does not fit: {item['msg']}."


def _plain(value: object) -> object:
    """A fact as JSON can have it."""
    if (inner := as_object(value)) is not None:
        return {key: _plain(each) for key, each in inner.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(each) for each in cast("Collection[object]", value)]
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)
