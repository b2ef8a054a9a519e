"""In-place edits of client configuration: our start command and entries in JSON and TOML. Pure.

Start command: it works without an activated environment. Clients pass few variables to a server they start
(HOME, LOGNAME, PATH, SHELL, TERM, USER): all others that determine where our files are go into the
configuration.

JSON and TOML: the user's text keeps its order, indentation, comments and numbers. A change is cut out of or
inserted into the text by position; the result is parsed and compared with the expected data before it counts.
TOML is split into tables and statements only, and each is parsed with `tomllib`: a TOML writer would lose
comments and order.

Ours: a server or hook whose command starts Taskyard is ours, even if it was moved. Variables are ours only if a
record lists them and their value is unchanged. The record also keeps what our entries replaced and which
objects and lists exist only because of us. A new TOML table goes to the end of the text and is recorded
verbatim: removing it restores the text byte for byte.
"""

from __future__ import annotations

import json
import os
import sys
from json import JSONDecoder

from taskyard import config
from taskyard.core.values import NamedTuple, as_list, as_object, as_text
from taskyard.errors import BadValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


NAME = "taskyard"

#: Valid only for the current process, not for later ones.
_TRANSIENT = ("TASKYARD_INSTANCE", "TASKYARD_JOB", "TASKYARD_SESSION", "TASKYARD_NOTICE", "TASKYARD_PROJECT_DIR")
_TRANSIENT_PREFIXES = ("TASKYARD_HOOK_",)

#: Secrets such as TASKYARD_MCP_TOKEN: a configuration may be shared, shown and copied.
_SECRET_SUFFIXES = ("_TOKEN", "_SECRET", "_PASSWORD")

#: Inside a job or an agent, TASKYARD_AGENT is not the client's name.
_JOB_VARIABLES = ("TASKYARD_JOB", "TASKYARD_INSTANCE")

#: Folders, made absolute: a server may run in another directory and must find the same ones.
_FOLDERS = ("TASKYARD_HOME", "TASKYARD_TASKS_DIR", "CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME")


class StartCommand(NamedTuple):
    """How a client starts Taskyard."""

    words: tuple[str, ...]  #: the command without its subcommand
    env: Mapping[str, str]  #: environment of the server
    agent: str | None = None  #: name of the acting agent, if given

    @property
    def arguments(self) -> list[str]:
        """The arguments after the program's name to serve MCP."""
        return [*self.words[1:], "mcp", *(["--agent", self.agent] if self.agent else [])]

    def server(self) -> dict[str, object]:
        """Return a stdio MCP server entry, as most clients write it."""
        return {"command": self.words[0], "args": self.arguments, "env": dict(self.env)}

    def hook(self, event: str) -> str:
        """Return the command line of a hook."""
        import shlex

        return shlex.join([*self.words, "hook", event, *(["--by", self.agent] if self.agent else [])])

    @property
    def own_env(self) -> dict[str, str]:
        """The variables that only Taskyard reads."""
        return {name: value for name, value in self.env.items() if name.startswith("TASKYARD_")}


def make_start_command(
    *, list_name: str | None, agent: str | None, env: Mapping[str, str] | None = None
) -> StartCommand:
    """Return how a client should start Taskyard, given the current environment."""
    env = os.environ if env is None else env
    return StartCommand(resolve_command(sys.argv[:1]), server_env(env, list_name=list_name, agent=agent), agent)


def resolve_command(called: Sequence[str]) -> tuple[str, ...]:
    """Return the absolute command: the program as called, else this interpreter with our module.

    -P prevents that a folder named taskyard in the user's project is imported instead.
    """
    program = called[0] if called else ""
    if os.path.basename(program) == NAME and os.path.isfile(program) and os.access(program, os.X_OK):
        return (os.path.abspath(program),)
    return (os.path.abspath(sys.executable), "-P", "-m", NAME)


