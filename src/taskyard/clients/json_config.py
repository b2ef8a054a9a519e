"""
Our parts of a JSON configuration: a server, variables, hooks. Put in, and taken out again. Pure.

What is ours is known by what it does: a server or a hook that starts Taskyard is ours, whoever moved it since. Of
variables only those are ours that a record says we set, as long as they are what we set. A record also knows what
stood in the place of our parts before, and which objects and lists exist only because of us.
"""

from __future__ import annotations

from taskyard.clients.json_text import JsonText, lines, named
from taskyard.clients.starting import NAME, is_ours
from taskyard.shapes import as_list, as_object
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from taskyard.clients.json_text import Path

SERVERS, ENV, HOOKS = "mcpServers", "env", "hooks"
_ALLOW: Path = ("permissions", "allow")


class JsonWish(NamedTuple):
    """What one file is to hold."""

    server: Mapping[str, object] | None = None
    env: Mapping[str, str] | None = None
    hooks: Mapping[str, Mapping[str, object]] | None = None  #: by event
    allow: tuple[str, ...] = ()  #: permission rules of Claude Code
    servers: str = SERVERS  #: the object that holds the servers


class Edited(NamedTuple):
    """A text as it is to be, what changed in it, what is to be known about it later, and what people should know."""

    text: str
    changes: tuple[str, ...]
    record: dict[str, object]
    notes: tuple[str, ...] = ()


class _Work:
    """One text in the making."""

    def __init__(self, text: str, record: Mapping[str, object] | None, servers: str) -> None:
        self.server: Path = (servers, NAME)
        self.doc = JsonText(text)
        self.done: list[tuple[str, Path, object]] = []
        self.notes: list[str] = []
        known = record or {}
        self.before = _pairs(known.get("before"))
        self.keys = _pairs(known.get("keys"))
        self.rules = [rule for rule in as_list(known.get("rules")) or [] if isinstance(rule, str)]
        self.made = [_path(one) for one in as_list(known.get("made")) or []]

    def put(self, path: Path, value: object) -> None:
        """Set a value, and remember which objects had to be made for it."""
        there = self.doc.has(path)
        if there and self.doc.get(path) == value:
            return
        sign = "~" if there else "+"
        self._remember_missing(path)
        self.doc.put(path, value)
        self.done.append((sign, path, value))

    def add(self, path: Path, value: object) -> None:
        """Append a value."""
        self._remember_missing((*path, 0))
        self.doc.add(path, value)
        self.done.append(("+", path, value))

    def drop(self, path: Path) -> None:
        """Take a value out."""
        if self.doc.has(path):
            self.doc.drop(path)
            self.done.append(("-", path, None))

    def give_back(self, path: Path) -> None:
        """What stood at `path` before us stands there again; nothing, if that was nothing."""
        if path in self.before:
            self.put(path, self.before.pop(path))
        else:
            self.drop(path)

    def edited(self) -> Edited:
        """What came of it."""
        record: dict[str, object] = {
            "before": [[list(path), value] for path, value in self.before.items()],
            "keys": [[list(path), value] for path, value in self.keys.items()],
            "made": [list(path) for path in self.made],
            **({"rules": self.rules} if self.rules else {}),
        }
        return Edited(self.doc.text, tuple(lines(self.done)), record, tuple(self.notes))

    def _remember_missing(self, path: Path) -> None:
        for depth in range(1, len(path)):
            inner = path[:depth]
            if not self.doc.has(inner) and inner not in self.made and inner != self.server:
                self.made.append(inner)


def installed(text: str, wish: JsonWish, record: Mapping[str, object] | None = None) -> Edited:
    """`text` with our parts in it, as they are wished now."""
    work = _Work(text, record, wish.servers)
    if wish.server is not None:
        _put_server(work, wish.server)
    _put_env(work, wish.env or {})
    for event, entry in (wish.hooks or {}).items():
        _put_hook(work, event, entry)
    if not wish.hooks:
        _drop_hooks(work)
    for rule in wish.allow:
        if rule not in (as_list(work.doc.get(_ALLOW)) or []):
            work.add(_ALLOW, rule)
            work.rules.append(rule)
    return work.edited()


