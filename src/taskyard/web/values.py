"""
Values from outside, in an address or a body: each kind with its check and with what the API's description says of it.

Pure. What no kind takes is refused before anything is looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from taskyard.errors import BadJobId, BadText, BadValue, UsageError
from taskyard.names import (
    LARGEST_ID,
    LONGEST_NAME,
    LONGEST_SUBJECT,
    LONGEST_TEXT,
    check_id,
    check_name,
    check_text,
    folder_name,
)
from taskyard.runtime.ids import is_job_id
from taskyard.shapes import as_list

#: Lines of output in one answer, tasks that one is blocked by, characters that can be looked for.
MOST_LINES, MOST_IDS, LONGEST_NEEDLE = 5_000, 200, 1_000

#: What can be typed into a job at once; `steering` refuses more.
LONGEST_INPUT = 1_000_000

#: More digits than any offset or event has.
_LONGEST_NUMBER = 18

Check = Callable[[str, object], object]


class Kind(NamedTuple):
    """What a value can be."""

    schema: Mapping[str, object]
    check: Check  #: gets the value's name and the value: text from an address, anything from a body


class Value(NamedTuple):
    """One value a request may bring."""

    name: str
    kind: str
    about: str
    required: bool = False


def _whole(least: int, most: int) -> Check:
    def check(name: str, value: object) -> int:
        text = str(value) if type(value) is int else value
        is_number = isinstance(text, str) and text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER
        if not is_number or not least <= int(str(text)) <= most:
            raise BadValue(name, value, f"a whole number from {least} to {most:,}")
        return int(str(text))

    return check


def _flag(name: str, value: object) -> bool:
    known = {"0": False, "1": True, "false": False, "true": True}
    if isinstance(value, bool):
        return value
    if not isinstance(value, str) or value not in known:
        raise BadValue(name, value, "true or false")
    return known[value]


def _list_name(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise BadValue(name, value, "the name of a list")
    return folder_name("a list", value)


def _agent(name: str, value: object) -> str:
    return check_name("an agent", value)  # type: ignore[arg-type]  # it says so if it is no text


def _job_id(name: str, value: object) -> str:
    if not is_job_id(value):
        raise BadJobId(value)
    return value


def _task_id(name: str, value: object) -> str:
    return check_id(value)


def _task_ids(name: str, value: object) -> tuple[str, ...]:
    found = as_list(value)
    if found is None or len(found) > MOST_IDS:
        raise BadValue(name, value, f"a list of at most {MOST_IDS} task ids")
    return tuple(check_id(each) for each in found)


def _text(longest: int, *, allow_empty: bool = True) -> Check:
    def check(name: str, value: object) -> str:
        return check_text(name, value, longest=longest, allow_empty=allow_empty)

    return check


def _typed(name: str, value: object) -> str:
    """What is typed into a terminal may hold any control character; only no half of a character."""
    if not isinstance(value, str) or len(value) > LONGEST_INPUT:
        raise BadText(name, f"must be text of at most {LONGEST_INPUT:,} characters")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadText(name, "holds half a character") from None
    return value


def _number(least: int, most: int) -> Mapping[str, object]:
    return {"type": "integer", "minimum": least, "maximum": most}


def _string(longest: int, **more: object) -> Mapping[str, object]:
    return {"type": "string", "maxLength": longest, **more}


_OFFSET = 1 << 53

KINDS: Mapping[str, Kind] = {
    "list": Kind(_string(LONGEST_NAME), _list_name),
    "task": Kind(_string(9, pattern="^[1-9][0-9]{0,8}$", examples=["12"]), _task_id),
    "tasks": Kind({"type": "array", "items": {"type": "string"}, "maxItems": MOST_IDS}, _task_ids),
    "job": Kind(_string(9, pattern="^[a-z][0-9a-z]{8}$", examples=["b3k9x0q2m"]), _job_id),
    "lines": Kind(_number(1, MOST_LINES), _whole(1, MOST_LINES)),
    "offset": Kind(_number(0, _OFFSET), _whole(0, _OFFSET)),
    "event": Kind(_number(0, _OFFSET), _whole(0, _OFFSET)),
    "flag": Kind({"type": "boolean"}, _flag),
    "needle": Kind(_string(LONGEST_NEEDLE, minLength=1), _text(LONGEST_NEEDLE, allow_empty=False)),
    "mark": Kind(_string(64), _text(64)),
    "subject": Kind(_string(LONGEST_SUBJECT, minLength=1), _text(LONGEST_SUBJECT, allow_empty=False)),
    "text": Kind(_string(LONGEST_TEXT), _text(LONGEST_TEXT)),
    "name": Kind(_string(LONGEST_NAME, minLength=1), _agent),
    "typed": Kind(_string(LONGEST_INPUT), _typed),
}

assert LARGEST_ID == 10**9 - 1  # as the pattern of a task says


class Given(dict[str, object]):
    """What a request brought, checked; what it did not bring is not there."""

    def text(self, name: str) -> str:
        """A value that is text; empty if it did not come."""
        return str(self.get(name, ""))

    def word(self, name: str) -> str | None:
        """The same; None if it did not come."""
        return str(self[name]) if name in self else None

    def number(self, name: str, default: int = 0) -> int:
        """A value that is a number."""
        found = self.get(name, default)
        assert isinstance(found, int)
        return found

    def ids(self, name: str) -> tuple[str, ...]:
        """A value that is several ids."""
        found = self.get(name, ())
        assert isinstance(found, tuple)
        return tuple(str(each) for each in found)  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]


def given(values: Iterable[Value], pairs: Iterable[tuple[str, object]], *, where: str) -> Given:
    """What a request brought, each by its kind; `where` says of what, for the error.

    Raises:
        UsageError: something is unknown, missing, there twice, or not what its kind can be.
    """
    known = {value.name: value for value in values}
    found = Given()
    for name, raw in pairs:
        if name not in known:
            expected = f"one of {', '.join(known)}" if known else "none"
            raise BadValue(f"A name in the {where}", name, expected)
        if name in found:
            raise UsageError(f"{name} is there twice.")
        if raw is not None:
            found[name] = KINDS[known[name].kind].check(name, raw)
    if missing := [value.name for value in known.values() if value.required and value.name not in found]:
        raise UsageError(f"The {where} must have {', '.join(missing)}.")
    return found