def server_env(env: Mapping[str, str], *, list_name: str | None, agent: str | None) -> dict[str, str]:
    """Return the variables a server needs to find the same files and settings as this process."""
    chosen = {name: value for name, value in sorted(env.items()) if value and _is_persistent(name)}
    if agent or any(env.get(name) for name in _JOB_VARIABLES):
        chosen.pop("TASKYARD_AGENT", None)  # given on the command line, or not the client's
    if list_name:
        chosen["TASKYARD_LIST"] = list_name
    if "TASKYARD_STORE" in chosen:
        from taskyard.config import strip_password

        chosen["TASKYARD_STORE"] = strip_password(chosen["TASKYARD_STORE"])
    if config.env_folder("XDG_STATE_HOME", env):
        chosen["TASKYARD_HOME"] = config.home(env)
    for name in _FOLDERS:
        if name in chosen:
            if (folder := config.env_folder(name, chosen)) is not None:
                chosen[name] = folder
            else:
                del chosen[name]
    for name, value in chosen.items():
        _check_value(name, value)
    return dict(sorted(chosen.items()))


def is_own_command(words: Sequence[object], verb: str) -> bool:
    """Return whether a command line was made by `StartCommand`, wherever Taskyard was installed then."""
    plain = [word for word in words if isinstance(word, str)]
    if len(plain) != len(words) or verb not in plain[1:]:
        return False
    before = plain[: plain.index(verb, 1)]
    return os.path.basename(before[0]) == NAME if len(before) == 1 else before[-2:] == ["-m", NAME]


def _is_persistent(name: str) -> bool:
    if name in ("CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME"):
        return True
    if name.endswith(_SECRET_SUFFIXES) or name in _TRANSIENT or name.startswith(_TRANSIENT_PREFIXES):
        return False
    return name.startswith("TASKYARD_")


