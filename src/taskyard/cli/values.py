"""Values as people type them: durations, ids, words, key=value pairs, a twin in another system."""

from __future__ import annotations

from taskyard.errors import BadValue, UsageError
from taskyard.names import check_id

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

#: A claim or a wait of more than ten years is a typing error.
LONGEST = 3_650 * 86_400.0


def task_id(text: str) -> str:
    """A task's id; the `#` people write before it is allowed."""
    return check_id(text.removeprefix("#"))


def id_list(text: str) -> list[str]:
    """`1,2` as ids."""
    return [task_id(part.strip()) for part in text.split(",") if part.strip()] or [task_id(text)]


def is_id_list(text: str) -> bool:
    """Whether a word could be meant as one or more ids."""
    parts = [part.strip().removeprefix("#") for part in text.split(",") if part.strip()]
    return bool(parts) and all(part.isascii() and part.isdigit() for part in parts)


def word_list(text: str) -> list[str]:
    """`a,b` as words."""
    return [word.strip() for word in text.split(",") if word.strip()]


def seconds(text: str, *, most: float = LONGEST) -> float:
    """`90`, `90s`, `30m`, `1h30m`, `2d` in seconds; `most` is a number of days, in seconds too.

    >>> [seconds(text) for text in ("90", "1.5h", "1h30m", "2d")]
    [90.0, 5400.0, 5400.0, 172800.0]
    """
    if text.strip().startswith("-"):
        raise BadValue("A duration", text, "no less than nothing, such as 90s or 30m")
    total, number = 0.0, ""
    for char in text.strip().lower().replace(" ", ""):
        if char.isascii() and (char.isdigit() or char == "."):
            number += char
            continue
        if char not in _UNITS:
            raise _bad_duration(text)
        total += _number(number, text) * _UNITS[char]
        number = ""
    if number:
        if total:
            raise _bad_duration(text)  # `1h30`: minutes or seconds?
        total = _number(number, text)
    if not 0 < total <= most:
        raise BadValue("A duration", text, f"more than 0 and at most {most / 86_400:,.0f}d, such as 90s or 30m")
    return total


def seconds_or_none(text: str) -> float:
    """A duration that may be none at all: `0`, `3s`."""
    return 0.0 if text.strip().lower() in ("0", "0s") else seconds(text)


_SIZES = {"b": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3, "k": 1024, "m": 1024**2, "g": 1024**3}


def size(text: str) -> int:
    """`500000`, `32MB`, `1.5g` in bytes; single letters count in 1,024s.

    >>> [size(text) for text in ("4096", "32MB", "1.5g")]
    [4096, 32000000, 1610612736]
    """
    word = text.strip().lower().replace("ib", "")
    digits = word.rstrip("bkmg")
    unit = word[len(digits) :] or "b"
    try:
        return int(float(digits) * _SIZES[unit])
    except (KeyError, ValueError, OverflowError):
        raise BadValue("The size", text, "a number of bytes, such as 500000 or 32MB") from None


def pair(text: str) -> tuple[str, object]:
    """`KEY=JSON` as key and value; what is no JSON is text."""
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise BadValue("--metadata", text, "KEY=VALUE, where VALUE is JSON or text; KEY=null takes the key away")
    import json

    try:
        return key.strip(), json.loads(value)
    except (ValueError, RecursionError):
        return key.strip(), value


def assignment(text: str) -> tuple[str, str]:
    """`NAME=VALUE` as a variable."""
    name, sign, value = text.partition("=")
    if not sign or not name or "\0" in text:
        raise BadValue("--env", text, "NAME=VALUE, such as LANG=C")
    return name, value


def external(text: str) -> dict[str, str]:
    """`SYSTEM:ID[:URL]` as a reference into another system."""
    system, _, rest = text.partition(":")
    its_id, _, url = rest.partition(":")
    if not system or not its_id:
        raise BadValue("--external", text, "SYSTEM:ID or SYSTEM:ID:URL, such as github:42:https://example.org/42")
    return {"system": system, "id": its_id, **({"url": url} if url else {})}


def whole(text: str) -> int:
    """A whole number."""
    if not text.strip().removeprefix("-").isdecimal():
        raise UsageError(f"{text!r} is no whole number.")
    return int(text)


def dollars(text: str) -> float:
    """An amount of money: `0.50`, `$2`."""
    try:
        amount = float(text.strip().removeprefix("$"))
    except ValueError:
        amount = -1.0
    if not 0 < amount < float("inf"):
        raise BadValue("The amount", text, "dollars, such as 0.50 or 2")
    return amount


def _number(digits: str, text: str) -> float:
    try:
        return float(digits)
    except ValueError:
        raise _bad_duration(text) from None


def _bad_duration(text: str) -> BadValue:
    return BadValue("A duration", text, "seconds, or a number with s, m, h or d, such as 90s, 30m or 1h30m")
