"""
A JSON text changed in a few places, and nowhere else. Pure.

Other people's configuration keeps its order, its indentation and its numbers as they were written: what is changed
is cut out of the text, or into it, by where it stands. Every change is read back and compared before it counts.
"""

from __future__ import annotations

import json
from json import JSONDecoder

from taskyard.shapes import as_list, as_object
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    Path = tuple[str | int, ...]  #: keys of objects and positions in lists, from the root

_SPACE = " \t\r\n"
_BOM = "\ufeff"
_DECODER = JSONDecoder(strict=False)


class NotEditable(Exception):
    """Why a text cannot be changed; for whoever knows which file it is."""


class _Item(NamedTuple):
    """A member of an object, or an item of a list, by where it stands."""

    key: str | int
    start: int
    at: int  #: where its value begins
    end: int


class _Container(NamedTuple):
    """An object or a list, by where it stands."""

    open: int
    close: int  #: of its closing bracket
    items: tuple[_Item, ...]

    def find(self, key: str | int) -> _Item | None:
        """The item under `key`; of several the last, which is the one that counts."""
        return next((item for item in reversed(self.items) if item.key == key), None)


class JsonText:
    """A JSON object as text. It changes by `put`, `add` and `drop`, or stays as it is."""

    def __init__(self, text: str) -> None:
        """Nothing but space counts as an empty object."""
        self.text = text if text.strip(_SPACE + _BOM) else "{}\n"
        self.data = _parsed(self.text)

    def get(self, path: Path) -> object:
        """What stands at `path`; None if there is nothing."""
        value: object = self.data
        for key in path:
            value = _child(value, key)
        return value

    def has(self, path: Path) -> bool:
        """Whether anything stands at `path`, be it null."""
        parent = self.get(path[:-1])
        found = as_object(parent)
        return path[-1] in found if found is not None else _child(parent, path[-1]) is not None

    def put(self, path: Path, value: object) -> None:
        """Set what stands at `path`; objects on the way there are made."""
        there, left = self._deepest(path)
        if not left:
            item = self._item(path)
            lead = _line_lead(self.text, item.start)
            told = _dumped(value, self._unit(), f"{self._newline()}{lead}")
            self._become(self.text[: item.at] + told + self.text[item.end :], path, value)
            return
        if not isinstance(self.get(there), dict):
            raise NotEditable(f"{named(there)} is no object")
        inner = value
        for key in reversed(left[1:]):
            inner = {key: inner}
        self._insert(there, left[0], inner)

    def add(self, path: Path, value: object) -> None:
        """Append to the list at `path`, which is made if there is none."""
        found = self.get(path)
        if found is None:
            self.put(path, [value])
        elif (items := as_list(found)) is None:
            raise NotEditable(f"{named(path)} is no list")
        else:
            self._insert(path, len(items), value)

    def drop(self, path: Path) -> None:
        """Take out what stands at `path`, if anything does."""
        if self._deepest(path)[1]:
            return
        inside = self._container(path[:-1])
        item = self._item(path)
        place = inside.items.index(item)
        if len(inside.items) == 1:
            start, end = inside.open + 1, inside.close
        elif place == len(inside.items) - 1:
            start, end = inside.items[place - 1].end, item.end
        else:
            start, end = item.start, inside.items[place + 1].start
        self._become(self.text[:start] + self.text[end:], path, None, dropped=True)

    def _insert(self, there: Path, key: str | int, value: object) -> None:
        """Put a new item at the end of the object or list at `there`, in the manner of those before it."""
        inside = self._container(there)
        label = f"{json.dumps(key, ensure_ascii=False)}: " if isinstance(key, str) else ""
        unit = self._unit()
        if inside.items:
            before = self.text[inside.open + 1 : inside.items[0].start]
            lead = before[before.rindex("\n") + 1 :] if "\n" in before else ""
            apart = f"{self._newline()}{lead}" if "\n" in before else " "
            told = _dumped(value, unit if "\n" in before else "", f"{self._newline()}{lead}")
            at = inside.items[-1].end
            new = f"{self.text[:at]},{apart}{label}{told}{self.text[at:]}"
        else:
            outer = _line_lead(self.text, inside.open)
            newline = f"{self._newline()}{outer}" if unit else ""
            body = f"{newline}{unit}{label}{_dumped(value, unit, newline + unit)}{newline}"
            new = f"{self.text[: inside.open + 1]}{body}{self.text[inside.close :]}"
        self._become(new, (*there, key), value)

    def _become(self, text: str, path: Path, value: object, *, dropped: bool = False) -> None:
        """Take over a new text, if it says what it should and nothing else has changed."""
        found = _parsed(text)
        if json.dumps(found) != json.dumps(_changed(self.data, path, value, dropped)):
            raise NotEditable(f"{named(path)} cannot be changed without changing something else")
        self.text, self.data = text, found

    def _deepest(self, path: Path) -> tuple[Path, Path]:
        """How far `path` leads, and what is left of it."""
        value: object = self.data
        for depth, key in enumerate(path):
            if (found := as_object(value)) is not None:
                if key not in found:
                    return path[:depth], path[depth:]
            elif _child(value, key) is None:
                raise NotEditable(f"{named(path[:depth])} is no object")
            value = _child(value, key)
        return path, ()

    def _container(self, path: Path) -> _Container:
        at = _skip(self.text, 1 if self.text.startswith(_BOM) else 0)
        for key in path:
            item = _container(self.text, at).find(key)
            if item is None:
                raise NotEditable(f"{named(path)} is not there")
            at = item.at
        return _container(self.text, at)

    def _item(self, path: Path) -> _Item:
        item = self._container(path[:-1]).find(path[-1])
        if item is None:
            raise NotEditable(f"{named(path)} is not there")
        return item

    def _unit(self) -> str:
        """One step of indentation; "" where all stands on one line."""
        inside = self._container(())
        if not inside.items:
            return "  "
        before = self.text[inside.open + 1 : inside.items[0].start]
        return before[before.rindex("\n") + 1 :] if "\n" in before else ""

    def _newline(self) -> str:
        return "\r\n" if "\r\n" in self.text else "\n"


