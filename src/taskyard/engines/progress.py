"""How far an agent is, in numbers: pure."""

from __future__ import annotations

from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: Activities that are remembered.
RECENT = 5

#: Of what a tool was given: enough to see what it is about, in characters of each value.
_LONGEST_VALUE = 500


class Progress(NamedTuple):
    """What an agent did so far."""

    tools: int = 0
    latest_input: int = 0  #: tokens of the last request, with what came from and went into a cache
    output: int = 0  #: tokens of all answers
    recent: tuple[Mapping[str, object], ...] = ()
    before: int = 0  #: tokens of conversations that are over

    @property
    def tokens(self) -> int:
        """What the conversation weighs: its latest input, and all that was answered; and those before it."""
        return self.before + self.latest_input + self.output

    def next_conversation(self) -> Progress:
        """After one conversation, before the next."""
        return self._replace(before=self.tokens, latest_input=0, output=0)

    def used_tool(self, name: str, given: Mapping[str, object]) -> Progress:
        """After one more tool."""
        activity = {"toolName": name, "input": {key: _brief(value) for key, value in given.items()}}
        return self._replace(tools=self.tools + 1, recent=(*self.recent, activity)[-RECENT:])

    def used_tokens(self, usage: Mapping[str, object]) -> Progress:
        """After one more answer of the model."""
        parts = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        latest = sum(_count(usage.get(part)) for part in parts)
        output = self.output + _count(usage.get("output_tokens"))
        before = self.before + _count(usage.get("spent_tokens"))
        return self._replace(latest_input=latest or self.latest_input, output=output, before=before)

    def usage(self, seconds: float) -> dict[str, int]:
        """As notices and events have it, after so long."""
        return {"total_tokens": self.tokens, "tool_uses": self.tools, "duration_ms": round(seconds * 1000)}

    def to_json(self) -> dict[str, object]:
        """As records have it."""
        return {
            "toolUseCount": self.tools,
            "tokenCount": self.tokens,
            "lastActivity": self.recent[-1] if self.recent else None,
            "recentActivities": list(self.recent),
        }


def _count(value: object) -> int:
    return value if type(value) is int and 0 <= value < 1 << 53 else 0


def _brief(value: object) -> object:
    if isinstance(value, str):
        return value if len(value) <= _LONGEST_VALUE else value[: _LONGEST_VALUE - 1] + "…"
    return value if value is None or isinstance(value, (int, float, bool)) else _brief(str(value))
