"""
Our table of a TOML configuration: put in, and taken out again, every other byte as it was. Pure.

A new table goes to the end of the text, and the record keeps it letter for letter: taken out, the text is what it was.
"""

from __future__ import annotations

from taskyard.clients.json_config import Edited, is_our_server
from taskyard.clients.json_text import NotEditable
from taskyard.clients.starting import NAME
from taskyard.clients.toml_text import Span, below, cut, first_key, parsed, same, table_text, written
from taskyard.shapes import as_object, as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.clients.toml_text import Table

SERVERS = "mcp_servers"
_KEY = (SERVERS, NAME)
_NAMED = ".".join(_KEY)


def installed(text: str, server: Mapping[str, object], record: Mapping[str, object] | None = None) -> Edited:
    """`text` with our table in it, as it is wished now."""
    known: dict[str, object] = dict(record or {})
    current = _server(text)
    if current is not None and all(same(current.get(key), value) for key, value in server.items()):
        return Edited(text, (), known)
    if current is None:
        added = _apart(text) + table_text(_KEY, server, _newline(text))
        known["added"], new = added, text + added
    elif is_our_server(current):
        added = as_text(known.get("added"))
        if _only(text, added) >= 0:  # as we left it
            again = added[: added.index("[")] + table_text(_KEY, server, _newline(text))
            known["added"], new = again, text.replace(added, again)
        else:
            new = _updated(text, server)
    else:
        ours = _tables(text)
        known["before"] = "".join(text[table.start : table.end] for table in ours)
        new = _with_table(text, table_text(_KEY, server, _newline(text)))
    _check(text, new, {**(current or {}), **server} if current is not None and is_our_server(current) else dict(server))
    return Edited(new, _diff(text, new), known)


def removed(text: str, record: Mapping[str, object] | None = None) -> Edited:
    """`text` without our table."""
    current = _server(text)
    if current is None:
        return Edited(text, (), {})
    if not is_our_server(current):
        return Edited(text, (), {}, (f"{_NAMED} starts something else: it stays.",))
    before, added = as_text((record or {}).get("before")), as_text((record or {}).get("added"))
    if before:
        new = _with_table(text, before)
        _check(text, new, _server(new))
    else:
        new = cut(text, [Span(at, at + len(added))]) if (at := _only(text, added)) >= 0 else _without_table(text)
        if _server(new) is not None:  # somebody added tables of their own to it
            new = _without_table(text)
        _check(text, new, None)
    return Edited(new, _diff(text, new), {})


def _server(text: str) -> dict[str, object] | None:
    return as_object((as_object(parsed(text).get(SERVERS)) or {}).get(NAME))


def _tables(text: str) -> list[Table]:
    """Our table and those in it.

    Raises:
        NotEditable: it is not written as a table of its own.
    """
    found = below(text, _KEY)
    if not any(table.key == _KEY for table in found):
        raise NotEditable(f"{_NAMED} is not written as a table [{_NAMED}]; take it out by hand")
    return found


def _updated(text: str, server: Mapping[str, object]) -> str:
    """`text` with our keys set anew; what somebody set for us besides, such as approvals, stays."""
    newline = _newline(text)
    main = next(table for table in _tables(text) if table.key == _KEY)
    old = [span for span in main.statements if first_key(text, span) in server]
    old += [
        Span(table.start, table.end)
        for table in below(text, _KEY)
        if table.key[: len(_KEY) + 1] in [(*_KEY, key) for key in server]
    ]
    shorter = cut(text, old)
    main = next(table for table in _tables(shorter) if table.key == _KEY)
    lines = "".join(f"{key} = {written(value)}{newline}" for key, value in server.items())
    head = shorter[: main.header.end]
    return f"{head}{'' if head.endswith(newline) else newline}{lines}{shorter[main.header.end :]}"


def _with_table(text: str, table: str) -> str:
    """`text` with `table` in the place of ours and those in it."""
    ours = _tables(text)
    start = ours[0].start
    rest = cut(text, [Span(one.start, one.end) for one in ours])
    return rest[:start] + table + rest[start:]


def _without_table(text: str) -> str:
    return cut(text, [Span(table.start, table.end) for table in _tables(text)])


def _check(old: str, new: str, server: Mapping[str, object] | None) -> None:
    """See that nothing but our table changed."""
    expected = parsed(old)
    try:
        found = parsed(new)
    except NotEditable:  # it was TOML until now
        raise NotEditable(
            f"{SERVERS} is written in one piece, {SERVERS} = {{…}}, to which no table can be added;"
            f" write each server as a table [{SERVERS}.NAME]"
        ) from None
    servers = dict(as_object(expected.get(SERVERS)) or {})
    servers.pop(NAME, None)
    if server is not None:
        servers[NAME] = server
    expected[SERVERS] = servers
    found.setdefault(SERVERS, {})
    if not same(found, expected):
        raise NotEditable(f"{_NAMED} cannot be changed without changing something else; change it by hand")


def _only(text: str, part: str) -> int:
    """Where `part` stands in `text`, if it does exactly once."""
    return text.find(part) if part and text.count(part) == 1 else -1


def _apart(text: str) -> str:
    """What separates a new table from the text before it."""
    newline = _newline(text)
    if not text.strip():
        return ""
    return newline if text.endswith("\n") else newline * 2


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _diff(old: str, new: str) -> tuple[str, ...]:
    import difflib

    lines = difflib.ndiff(old.splitlines(), new.splitlines())
    return tuple(line.rstrip() for line in lines if line[0] in "+-" and line[1:].strip())