def _check_value(name: str, value: str) -> None:
    """Refuse values that a client would alter."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadValue(name, value, "text that a configuration file can hold") from None
    if "${" in value:
        raise BadValue(name, value, "a value without ${, which clients replace by variables")


if TYPE_CHECKING:
    Path = tuple[str | int, ...]  #: keys of objects and positions in lists, from the root

_SPACE = " \t\r\n"
_BOM = "\ufeff"
_DECODER = JSONDecoder(strict=False)


class NotEditable(Exception):
    """Why a text cannot be changed; the caller adds the file name."""


class _Item(NamedTuple):
    """The position of an object member or a list item."""

    key: str | int
    start: int
    at: int  #: start of its value
    end: int


class _Container(NamedTuple):
    """The position of an object or a list."""

    open: int
    close: int  #: position of its closing bracket
    items: tuple[_Item, ...]

    def find(self, key: str | int) -> _Item | None:
        """Return the item under `key`; of several the last, which is the effective one."""
        return next((item for item in reversed(self.items) if item.key == key), None)


class JsonText:
    """A JSON object as text, changed by `put`, `add` and `drop`; otherwise kept as it is."""

    def __init__(self, text: str) -> None:
        """Take a text; whitespace alone counts as an empty object."""
        self.text = text if text.strip(_SPACE + _BOM) else "{}\n"
        self.data = _parse_json(self.text)

    def get(self, path: Path) -> object:
        """Return the value at `path`; None if there is none."""
        value: object = self.data
        for key in path:
            value = _child(value, key)
        return value

    def has(self, path: Path) -> bool:
        """Return whether there is a value at `path`, even null."""
        parent = self.get(path[:-1])
        found = as_object(parent)
        return path[-1] in found if found is not None else _child(parent, path[-1]) is not None

    def put(self, path: Path, value: object) -> None:
        """Set the value at `path`; missing objects on the way are created."""
        there, left = self._deepest(path)
        if not left:
            item = self._item(path)
            lead = _indentation(self.text, item.start)
            told = _dump_json(value, self._unit(), f"{self._newline()}{lead}")
            self._become(self.text[: item.at] + told + self.text[item.end :], path, value)
            return
        if not isinstance(self.get(there), dict):
            raise NotEditable(f"{format_path(there)} is not an object")
        inner = value
        for key in reversed(left[1:]):
            inner = {key: inner}
        self._insert(there, left[0], inner)

    def add(self, path: Path, value: object) -> None:
        """Append to the list at `path`, creating it if missing."""
        found = self.get(path)
        if found is None:
            self.put(path, [value])
        elif (items := as_list(found)) is None:
            raise NotEditable(f"{format_path(path)} is not a list")
        else:
            self._insert(path, len(items), value)

    def drop(self, path: Path) -> None:
        """Remove the value at `path`, if any."""
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
        """Append an item to the object or list at `there`, formatted like those before it."""
        inside = self._container(there)
        label = f"{json.dumps(key, ensure_ascii=False)}: " if isinstance(key, str) else ""
        unit = self._unit()
        if inside.items:
            before = self.text[inside.open + 1 : inside.items[0].start]
            lead = before[before.rindex("\n") + 1 :] if "\n" in before else ""
            apart = f"{self._newline()}{lead}" if "\n" in before else " "
            told = _dump_json(value, unit if "\n" in before else "", f"{self._newline()}{lead}")
            at = inside.items[-1].end
            new = f"{self.text[:at]},{apart}{label}{told}{self.text[at:]}"
        else:
            outer = _indentation(self.text, inside.open)
            newline = f"{self._newline()}{outer}" if unit else ""
            body = f"{newline}{unit}{label}{_dump_json(value, unit, newline + unit)}{newline}"
            new = f"{self.text[: inside.open + 1]}{body}{self.text[inside.close :]}"
        self._become(new, (*there, key), value)

    def _become(self, text: str, path: Path, value: object, *, dropped: bool = False) -> None:
        """Accept a new text if it has the expected value and nothing else has changed."""
        found = _parse_json(text)
        if json.dumps(found) != json.dumps(_with_value(self.data, path, value, dropped)):
            raise NotEditable(f"{format_path(path)} cannot be changed without changing something else")
        self.text, self.data = text, found

    def _deepest(self, path: Path) -> tuple[Path, Path]:
        """Return the existing part of `path` and the rest."""
        value: object = self.data
        for depth, key in enumerate(path):
            if (found := as_object(value)) is not None:
                if key not in found:
                    return path[:depth], path[depth:]
            elif _child(value, key) is None:
                raise NotEditable(f"{format_path(path[:depth])} is not an object")
            value = _child(value, key)
        return path, ()

    def _container(self, path: Path) -> _Container:
        at = _skip(self.text, 1 if self.text.startswith(_BOM) else 0)
        for key in path:
            item = _container(self.text, at).find(key)
            if item is None:
                raise NotEditable(f"{format_path(path)} is not there")
            at = item.at
        return _container(self.text, at)

    def _item(self, path: Path) -> _Item:
        item = self._container(path[:-1]).find(path[-1])
        if item is None:
            raise NotEditable(f"{format_path(path)} is not there")
        return item

    def _unit(self) -> str:
        """Return one step of indentation; "" where everything is on one line."""
        inside = self._container(())
        if not inside.items:
            return "  "
        before = self.text[inside.open + 1 : inside.items[0].start]
        return before[before.rindex("\n") + 1 :] if "\n" in before else ""

    def _newline(self) -> str:
        return "\r\n" if "\r\n" in self.text else "\n"


def format_path(path: Path) -> str:
    """Return a path such as `hooks.Stop[0]`, for people."""
    text = ""
    for key in path:
        text += f"[{key}]" if isinstance(key, int) else f".{key}"
    return text.removeprefix(".") or "it"


def _parse_json(text: str) -> dict[str, object]:
    try:
        found = as_object(json.loads(text.removeprefix(_BOM)))
    except (ValueError, RecursionError) as error:
        raise NotEditable(f"it is not plain JSON, which has no comments and no trailing commas: {error}") from error
    if found is None:
        raise NotEditable("it is JSON, but no object")
    return found


def _child(value: object, key: str | int) -> object:
    if isinstance(key, str):
        return (as_object(value) or {}).get(key)
    items = as_list(value) or []
    return items[key] if key < len(items) else None


def _with_value(value: object, path: Path, new: object, dropped: bool) -> object:
    """Return a copy of `value` with `new` at `path`, or with that item removed."""
    key, rest = path[0], path[1:]
    if (found := as_object(value)) is not None and isinstance(key, str):
        if dropped and not rest:
            return {name: inner for name, inner in found.items() if name != key}
        return {**found, key: _with_value(found[key], rest, new, dropped) if rest else new}
    items, at = as_list(value) or [], int(key)
    inner = [] if dropped and not rest else [_with_value(items[at], rest, new, dropped) if rest else new]
    return [*items[:at], *inner, *items[at + 1 :]]


def _container(text: str, at: int) -> _Container:
    """Return the object or list whose opening bracket is at `at`."""
    is_object = text[at] == "{"
    items: list[_Item] = []
    here = _skip(text, at + 1)
    while text[here] not in "}]":
        start, key = here, len(items)
        name: str | int = key
        if is_object:
            found, here = _DECODER.raw_decode(text, here)
            name = str(found)
            here = _skip(text, _skip(text, here) + 1)  # after the colon
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


def _indentation(text: str, at: int) -> str:
    """Return the leading whitespace of the line around `at`."""
    start = text.rfind("\n", 0, at) + 1
    end = start
    while end < len(text) and text[end] in " \t":
        end += 1
    return text[start:end]


def _dump_json(value: object, unit: str, newline: str) -> str:
    """Return `value` as JSON: on one line, or indented by `unit` with lines that begin with `newline`."""
    return json.dumps(value, ensure_ascii=False, indent=unit or None).replace("\n", newline)


def format_changes(values: Sequence[tuple[str, Path, object]]) -> list[str]:
    """Return one line per change: `+ mcpServers.taskyard = {…}`."""
    return [
        f"{sign} {format_path(path)}" + ("" if value is None else f" = {json.dumps(value, ensure_ascii=False)}")
        for sign, path, value in values
    ]


SERVERS, ENV, HOOKS = "mcpServers", "env", "hooks"
_ALLOW: Path = ("permissions", "allow")


class JsonConfigSpec(NamedTuple):
    """The entries one file should have."""

    server: Mapping[str, object] | None = None
    env: Mapping[str, str] | None = None
    hooks: Mapping[str, Mapping[str, object]] | None = None  #: by event
    allow: tuple[str, ...] = ()  #: permission rules of Claude Code
    servers: str = SERVERS  #: the object that holds the servers


class EditResult(NamedTuple):
    """The new text, its changes, the record to keep for later, and notes for the user."""

    text: str
    changes: tuple[str, ...]
    record: dict[str, object]
    notes: tuple[str, ...] = ()


class _JsonEdit:
    """An edit in progress of one JSON text."""

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
        """Set a value, and record the objects created for it."""
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
        """Remove a value."""
        if self.doc.has(path):
            self.doc.drop(path)
            self.done.append(("-", path, None))

    def give_back(self, path: Path) -> None:
        """Restore what was at `path` before us; remove it if there was nothing."""
        if path in self.before:
            self.put(path, self.before.pop(path))
        else:
            self.drop(path)

    def edited(self) -> EditResult:
        """Return the result of the edit."""
        record: dict[str, object] = {
            "before": [[list(path), value] for path, value in self.before.items()],
            "keys": [[list(path), value] for path, value in self.keys.items()],
            "made": [list(path) for path in self.made],
            **({"rules": self.rules} if self.rules else {}),
        }
        return EditResult(self.doc.text, tuple(format_changes(self.done)), record, tuple(self.notes))

    def _remember_missing(self, path: Path) -> None:
        for depth in range(1, len(path)):
            inner = path[:depth]
            if not self.doc.has(inner) and inner not in self.made and inner != self.server:
                self.made.append(inner)


def install_json(text: str, wish: JsonConfigSpec, record: Mapping[str, object] | None = None) -> EditResult:
    """Return `text` with our entries as specified by `wish`."""
    work = _JsonEdit(text, record, wish.servers)
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


def uninstall_json(text: str, record: Mapping[str, object] | None = None, *, servers: str = SERVERS) -> EditResult:
    """Return `text` without our entries."""
    work = _JsonEdit(text, record, servers)
    server = as_object(work.doc.get(work.server))
    if server is not None and is_own_server(server):
        work.give_back(work.server)
    elif work.doc.get(work.server) is not None:
        work.notes.append(f"{format_path(work.server)} starts something else: it stays.")
    for path in list(work.keys):
        _restore_key(work, path)
    _drop_hooks(work)
    _drop_rules(work)
    for path in sorted(work.made, key=len, reverse=True):
        if work.doc.get(path) in ({}, []):
            work.doc.drop(path)
    return work.edited()


def is_own_server(server: Mapping[str, object]) -> bool:
    """Return whether a server entry starts Taskyard."""
    command = server.get("command")  # opencode has all words in one list
    return is_own_command([*(as_list(command) or [command]), *(as_list(server.get("args")) or [])], "mcp")


def _put_server(work: _JsonEdit, wished: Mapping[str, object]) -> None:
    """Update our server, keeping keys the user added; replace and record another server of our name."""
    found = work.doc.get(work.server)
    current = as_object(found)
    if current is not None and is_own_server(current):
        for key, value in wished.items():
            work.put((*work.server, key), value)
        return
    if work.doc.has(work.server):
        work.before[work.server] = found
    work.put(work.server, dict(wished))


def _put_env(work: _JsonEdit, wished: Mapping[str, str]) -> None:
    for known in list(work.keys):
        if known[-1] not in wished:
            _restore_key(work, known)
    for name, value in wished.items():
        path: Path = (ENV, name)
        found = work.doc.get(path)
        if found == value:
            continue  # ours from before, or the user's own, which we must not remove
        if work.doc.has(path) and path not in work.keys:
            work.before[path] = found
        work.put(path, value)
        work.keys[path] = value


def _restore_key(work: _JsonEdit, path: Path) -> None:
    value, found = work.keys.pop(path), work.doc.get(path)
    if found == value:
        work.give_back(path)
    elif found is not None:
        work.before.pop(path, None)
        work.notes.append(f"{format_path(path)} was changed since: it stays.")


def _put_hook(work: _JsonEdit, event: str, wished: Mapping[str, object]) -> None:
    ours = list(_our_hooks(work.doc, event))
    if not ours:
        work.add((HOOKS, event), {"hooks": [dict(wished)]})
        return
    for path in reversed(ours[1:]):
        _drop_hook(work, path)
    work.put(ours[0], dict(wished))


def _drop_hooks(work: _JsonEdit) -> None:
    for event in list(as_object(work.doc.get((HOOKS,))) or {}):
        for path in reversed(list(_our_hooks(work.doc, event))):
            _drop_hook(work, path)


def _drop_hook(work: _JsonEdit, path: Path) -> None:
    """Remove a hook, and its group if that becomes empty."""
    group = work.doc.get(path[:-2])
    alone = as_object(group) is not None and len(as_list(work.doc.get(path[:-1])) or []) == 1
    work.drop(path[:-2] if alone else path)


def _drop_rules(work: _JsonEdit) -> None:
    """Remove the permission rules that we added."""
    found = as_list(work.doc.get(_ALLOW)) or []
    for at in reversed(range(len(found))):
        if found[at] in work.rules:
            work.rules.remove(str(found[at]))
            work.drop((*_ALLOW, at))
    work.rules.clear()


def _our_hooks(doc: JsonText, event: str) -> Iterator[Path]:
    """Yield the paths of our hooks."""
    import shlex

    for at, group in enumerate(as_list(doc.get((HOOKS, event))) or []):
        for place, hook in enumerate(as_list((as_object(group) or {}).get("hooks")) or []):
            said = (as_object(hook) or {}).get("command")
            try:
                words = shlex.split(said) if isinstance(said, str) else []
            except ValueError:
                continue  # not a command line
            if words and is_own_command(words, "hook"):
                yield (HOOKS, event, at, "hooks", place)


def _pairs(raw: object) -> dict[Path, object]:
    found = [as_list(one) or [] for one in as_list(raw) or []]
    return {_path(pair[0]): pair[1] for pair in found if len(pair) == 2}


def _path(raw: object) -> Path:
    return tuple(key for key in as_list(raw) or [] if isinstance(key, (str, int)))


if TYPE_CHECKING:
    Key = tuple[str, ...]


class Span(NamedTuple):
    """Some whole lines: a header, or a key with its value."""

    start: int
    end: int


class Table(NamedTuple):
    """A header with the statements below it, without comments and empty lines after the last one."""

    key: Key
    header: Span
    statements: tuple[Span, ...]

    @property
    def start(self) -> int:
        """Start of its header."""
        return self.header.start

    @property
    def end(self) -> int:
        """End of its last statement."""
        return self.statements[-1].end if self.statements else self.header.end


def parse_toml(text: str) -> dict[str, object]:
    """Parse TOML."""
    import tomllib  # costs 15 ms: imported only where needed

    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise NotEditable(f"it is not TOML: {error}") from error


def iter_tables(text: str) -> Iterator[Table]:
    """Yield the tables of a TOML text in order; statements before the first header are skipped."""
    header: Span | None = None
    statements: list[Span] = []
    for span in _spans(text):
        if text[span.start] == "[":
            if header is not None:
                yield Table(_table_key(text, header), header, tuple(statements))
            header, statements = span, []
        else:
            statements.append(span)
    if header is not None:
        yield Table(_table_key(text, header), header, tuple(statements))


def subtables(text: str, key: Key) -> list[Table]:
    """Return the table `key` and those inside it."""
    return [table for table in iter_tables(text) if table.key[: len(key)] == key]


def first_key(text: str, statement: Span) -> str:
    """Return the key a statement sets, up to its first dot."""
    return next(iter(parse_toml(text[statement.start : statement.end])))


def cut(text: str, spans: Sequence[Span]) -> str:
    """Return `text` without some spans."""
    for span in sorted(spans, reverse=True):
        before, after = text[: span.start], text[span.end :]
        glue = "\n" if before and after and not before.endswith("\n") and not after.startswith(("\n", "\r\n")) else ""
        text = before + glue + after
    return text


def dump_toml(value: object) -> str:
    """Return a value as TOML: text, numbers, lists and tables of them, on one line."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    if (items := as_list(value)) is not None:
        return f"[{', '.join(map(dump_toml, items))}]"
    if (table := as_object(value)) is not None:
        return "{" + ", ".join(f"{dump_toml(key)} = {dump_toml(inner)}" for key, inner in table.items()) + "}"
    return json.dumps(value)


