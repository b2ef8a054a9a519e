"""Permission requests of Claude Code as questions, and answers as its decisions: pure."""

from __future__ import annotations

import re

from taskyard.harmless import safe
from taskyard.shapes import as_list, as_object, as_text
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Characters of a question in all, of one value of a tool's input, and values that are shown.
_LONGEST, _LONGEST_VALUE, _MOST_VALUES = 1_800, 500, 8

#: Characters of what "always" grants. What does not fit is not offered: a grant is shown in full or not at all.
_LONGEST_GRANT = 300

#: Characters of a reason that is passed on to the model.
_LONGEST_REASON = 2_000

_YES = ("1", "y", "yes", "allow", "ok")
_ALWAYS = ("2", "a", "always", "allow always")
_NO = re.compile(r"(?:3|n|no|deny|reject)(?:$|[\s:,.;-]+(?P<reason>.*))", re.I | re.S)

#: The tool by which the model asks a person something.
QUESTION_TOOL = "AskUserQuestion"

HINT = "Answer y, a or n; `n REASON` tells the agent why."


class Request(NamedTuple):
    """A tool that the program wants to use."""

    id: str
    tool: str
    given: Mapping[str, object]
    suggestions: tuple[Mapping[str, object], ...] = ()  #: permission updates that would allow it from now on
    reason: str = ""  #: why the program asks

    @classmethod
    def read(cls, message: Mapping[str, object]) -> Request:
        """The request in a `control_request` of subtype `can_use_tool`."""
        asked = as_object(message.get("request")) or {}
        suggestions = [as_object(one) for one in as_list(asked.get("permission_suggestions")) or []]
        return cls(
            as_text(message.get("request_id")),
            as_text(asked.get("tool_name")) or "tool",
            as_object(asked.get("input")) or {},
            tuple(one for one in suggestions if one is not None),
            as_text(asked.get("decision_reason")),
        )


class Decision(NamedTuple):
    """What a person decided."""

    is_allowed: bool
    always: bool = False
    reason: str = ""

    def response(self, request: Request) -> dict[str, object]:
        """In the program's format."""
        if not self.is_allowed:
            return {"behavior": "deny", "message": self.reason or "The user denied this."}
        grants = {"updatedPermissions": grant(request)} if self.always else {}
        return {"behavior": "allow", "updatedInput": dict(request.given), **grants}


def question(request: Request) -> str:
    """The question that a person is asked, with the answers it takes.

    >>> print(question(Request("1", "Bash", {"command": "make"})))
    Claude Code asks for permission to use Bash:
      command: make
    1. Allow once (y)
    2. Always allow Bash(make) in this job (a)
    3. Deny (n); `n REASON` tells the agent why
    """
    lines = [f"Claude Code asks for permission to use {safe(request.tool)[:100]}:"]
    lines += [f"  {safe(str(key))[:60]}: {_shown(value)}" for key, value in list(request.given.items())[:_MOST_VALUES]]
    if len(request.given) > _MOST_VALUES:
        lines.append(f"  … and {len(request.given) - _MOST_VALUES} more")
    if request.reason:
        lines.append(f"  ({safe(request.reason)[:200]})")
    always = [f"2. Always allow {words} in this job (a)"] if (words := granted(request)) else []
    answers = "\n".join(["1. Allow once (y)", *always, "3. Deny (n); `n REASON` tells the agent why"])
    asked = "\n".join(lines)
    room = _LONGEST - len(answers)
    return f"{asked if len(asked) <= room else asked[: room - 1] + '…'}\n{answers}"


def decided(answer: str, request: Request) -> Decision | None:
    """What an answer means; None if it is none.

    >>> decided("n use make", Request("1", "Bash", {})).reason
    'use make'
    """
    said = answer.strip()
    if said.casefold() in _YES:
        return Decision(is_allowed=True)
    if said.casefold() in _ALWAYS and granted(request):
        return Decision(is_allowed=True, always=True)
    if (no := _NO.fullmatch(said)) is not None:
        return Decision(is_allowed=False, reason=(no["reason"] or "").strip()[:_LONGEST_REASON])
    return None


def grant(request: Request) -> list[dict[str, object]]:
    """The permission updates of "always": rules if the program suggests some, for this session alone."""
    rules = [one for one in request.suggestions if one.get("type") == "addRules" and one.get("behavior") == "allow"]
    chosen = rules or [one for one in request.suggestions if one.get("type") in ("setMode", "addDirectories")]
    if chosen:
        return [{**one, "destination": "session"} for one in chosen]
    command = as_text(request.given.get("command"))
    if request.tool == "Bash" and not command:
        return []
    rule = {"toolName": request.tool, **({"ruleContent": command} if request.tool == "Bash" else {})}
    return [{"type": "addRules", "rules": [rule], "behavior": "allow", "destination": "session"}]


def granted(request: Request) -> str:
    """What "always" grants, in words; empty if it cannot be offered."""
    parts: list[str] = []
    for one in grant(request):
        if one.get("type") == "addRules":
            parts += rules_in(one)
        elif one.get("type") == "addDirectories":
            parts += [f"access to {safe(str(path))}" for path in as_list(one.get("directories")) or []]
        elif one.get("mode") == "acceptEdits":
            parts.append("file edits")
        else:
            return ""
    words = ", ".join(parts)
    return words if len(words) <= _LONGEST_GRANT else ""


def rules_in(update: Mapping[str, object]) -> list[str]:
    """The rules of a permission update, as `--allowedTools` takes them."""
    found: list[str] = []
    for raw in as_list(update.get("rules")) or []:
        rule = as_object(raw) or {}
        content = as_text(rule.get("ruleContent"))
        found.append(safe(as_text(rule.get("toolName")) + (f"({content})" if content else "")))
    return found


def asked_by_model(request: Request) -> list[tuple[str, str]]:
    """The questions of the model's own question tool: each as it names it, and as a person is asked."""
    found: list[tuple[str, str]] = []
    for raw in as_list(request.given.get("questions")) or []:
        one = as_object(raw) or {}
        name = as_text(one.get("question"))
        lines = [safe(name)[:_LONGEST_VALUE]]
        for number, option in enumerate(_options(one)[:_MOST_VALUES], 1):
            about = as_text(option.get("description"))
            lines.append(
                f"{number}. {safe(as_text(option.get('label')))[:100]}{f': {safe(about)[:100]}' if about else ''}"
            )
        if name:
            found.append((name, "\n".join(lines)))
    return found


def answered(request: Request, answers: Mapping[str, str]) -> dict[str, object]:
    """The answers to the model's own questions, in the program's format; a number stands for its option."""
    given: dict[str, str] = {}
    for raw in as_list(request.given.get("questions")) or []:
        one = as_object(raw) or {}
        name = as_text(one.get("question"))
        said = answers.get(name, "").strip()
        options = _options(one)
        if said.isdecimal() and 1 <= int(said[:6]) <= len(options):
            said = as_text(options[int(said[:6]) - 1].get("label")) or said
        if name:
            given[name] = said
    return {"behavior": "allow", "updatedInput": {**request.given, "answers": given}}


def _options(asked: Mapping[str, object]) -> Sequence[Mapping[str, object]]:
    return [as_object(one) or {} for one in as_list(asked.get("options")) or []]


def _shown(value: object) -> str:
    text = safe(value if isinstance(value, str) else str(value), lines=True)
    text = text.replace("\n", "\n    ")  # a value cannot look like one of the answers below it
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}… ({len(text)} characters)"
