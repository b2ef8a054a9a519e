"""Values of unknown shape from outside (JSON, metadata, messages), narrowed so that type checkers follow."""

from __future__ import annotations

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
