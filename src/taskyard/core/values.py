"""Validate names, ids, texts and untyped values at the boundary; cheap `NamedTuple` and `cast`.

A list, team or agent name becomes a folder name by Claude Code's rule, so that both programs find the same
folder: every UTF-16 unit outside `[a-zA-Z0-9_-]` becomes `-`. Values of unknown shape (JSON, metadata,
messages) are narrowed by the `as_*` functions; the wrong shape reads as absent, never as an error.

`NamedTuple` and `cast` replace those of `typing`, whose import takes a third of the start time of `python
-c pass`, and whose named tuples compile the annotation of every field. A command line that starts on every
tool call of an agent defines about twenty records first. Type checkers see the originals.
"""

from __future__ import annotations

from taskyard.errors import BadId, BadName, BadText, BadValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


#: Name of the user where no agent is named: as owner, sender, recipient.
PERSON = "me"

#: Characters; longer names hit the file system's limit of 255 bytes once suffixes are added.
LONGEST_NAME = 200

#: Longer ids are never issued; the bound keeps per-id offsets in files small.
LARGEST_ID = 999_999_999

#: An id above this leaves less than a million others: it is a mistake or an attack, and the next id ignores
#: it.
MAX_COUNTED_ID = LARGEST_ID - 1_000_000

#: Characters. A subject is a title; a description may contain a whole specification.
LONGEST_SUBJECT = 2_000
LONGEST_TEXT = 200_000

_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
_SPACES = frozenset("\t\n\r")


def folder_name(what: str, name: str) -> str:
    """Return the folder name for `name`; `what` describes it for the error."""
    check_name(what, name)
    return "".join(char if char in _SAFE else "-" * (1 + (ord(char) > 0xFFFF)) for char in name)


def is_folder_safe(text: str) -> bool:
    """Return whether `text` is unchanged as a folder name."""
    return _SAFE.issuperset(text)


def check_name(what: str, name: str) -> str:
    """Return `name` if it is a valid name of a list, team or agent.

    Raises:
        BadName: it is empty, longer than 200 characters, or contains control characters or lone surrogates.
    """
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers without a type checker
        raise BadName(what, str(name), f"it must be text, not {type(name).__name__}")
    if not name.strip():
        raise BadName(what, name, "it is empty")
    units = len(name) if name.isascii() else len(name.encode("utf-16-le", "surrogatepass")) // 2
    if units > LONGEST_NAME:
        raise BadName(what, name, f"it is longer than {LONGEST_NAME} characters")
    if why := _unstorable_reason(name, allow=frozenset()):
        raise BadName(what, name, f"it {why}")
    return name


def check_id(task_id: object) -> str:
    """Return `task_id` as the decimal string it is on disk; an int is accepted too.

    Raises:
        BadId: it is not a whole number from 1 without leading zeros.
    """
    text = str(task_id) if type(task_id) is int else task_id
    if not isinstance(text, str) or not is_id(text):
        raise BadId(task_id)
    return text


def is_id(text: str) -> bool:
    """Return whether `text` is a task id: ASCII digits, no leading zero, at most nine of them."""
    return text.isascii() and text.isdigit() and text[0] != "0" and len(text) <= 9


def check_text(field: str, text: object, *, longest: int = LONGEST_TEXT, allow_empty: bool = True) -> str:
    """Return `text` if it can be stored and shown.

    Raises:
        BadText: it is empty, too long, or contains control characters or lone surrogates.
    """
    if not isinstance(text, str):
        raise BadText(field, f"must be text, not {type(text).__name__}")
    if not allow_empty and not text.strip():
        raise BadText(field, "is empty")
    if len(text) > longest:
        raise BadText(field, f"has {len(text):,} characters; at most {longest:,} fit")
    if why := _unstorable_reason(text, allow=_SPACES):
        raise BadText(field, why)
    return text


def escape_unstorable(text: str, *, keep: str = "\t\n\r") -> str:
    r"""Escape what `check_text` would refuse; white space not in `keep` becomes a space.

    >>> escape_unstorable("a\x07b\nc", keep="")
    'a\\x07b c'
    """
    if text.isprintable():
        return text
    return "".join(
        char if char in keep or not _unstorable_reason(char, allow=frozenset()) else _escape_char(char) for char in text
    )


