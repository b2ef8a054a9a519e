"""
What installing or uninstalling means for each file of a client, worked out in full before any of them is touched.

    plan = for_install("codex", wanted, env, home)
    for change in plan.changes:  ...show `change.lines`, and ask
    carry_out(plan, home)
"""

from __future__ import annotations

from taskyard.clients import claude_code, codex, config_file, gemini, json_config, opencode, records, toml_config
from taskyard.clients.json_config import JsonWish
from taskyard.clients.json_text import NotEditable
from taskyard.errors import BadConfig
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from taskyard.clients.json_config import Edited
    from taskyard.clients.target import Target, Wanted

CLIENTS: Mapping[str, Callable[[Wanted, Mapping[str, str]], list[Target]]] = {
    "claude-code": claude_code.targets,
    "codex": codex.targets,
    "gemini": gemini.targets,
    "opencode": opencode.targets,
}


class Change(NamedTuple):
    """What happens to one file."""

    file: config_file.Read
    data: bytes | None  #: what it is to hold; None: it goes
    lines: tuple[str, ...]  #: what changes, for people
    record: Mapping[str, object] | None  #: what is to be known about it afterwards
    locked: bool = False

    @property
    def is_one(self) -> bool:
        """Whether anything changes."""
        return self.data != self.file.data


class Plan(NamedTuple):
    """What happens to all files of a client."""

    client: str
    files: tuple[Change, ...]
    notes: tuple[str, ...] = ()

    @property
    def changes(self) -> tuple[Change, ...]:
        """The files that change."""
        return tuple(change for change in self.files if change.is_one)


def for_install(client: str, wanted: Wanted, env: Mapping[str, str], home: str) -> Plan:
    """What it takes for `client` to use us.

    Raises:
        BadConfig: one of its files cannot be changed safely; names it, and why.
    """
    known = records.read(home, client)
    changes: list[Change] = []
    notes: list[str] = []
    for target in CLIENTS[client](wanted, env):
        file = config_file.read(target.path, within=target.within)
        record = known.get(file.real)
        edited = _edited(file, target, record, install=True)
        notes += edited.notes
        if not edited.changes:
            changes.append(Change(file, file.data, (), record))
            continue
        is_new = file.data is None or bool((record or {}).get("new"))
        kept = {**edited.record, "new": is_new}
        changes.append(Change(file, edited.text.encode(), edited.changes, kept, target.locked))
    return Plan(client, tuple(changes), tuple(notes))


def for_uninstall(client: str, wanted: Wanted, env: Mapping[str, str], home: str) -> Plan:
    """What it takes for `client` to be as if we had never been there.

    Raises:
        BadConfig: one of its files cannot be changed safely; names it, and why.
    """
    known = records.read(home, client)
    changes: list[Change] = []
    notes: list[str] = []
    for target in CLIENTS[client](wanted, env):
        file = config_file.read(target.path, within=target.within)
        record = known.get(file.real)
        if file.data is None:
            changes.append(Change(file, None, (), None))
            continue
        edited = _edited(file, target, record, install=False)
        notes += [f"{file.path}: {note}" for note in edited.notes]
        data: bytes | None = edited.text.encode() if edited.changes else file.data
        if edited.changes and (record or {}).get("new") and edited.text.strip() in ("", "{}"):
            data = None  # there was no file before us
        changes.append(Change(file, data, edited.changes, None, target.locked))
    return Plan(client, tuple(changes), tuple(notes))


def carry_out(plan: Plan, home: str) -> dict[str, str | None]:
    """Do it; answers where the copy of each changed file is.

    What is known is written before the files where something is put in, and after them where it is taken out: whoever
    dies on the way leaves a record that knows too much, never too little.
    """
    known: dict[str, Mapping[str, object]] = dict(records.read(home, plan.client))
    after = {**known}
    for change in plan.files:
        if change.record is None:
            after.pop(change.file.real, None)
        else:
            after[change.file.real] = known[change.file.real] = change.record
    if plan.changes:
        records.write(home, plan.client, known)
    copies = {
        change.file.path: config_file.write(change.file, change.data, locked=change.locked) for change in plan.changes
    }
    if plan.changes or after != known:
        records.write(home, plan.client, after)
    return copies


def _edited(file: config_file.Read, target: Target, record: Mapping[str, object] | None, *, install: bool) -> Edited:
    """A file's text as it is to be."""
    wish = target.wish
    try:
        if isinstance(wish, JsonWish):
            if install:
                return json_config.installed(file.text, wish, record)
            return json_config.removed(file.text, record, servers=wish.servers)
        if install:
            return toml_config.installed(file.text, wish, record)
        return toml_config.removed(file.text, record)
    except NotEditable as error:
        raise BadConfig(file.path, str(error)) from error
