"""What JSON from elsewhere holds, asked for by shape: the wrong shape reads as absent, never as an error."""

from __future__ import annotations

from taskyard.errors import BadName
from taskyard.names import check_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def as_object(value: object) -> dict[str, Any] | None:
    """`value`, if it is an object."""
    found: Any = value
    return found if isinstance(value, dict) else None


def as_array(value: object) -> list[Any] | None:
    """`value`, if it is an array."""
    found: Any = value
    return found if isinstance(value, list) else None


def as_text(value: object) -> str:
    """`value`, if it is text; else ""."""
    return value if isinstance(value, str) else ""


def as_number(value: object) -> int:
    """A whole number, written as one or as digits; 0 for anything else."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        return int(value)
    return value if type(value) is int else 0


def as_name(value: object) -> str:
    """`value`, if it can be an agent's name; else ""."""
    try:
        return check_name("an agent", value) if isinstance(value, str) else ""
    except BadName:
        return ""