def _escape_char(char: str) -> str:
    code = ord(char)
    return " " if char in _SPACES else f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def check_subject(text: object) -> str:
    """Return `text` as a subject: one line, not empty, at most 2,000 characters."""
    subject = check_text("subject", text, longest=LONGEST_SUBJECT, allow_empty=False)
    if "\n" in subject or "\r" in subject:
        raise BadText("subject", "has more than one line; put the rest into the description")
    return subject


def nearest(wanted: str, known: Iterable[str], *, most: int = 3) -> tuple[str, ...]:
    """Return the names in `known` most similar to `wanted`, for "did you mean"."""
    import difflib

    return tuple(difflib.get_close_matches(wanted, list(known), n=most, cutoff=0.5))


def nearest_ids(wanted: str, known: Iterable[str], *, most: int = 3) -> tuple[str, ...]:
    """Return the ids in `known` closest to `wanted` by value."""
    target = int(wanted)
    return tuple(sorted(known, key=lambda task_id: (abs(int(task_id) - target), int(task_id)))[:most])


def _unstorable_reason(text: str, *, allow: frozenset[str]) -> str | None:
    if text.isprintable():  # the common case, decided in C; it excludes control characters and surrogates
        return None
    for char in text:
        code = ord(char)
        if 0xD800 <= code <= 0xDFFF:
            return f"holds a lone surrogate (U+{code:04X})"
        if (code < 0x20 or 0x7F <= code < 0xA0) and char not in allow:
            return f"holds a control character (U+{code:04X})"
    return None


def check_number(name: str, value: object, *, least: float, most: float, whole: bool = False, unit: str = "") -> None:
    """Refuse a value that is not a number (of `unit`) from `least` to `most`; None passes.

    Raises:
        BadValue: it is not.
    """
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)) or not least <= value <= most:
        what = f"a {'whole ' if whole else ''}number{f' of {unit}' if unit else ''}"
        raise BadValue(name, value, f"{what} from {_format_number(least)} to {_format_number(most)}")


def _format_number(number: float) -> str:
    """Format a bound for people: 2,678,400 and 0.001."""
    return f"{int(number):,}" if number == int(number) else f"{number:,}"


if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
    from typing import cast as cast
else:
    from collections import namedtuple

    _MADE = frozenset(["__annotations__", "__module__", "__qualname__", "__new__", "__slots__"])

    class _Record(type):
        """Turns a class of annotated fields into a named tuple with its methods."""

        def __new__(meta, name, bases, body):
            """Return the class itself, or the named tuple that a derived class describes."""
            if not bases:
                return super().__new__(meta, name, bases, body)
            fields = body["__annotations__"]
            defaults = [body[field] for field in fields if field in body]
            if defaults and list(fields)[-len(defaults) :] != [field for field in fields if field in body]:
                raise TypeError(f"{name}: a field without a default follows one that has it")
            made = namedtuple(name, fields, defaults=defaults, module=body["__module__"])
            made.__annotations__ = dict(fields)
            made.__qualname__ = body["__qualname__"]
            for key, value in body.items():
                if key not in _MADE and key not in fields:
                    setattr(made, key, value)
            return made

    class NamedTuple(metaclass=_Record):
        """Base of records: immutable and cheap to create."""

    def cast(kind, value):
        """Return `value`, which a type checker treats as a `kind`."""
        return value


def as_object(value: object) -> dict[str, object] | None:
    """Return `value` if it is a dict with only text keys; else None."""
    if not isinstance(value, dict):
        return None
    found = cast("dict[object, object]", value)
    return cast("dict[str, object]", found) if all(isinstance(key, str) for key in found) else None


def as_list(value: object) -> list[object] | None:
    """Return `value` if it is a list or tuple, as a list; else None."""
    if isinstance(value, tuple):
        return list(cast("tuple[object, ...]", value))
    return cast("list[object]", value) if isinstance(value, list) else None


def as_text(value: object) -> str:
    """Return `value` if it is text; else ""."""
    return value if isinstance(value, str) else ""


def as_number(value: object) -> int:
    """Return a whole number, given as one or as digits; 0 for anything else."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        return int(value)
    return value if type(value) is int else 0


def as_name(value: object) -> str:
    """Return `value` if it is a valid agent name; else ""."""
    try:
        return check_name("an agent", value) if isinstance(value, str) else ""
    except BadName:
        return ""
