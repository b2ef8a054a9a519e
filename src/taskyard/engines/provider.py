"""Who serves an agent, as a name that can be part of a file's: agents there share a pace. Pure."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
_LONGEST = 40


def provider_of(engine: str, command: Sequence[str], model: str | None) -> str:
    """`claude-stream-claude`, `command-gemini`, `model-openai`: the engine, with its program or its model's maker."""
    served_by = command[0].rsplit("/", 1)[-1] if command else (model or "").partition(":")[0]
    name = f"{engine}-{served_by}" if served_by and served_by != engine else engine
    return "".join(char if char in _LETTERS else "-" for char in name)[:_LONGEST]