def named(path: Path) -> str:
    """`hooks.Stop[0]`, for people."""
    text = ""
    for key in path:
        text += f"[{key}]" if isinstance(key, int) else f".{key}"
    return text.removeprefix(".") or "it"


def _parsed(text: str) -> dict[str, object]:
    try:
        found = as_object(json.loads(text.removeprefix(_BOM)))
    except (ValueError, RecursionError) as error:
        raise NotEditable(f"it is no plain JSON, which has no comments and no trailing commas: {error}") from error
    if found is None:
        raise NotEditable("it is JSON, but no object")
    return found


def _child(value: object, key: str | int) -> object:
    if isinstance(key, str):
        return (as_object(value) or {}).get(key)
    items = as_list(value) or []
    return items[key] if key < len(items) else None


def _changed(value: object, path: Path, new: object, dropped: bool) -> object:
    """`value` with another one at `path`, or none."""
    key, rest = path[0], path[1:]
    if (found := as_object(value)) is not None and isinstance(key, str):
        if dropped and not rest:
            return {name: inner for name, inner in found.items() if name != key}
        return {**found, key: _changed(found[key], rest, new, dropped) if rest else new}
    items, at = as_list(value) or [], int(key)
    inner = [] if dropped and not rest else [_changed(items[at], rest, new, dropped) if rest else new]
    return [*items[:at], *inner, *items[at + 1 :]]


def _container(text: str, at: int) -> _Container:
    """The object or list whose bracket is at `at`."""
    is_object = text[at] == "{"
    items: list[_Item] = []
    here = _skip(text, at + 1)
    while text[here] not in "}]":
        start, key = here, len(items)
        name: str | int = key
        if is_object:
            found, here = _DECODER.raw_decode(text, here)
            name = str(found)
            here = _skip(text, _skip(text, here) + 1)  # behind the colon
        value_at = here
        here = _DECODER.raw_decode(text, here)[1]
        items.append(_Item(name, start, value_at, here))
        here = _skip(text, here)
        if text[here] == ",":
            here = _skip(text, here + 1)
    return _Container(at, here, tuple(items))


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _line_lead(text: str, at: int) -> str:
    """The space at the beginning of the line around `at`."""
    start = text.rfind("\n", 0, at) + 1
    end = start
    while end < len(text) and text[end] in " \t":
        end += 1
    return text[start:end]


def _dumped(value: object, unit: str, newline: str) -> str:
    """`value` as text: on one line, or in steps of `unit` on lines that begin with `newline`."""
    return json.dumps(value, ensure_ascii=False, indent=unit or None).replace("\n", newline)


def lines(values: Sequence[tuple[str, Path, object]]) -> list[str]:
    """What was changed, a line each: `+ mcpServers.taskyard = {…}`."""
    return [
        f"{sign} {named(path)}" + ("" if value is None else f" = {json.dumps(value, ensure_ascii=False)}")
        for sign, path, value in values
    ]
