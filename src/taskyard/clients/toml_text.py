"""
A TOML text changed in one table, and nowhere else. Pure.

Python reads TOML and does not write it, and a writer would lose comments and order. So the text is taken apart no
further than into tables and statements, by where they stand; what each of them says is asked of `tomllib`.
"""

from __future__ import annotations

import json

from taskyard.clients.json_text import NotEditable
from taskyard.shapes import as_list, as_object
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Key = tuple[str, ...]


class Span(NamedTuple):
    """Some whole lines: a header, or a key with its value."""

    start: int
    end: int


class Table(NamedTuple):
    """A header with the statements below it; comments and empty lines behind the last one are not part of it."""

    key: Key
    header: Span
    statements: tuple[Span, ...]

    @property
    def start(self) -> int:
        """Where its header begins."""
        return self.header.start

    @property
    def end(self) -> int:
        """Behind its last statement."""
        return self.statements[-1].end if self.statements else self.header.end


def parsed(text: str) -> dict[str, object]:
    """What a text says."""
    import tomllib  # 15 ms that only those who need it pay

    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise NotEditable(f"it is no TOML: {error}") from error


def tables(text: str) -> Iterator[Table]:
    """The tables of a text that is TOML, in order; what stands before the first header is none."""
    header: Span | None = None
    statements: list[Span] = []
    for span in _spans(text):
        if text[span.start] == "[":
            if header is not None:
                yield Table(_key(text, header), header, tuple(statements))
            header, statements = span, []
        else:
            statements.append(span)
    if header is not None:
        yield Table(_key(text, header), header, tuple(statements))


def below(text: str, key: Key) -> list[Table]:
    """The table `key` and those inside it."""
    return [table for table in tables(text) if table.key[: len(key)] == key]


def first_key(text: str, statement: Span) -> str:
    """The key a statement sets, up to its first dot."""
    return next(iter(parsed(text[statement.start : statement.end])))


def cut(text: str, spans: Sequence[Span]) -> str:
    """`text` without some parts of it."""
    for span in sorted(spans, reverse=True):
        before, after = text[: span.start], text[span.end :]
        glue = "\n" if before and after and not before.endswith("\n") and not after.startswith(("\n", "\r\n")) else ""
        text = before + glue + after
    return text


def written(value: object) -> str:
    """A value as TOML: text, numbers, lists and tables of them, on one line."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    if (items := as_list(value)) is not None:
        return f"[{', '.join(map(written, items))}]"
    if (table := as_object(value)) is not None:
        return "{" + ", ".join(f"{written(key)} = {written(inner)}" for key, inner in table.items()) + "}"
    return json.dumps(value)


def table_text(key: Key, pairs: Mapping[str, object], newline: str = "\n") -> str:
    """A table, from its header on."""
    lines = [f"[{'.'.join(key)}]", *(f"{name} = {written(value)}" for name, value in pairs.items())]
    return "".join(f"{line}{newline}" for line in lines)


def same(one: object, other: object) -> bool:
    """Whether two values read from TOML say the same; not a number is the same as itself here."""
    a, b = as_object(one), as_object(other)
    if a is not None and b is not None:
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    x, y = as_list(one), as_list(other)
    if x is not None and y is not None:
        return len(x) == len(y) and all(map(same, x, y))
    return type(one) is type(other) and repr(one) == repr(other)


def _key(text: str, header: Span) -> Key:
    value: object = parsed(text[header.start : header.end])
    key: list[str] = []
    while inner := as_object(value):
        name, value = next(iter(inner.items()))
        key.append(name)
        items = as_list(value)
        value = items[0] if items else value
    return tuple(key)


def _spans(text: str) -> Iterator[Span]:
    """Every header and statement."""
    at = 0
    while at < len(text):
        if text[at] in " \t\r\n":
            at += 1
        elif text[at] == "#":
            at = _line_end(text, at)
        else:
            end = _statement_end(text, at)
            yield Span(at, end)
            at = end


def _statement_end(text: str, at: int) -> int:
    """Behind the line on which what begins at `at` ends."""
    depth = 0
    while at < len(text):
        char = text[at]
        if char in "\"'":
            at = _string_end(text, at)
            continue
        if char == "#":
            at = text.find("\n", at)
            if at < 0:
                break
            continue
        if char == "\n" and depth <= 0:
            return at + 1
        depth += (char in "[{") - (char in "]}")
        at += 1
    return len(text)


def _string_end(text: str, at: int) -> int:
    """Behind the string that begins at `at`."""
    quote = text[at]
    mark = quote * 3 if text.startswith(quote * 3, at) else quote
    at += len(mark)
    while at < len(text):
        if text[at] == "\\" and quote == '"':
            at += 2
        elif text.startswith(mark, at):
            at += len(mark)
            while len(mark) == 3 and text[at : at + 1] == quote:
                at += 1  # up to two more quotes belong to the string
            return at
        else:
            at += 1
    return at


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1
