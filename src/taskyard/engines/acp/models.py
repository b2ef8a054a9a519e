"""The model an agent shall use, among those it offers: pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

#: Models that are named where the wanted one is not among them.
_MOST = 10


class Choice(NamedTuple):
    """What to set, or why it cannot be."""

    config_id: str = ""
    value: str = ""
    error: str = ""


def choose(model: str, settings: Sequence[Any]) -> Choice:
    """How to have an agent use `model`, by what it says can be set in its session."""
    wanted = model.casefold()
    offered: list[str] = []
    for setting in settings:
        if getattr(setting, "category", None) != "model" or getattr(setting, "type", None) != "select":
            continue
        for option in _options(setting.options):
            if wanted in (option.value.casefold(), option.name.casefold()):
                return Choice(setting.id, option.value)
            offered.append(option.value)
    known = f"it offers {', '.join(offered[:_MOST])}" if offered else "it lets nobody choose one"
    return Choice(error=f"it has no model {model!r}: {known}")


def _options(found: Sequence[Any]) -> Iterator[Any]:
    """Options, alone or in groups."""
    for one in found:
        yield from one.options if hasattr(one, "group") else (one,)
