"""
Names and ids from outside, made safe once, at the boundary.

A list, team or agent name becomes a folder name by Claude Code's rule, so that both programs
find the same folder: every UTF-16 unit outside `[a-zA-Z0-9_-]` becomes `-`.
"""

from __future__ import annotations

from taskyard.errors import BadId, BadName, BadText, BadValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

#: Longer names hit the file system's limit of 255 bytes once suffixes are added.
LONGEST_NAME = 200

#: Ten digits and more are no id anyone issued; the bound keeps per-id offsets in files small.
LARGEST_ID = 999_999_999

#: An id above this leaves less than a million others: it is somebody's mistake or trap, and the next id ignores it.
LAST_WITH_ROOM = LARGEST_ID - 1_000_000

#: A subject is a title; a description may hold a whole specification.
LONGEST_SUBJECT = 2_000
LONGEST_TEXT = 200_000

_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
_SPACES = frozenset("\t\n\r")


def folder_name(what: str, name: str) -> str:
    """The folder that stands for `name`; `what` says of what, for the error."""
    check_name(what, name)
    return "".join(char if char in _SAFE else "-" * (1 + (ord(char) > 0xFFFF)) for char in name)


def is_plain(text: str) -> bool:
    """Whether nothing in `text` would change on its way to a folder name."""
    return _SAFE.issuperset(text)


def check_name(what: str, name: str) -> str:
    """`name`, if it can name a list, team or agent.

    Raises:
        BadName: it is empty, longer than 200 characters, or holds what no file can.
    """
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers without a type checker
        raise BadName(what, str(name), f"it must be text, not {type(name).__name__}")
    if not name.strip():
        raise BadName(what, name, "it is empty")
    units = len(name) if name.isascii() else len(name.encode("utf-16-le", "surrogatepass")) // 2
    if units > LONGEST_NAME:
        raise BadName(what, name, f"it is longer than {LONGEST_NAME} characters")
    if why := _unstorable(name, allow=frozenset()):
        raise BadName(what, name, f"it {why}")
    return name


def check_id(task_id: object) -> str:
    """`task_id` as the decimal string it is on disk; an int is accepted too.

    Raises:
        BadId: it is not a whole number from 1 without leading zeros.
    """
    text = str(task_id) if type(task_id) is int else task_id
    if not isinstance(text, str) or not is_id(text):
        raise BadId(task_id)
    return text


def is_id(text: str) -> bool:
    """Whether `text` is a task id: ASCII digits, no leading zero, at most nine of them."""
    return text.isascii() and text.isdigit() and text[0] != "0" and len(text) <= 9


def check_text(field: str, text: object, *, longest: int = LONGEST_TEXT, allow_empty: bool = True) -> str:
    """`text`, if it can be stored and shown.

    Raises:
        BadText: it is empty, too long, or holds control characters or lone surrogates.
    """
    if not isinstance(text, str):
        raise BadText(field, f"must be text, not {type(text).__name__}")
    if not allow_empty and not text.strip():
        raise BadText(field, "is empty")
    if len(text) > longest:
        raise BadText(field, f"has {len(text):,} characters; at most {longest:,} fit")
    if why := _unstorable(text, allow=_SPACES):
        raise BadText(field, why)
    return text


def storable(text: str, *, keep: str = "\t\n\r") -> str:
    r"""`text` with whatever `check_text` would refuse written out; spaces that are not to `keep` become plain ones.

    >>> storable("a\x07b\nc", keep="")
    'a\\x07b c'
    """
    if text.isprintable():
        return text
    return "".join(
        char if char in keep or not _unstorable(char, allow=frozenset()) else _written(char) for char in text
    )


def _written(char: str) -> str:
    code = ord(char)
    return " " if char in _SPACES else f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def check_subject(text: object) -> str:
    """`text` as a subject: one line, not empty, at most 2,000 characters."""
    subject = check_text("subject", text, longest=LONGEST_SUBJECT, allow_empty=False)
    if "\n" in subject or "\r" in subject:
        raise BadText("subject", "has more than one line; put the rest into the description")
    return subject


def nearest(wanted: str, known: Iterable[str], *, most: int = 3) -> tuple[str, ...]:
    """The names in `known` that look most like `wanted`, for "did you mean"."""
    import difflib

    return tuple(difflib.get_close_matches(wanted, list(known), n=most, cutoff=0.5))


def nearest_ids(wanted: str, known: Iterable[str], *, most: int = 3) -> tuple[str, ...]:
    """The ids in `known` closest to `wanted` by value."""
    target = int(wanted)
    return tuple(sorted(known, key=lambda task_id: (abs(int(task_id) - target), int(task_id)))[:most])


def _unstorable(text: str, *, allow: frozenset[str]) -> str | None:
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
    """Refuse what is no number (of `unit`) between two others; None passes.

    Raises:
        BadValue: it is not.
    """
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)) or not least <= value <= most:
        what = f"a {'whole ' if whole else ''}number{f' of {unit}' if unit else ''}"
        raise BadValue(name, value, f"{what} from {_plain(least)} to {_plain(most)}")


def _plain(number: float) -> str:
    """A bound as people write it: 2,678,400 and 0.001."""
    return f"{int(number):,}" if number == int(number) else f"{number:,}"
