"""
Values of unknown shape from outside (JSON, metadata, messages), narrowed so that type checkers follow.

The wrong shape reads as absent, never as an error.
"""

from __future__ import annotations

from taskyard.errors import BadName
from taskyard.names import check_name
from taskyard.typed import cast


def as_object(value: object) -> dict[str, object] | None:
    """`value` if it is an object with text keys only."""
    if not isinstance(value, dict):
        return None
    found = cast("dict[object, object]", value)
    return cast("dict[str, object]", found) if all(isinstance(key, str) for key in found) else None


def as_list(value: object) -> list[object] | None:
    """`value` if it is a list; a tuple will do."""
    if isinstance(value, tuple):
        return list(cast("tuple[object, ...]", value))
    return cast("list[object]", value) if isinstance(value, list) else None


def as_text(value: object) -> str:
    """`value` if it is text; else ""."""
    return value if isinstance(value, str) else ""


def as_number(value: object) -> int:
    """A whole number, written as one or as digits; 0 for anything else."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        return int(value)
    return value if type(value) is int else 0


def as_name(value: object) -> str:
    """`value` if it can be an agent's name; else ""."""
    try:
        return check_name("an agent", value) if isinstance(value, str) else ""
    except BadName:
        return ""