def table_text(key: Key, pairs: Mapping[str, object], newline: str = "\n") -> str:
    """Return a table as text, starting with its header."""
    lines = [f"[{'.'.join(key)}]", *(f"{name} = {dump_toml(value)}" for name, value in pairs.items())]
    return "".join(f"{line}{newline}" for line in lines)


def toml_equal(one: object, other: object) -> bool:
    """Return whether two values read from TOML are equal; NaN equals itself here."""
    a, b = as_object(one), as_object(other)
    if a is not None and b is not None:
        return a.keys() == b.keys() and all(toml_equal(a[key], b[key]) for key in a)
    x, y = as_list(one), as_list(other)
    if x is not None and y is not None:
        return len(x) == len(y) and all(map(toml_equal, x, y))
    return type(one) is type(other) and repr(one) == repr(other)


def _table_key(text: str, header: Span) -> Key:
    value: object = parse_toml(text[header.start : header.end])
    key: list[str] = []
    while inner := as_object(value):
        name, value = next(iter(inner.items()))
        key.append(name)
        items = as_list(value)
        value = items[0] if items else value
    return tuple(key)


def _spans(text: str) -> Iterator[Span]:
    """Yield every header and statement."""
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
    """Return the end of the line on which the statement at `at` ends."""
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
    """Return the end of the string that begins at `at`."""
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