def removed(text: str, record: Mapping[str, object] | None = None, *, servers: str = SERVERS) -> Edited:
    """`text` without our parts."""
    work = _Work(text, record, servers)
    server = as_object(work.doc.get(work.server))
    if server is not None and is_our_server(server):
        work.give_back(work.server)
    elif work.doc.get(work.server) is not None:
        work.notes.append(f"{named(work.server)} starts something else: it stays.")
    for path in list(work.keys):
        _give_back_key(work, path)
    _drop_hooks(work)
    _drop_rules(work)
    for path in sorted(work.made, key=len, reverse=True):
        if work.doc.get(path) in ({}, []):
            work.doc.drop(path)
    return work.edited()


def is_our_server(server: Mapping[str, object]) -> bool:
    """Whether a server is Taskyard."""
    command = server.get("command")  # opencode has all words in one list
    return is_ours([*(as_list(command) or [command]), *(as_list(server.get("args")) or [])], "mcp")


def _put_server(work: _Work, wished: Mapping[str, object]) -> None:
    """Ours is brought up to date, with whatever somebody set for it besides; another of our name makes room."""
    found = work.doc.get(work.server)
    current = as_object(found)
    if current is not None and is_our_server(current):
        for key, value in wished.items():
            work.put((*work.server, key), value)
        return
    if work.doc.has(work.server):
        work.before[work.server] = found
    work.put(work.server, dict(wished))


def _put_env(work: _Work, wished: Mapping[str, str]) -> None:
    for known in list(work.keys):
        if known[-1] not in wished:
            _give_back_key(work, known)
    for name, value in wished.items():
        path: Path = (ENV, name)
        found = work.doc.get(path)
        if found == value:
            continue  # ours from before, or the user's own, which is not for us to take away
        if work.doc.has(path) and path not in work.keys:
            work.before[path] = found
        work.put(path, value)
        work.keys[path] = value


def _give_back_key(work: _Work, path: Path) -> None:
    value, found = work.keys.pop(path), work.doc.get(path)
    if found == value:
        work.give_back(path)
    elif found is not None:
        work.before.pop(path, None)
        work.notes.append(f"{named(path)} was changed since: it stays.")


def _put_hook(work: _Work, event: str, wished: Mapping[str, object]) -> None:
    ours = list(_our_hooks(work.doc, event))
    if not ours:
        work.add((HOOKS, event), {"hooks": [dict(wished)]})
        return
    for path in reversed(ours[1:]):
        _drop_hook(work, path)
    work.put(ours[0], dict(wished))


def _drop_hooks(work: _Work) -> None:
    for event in list(as_object(work.doc.get((HOOKS,))) or {}):
        for path in reversed(list(_our_hooks(work.doc, event))):
            _drop_hook(work, path)


def _drop_hook(work: _Work, path: Path) -> None:
    """Take out a hook, and the group around it if nothing else is in it."""
    group = work.doc.get(path[:-2])
    alone = as_object(group) is not None and len(as_list(work.doc.get(path[:-1])) or []) == 1
    work.drop(path[:-2] if alone else path)


def _drop_rules(work: _Work) -> None:
    """Take out the permission rules that we put in."""
    found = as_list(work.doc.get(_ALLOW)) or []
    for at in reversed(range(len(found))):
        if found[at] in work.rules:
            work.rules.remove(str(found[at]))
            work.drop((*_ALLOW, at))
    work.rules.clear()


def _our_hooks(doc: JsonText, event: str) -> Iterator[Path]:
    """Where hooks of ours stand."""
    import shlex

    for at, group in enumerate(as_list(doc.get((HOOKS, event))) or []):
        for place, hook in enumerate(as_list((as_object(group) or {}).get("hooks")) or []):
            said = (as_object(hook) or {}).get("command")
            try:
                words = shlex.split(said) if isinstance(said, str) else []
            except ValueError:
                continue  # no command line
            if words and is_ours(words, "hook"):
                yield (HOOKS, event, at, "hooks", place)


def _pairs(raw: object) -> dict[Path, object]:
    found = [as_list(one) or [] for one in as_list(raw) or []]
    return {_path(pair[0]): pair[1] for pair in found if len(pair) == 2}


def _path(raw: object) -> Path:
    return tuple(key for key in as_list(raw) or [] if isinstance(key, (str, int)))
