"""Errors on their way from one machine to another: raised there, raised again here, the same in every respect."""

from __future__ import annotations

from taskyard import errors
from taskyard.errors import TaskyardError
from taskyard.shapes import as_list, as_object, as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def to_json(error: TaskyardError) -> dict[str, object]:
    """All that is known of an error."""
    return {"class": type(error).__name__, "message": str(error), "fact": error.fact, "facts": error.facts()}


def from_json(raw: Mapping[str, object]) -> TaskyardError:
    """The same error; one that this version does not know is a plain one with the same words."""
    found = getattr(errors, name, None) if (name := as_text(raw.get("class"))) in errors.__all__ else None
    kind = found if isinstance(found, type) and issubclass(found, TaskyardError) else TaskyardError
    error = kind.__new__(kind)
    TaskyardError.__init__(error, as_text(raw.get("message")))
    facts = as_object(raw.get("facts")) or {}
    vars(error).update({key: tuple(known) if (known := as_list(value)) else value for key, value in facts.items()})
    vars(error)["_fact"] = as_text(raw.get("fact"))
    return error