TOML_SERVERS = "mcp_servers"
_KEY = (TOML_SERVERS, NAME)
_KEY_TEXT = ".".join(_KEY)


def install_toml(text: str, server: Mapping[str, object], record: Mapping[str, object] | None = None) -> EditResult:
    """Return `text` with our table, as specified by `server`."""
    known: dict[str, object] = dict(record or {})
    current = _find_server(text)
    if current is not None and all(toml_equal(current.get(key), value) for key, value in server.items()):
        return EditResult(text, (), known)
    if current is None:
        added = _separator(text) + table_text(_KEY, server, _newline(text))
        known["added"], new = added, text + added
    elif is_own_server(current):
        added = as_text(known.get("added"))
        if _find_once(text, added) >= 0:  # unchanged since we added it
            again = added[: added.index("[")] + table_text(_KEY, server, _newline(text))
            known["added"], new = again, text.replace(added, again)
        else:
            new = _update_table(text, server)
    else:
        ours = _own_tables(text)
        known["before"] = "".join(text[table.start : table.end] for table in ours)
        new = _with_table(text, table_text(_KEY, server, _newline(text)))
    _check(text, new, {**(current or {}), **server} if current is not None and is_own_server(current) else dict(server))
    return EditResult(new, _diff(text, new), known)


def uninstall_toml(text: str, record: Mapping[str, object] | None = None) -> EditResult:
    """Return `text` without our table."""
    current = _find_server(text)
    if current is None:
        return EditResult(text, (), {})
    if not is_own_server(current):
        return EditResult(text, (), {}, (f"{_KEY_TEXT} starts something else: it stays.",))
    before, added = as_text((record or {}).get("before")), as_text((record or {}).get("added"))
    if before:
        new = _with_table(text, before)
        _check(text, new, _find_server(new))
    else:
        new = cut(text, [Span(at, at + len(added))]) if (at := _find_once(text, added)) >= 0 else _without_table(text)
        if _find_server(new) is not None:  # the user added subtables to it
            new = _without_table(text)
        _check(text, new, None)
    return EditResult(new, _diff(text, new), {})


