"""
Keys as a person wants them: `[keys]` in config.toml, checked before anything is shown.

    [keys]
    claim = "C"
    stop = "ctrl+x,delete"
"""

from __future__ import annotations

import os

from taskyard import config
from taskyard.errors import BadValue
from taskyard.names import nearest
from taskyard.shapes import as_object
from taskyard.tui.keys import BY_ID, KEYS, said

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: What stands before a key that is held together with it.
_HELD = ("ctrl", "shift", "alt", "super")

#: Keys that have a name and no character.
_NAMED = frozenset(
    ["enter", "escape", "tab", "space", "backspace", "delete", "insert", "home", "end", "pageup", "pagedown"]
    + ["up", "down", "left", "right"]
    + [f"f{number}" for number in range(1, 25)]
)

#: Characters that bindings know by other names than their own.
_RENAMED = {
    "solidus": "slash",
    "reverse_solidus": "backslash",
    "commercial_at": "at",
    "hyphen_minus": "minus",
    "plus_sign": "plus",
    "low_line": "underscore",
}


def load(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The keys that differ from the table, by id, as bindings take them.

    Raises:
        Damaged: the settings file is not TOML.
        BadValue: there is no such id or key, or one key would do two things.
    """
    return checked(_table(os.environ if environ is None else environ))


def checked(table: Mapping[str, object]) -> dict[str, str]:
    """A table as somebody wrote it, as bindings take it; see `load`."""
    found: dict[str, str] = {}
    for name, value in table.items():
        if name not in BY_ID or name == "to_background":
            near = nearest(name, BY_ID)
            known = f"one of {', '.join(row.id for row in KEYS)}"
            if name == "to_background":
                known = "the setting background_key, which is for `taskyard run` too"
            raise BadValue("[keys]", name, f"{near[0]!r}" if near and near[0] != name else known)
        found[name] = _keys(name, value)
    _refuse_doubles(found)
    return found


def _keys(name: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise BadValue(f"keys.{name}", value, 'a key such as "x", "ctrl+g" or "f2"')
    return ",".join(_key(name, part.strip()) for part in value.split(","))


def _key(name: str, text: str) -> str:
    if len(text) == 1 and text.isprintable() and text != " ":
        return _character(text)
    *held, last = text.lower().split("+")
    if len(last) == 1 and held:
        last = _character(last)
    elif last not in _NAMED:
        last = text.split("+")[-1] if not held else last
        near = nearest(last.lower(), [*_NAMED, *_characters()])
        if last not in _characters():
            expected = f'"{"+".join([*held, near[0]])}"' if near else 'a key such as "x", "ctrl+g" or "f2"'
            raise BadValue(f"keys.{name}", text, expected)
    if wrong := [word for word in held if word not in _HELD]:
        near = nearest(wrong[0], _HELD)
        raise BadValue(f"keys.{name}", text, f"{near[0] if near else ', '.join(_HELD)} and a key")
    return "+".join([*held, last])


def _character(char: str) -> str:
    """A character by the name that bindings know it by."""
    if char.isalnum():
        return char
    import unicodedata

    name = unicodedata.name(char, char).lower().replace("-", "_").replace(" ", "_")
    return _RENAMED.get(name, name)


def _characters() -> frozenset[str]:
    return frozenset(_character(chr(code)) for code in range(0x21, 0x7F) if not chr(code).isalnum())


def _refuse_doubles(found: Mapping[str, str]) -> None:
    """One key does one thing, whatever has the focus: nobody has to remember where they are."""
    owner: dict[str, str] = {}
    for row in KEYS:
        for key in filter(None, found.get(row.id, row.keys).split(",")):
            if key in owner:
                mine = row.id if row.id in found else owner[key]
                other = owner[key] if mine == row.id else row.id
                raise BadValue(f"keys.{mine}", said(key), f"another key: that one is {other}'s")
            owner[key] = row.id


def _table(env: Mapping[str, str]) -> Mapping[str, object]:
    table = config.in_file(env).get("keys", {})
    if (keys := as_object(table)) is None:
        raise BadValue("keys", table, 'a table: `[keys]` and lines such as `claim = "C"`')
    return keys