def _find_server(text: str) -> dict[str, object] | None:
    return as_object((as_object(parse_toml(text).get(TOML_SERVERS)) or {}).get(NAME))


def _own_tables(text: str) -> list[Table]:
    """Return our table and those inside it.

    Raises:
        NotEditable: it is not written as a table of its own.
    """
    found = subtables(text, _KEY)
    if not any(table.key == _KEY for table in found):
        raise NotEditable(f"{_KEY_TEXT} is not written as a table [{_KEY_TEXT}]; take it out by hand")
    return found


def _update_table(text: str, server: Mapping[str, object]) -> str:
    """Return `text` with our keys updated; keys the user added, such as approvals, stay."""
    newline = _newline(text)
    main = next(table for table in _own_tables(text) if table.key == _KEY)
    old = [span for span in main.statements if first_key(text, span) in server]
    old += [
        Span(table.start, table.end)
        for table in subtables(text, _KEY)
        if table.key[: len(_KEY) + 1] in [(*_KEY, key) for key in server]
    ]
    shorter = cut(text, old)
    main = next(table for table in _own_tables(shorter) if table.key == _KEY)
    lines = "".join(f"{key} = {dump_toml(value)}{newline}" for key, value in server.items())
    head = shorter[: main.header.end]
    return f"{head}{'' if head.endswith(newline) else newline}{lines}{shorter[main.header.end :]}"


def _with_table(text: str, table: str) -> str:
    """Return `text` with `table` in place of our tables."""
    ours = _own_tables(text)
    start = ours[0].start
    rest = cut(text, [Span(one.start, one.end) for one in ours])
    return rest[:start] + table + rest[start:]


def _without_table(text: str) -> str:
    return cut(text, [Span(table.start, table.end) for table in _own_tables(text)])


def _check(old: str, new: str, server: Mapping[str, object] | None) -> None:
    """Verify that only our table changed."""
    expected = parse_toml(old)
    try:
        found = parse_toml(new)
    except NotEditable:  # it was valid TOML before
        raise NotEditable(
            f"{TOML_SERVERS} is written in one piece, {TOML_SERVERS} = {{…}}, "
            "to which no table can be added;"
            f" write each server as a table [{TOML_SERVERS}.NAME]"
        ) from None
    servers = dict(as_object(expected.get(TOML_SERVERS)) or {})
    servers.pop(NAME, None)
    if server is not None:
        servers[NAME] = server
    expected[TOML_SERVERS] = servers
    found.setdefault(TOML_SERVERS, {})
    if not toml_equal(found, expected):
        raise NotEditable(f"{_KEY_TEXT} cannot be changed without changing something else; change it by hand")


def _find_once(text: str, part: str) -> int:
    """Return the position of `part` if it occurs exactly once, else -1."""
    return text.find(part) if part and text.count(part) == 1 else -1


def _separator(text: str) -> str:
    """Return the separator between the text and a new table."""
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
