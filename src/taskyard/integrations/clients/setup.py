"""Install Taskyard into a client's configuration files, and uninstall it again.

    plan = plan_install("codex", wanted, env, home)
    for change in plan.changes:  ...show `change.lines`, and ask
    apply_plan(plan, home)

A plan is computed in full before any file is touched. Records of what we added and what it replaced are kept in
`<home>/clients/<client>.json`, by file, written before the file itself: after a crash in between they list
things that are not there, which does no harm.

Files are backed up and replaced atomically. Users keep settings elsewhere and link to them: the file behind a
link is read and replaced, the link stays. It must be a regular file of this user. A project's files must not
lead outside of the project, since others wrote them.
"""

from __future__ import annotations

import json
import os
import stat
import time

from taskyard.core import files as storage_files
from taskyard.core.values import NamedTuple, as_object
from taskyard.errors import BadConfig, Conflict, Damaged
from taskyard.integrations.clients import formats, programs
from taskyard.integrations.clients.formats import JsonConfigSpec, NotEditable
from taskyard.storage.locks import FolderLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from taskyard.integrations.clients.formats import EditResult
    from taskyard.integrations.clients.programs import SetupOptions, Target


def read_records(home: str, client: str) -> dict[str, dict[str, object]]:
    """Return the records of a client's files; none if unreadable."""
    try:
        raw = storage_files.read(_record_path(home, client))
        found = as_object(json.loads(raw)) if raw else None
    except (Damaged, ValueError, RecursionError):
        found = None
    records = {path: as_object(record) for path, record in (found or {}).items()}
    return {path: record for path, record in records.items() if record is not None}


def write_records(home: str, client: str, records: Mapping[str, Mapping[str, object]]) -> None:
    """Write the records; remove the file if there are none."""
    path = _record_path(home, client)
    if not records:
        storage_files.remove(path)
        return
    storage_files.make_private_folder(home)
    storage_files.make_private_folder(f"{home}/clients")
    storage_files.replace(path, json.dumps(records, indent=2).encode() + b"\n")


def _record_path(home: str, client: str) -> str:
    return f"{home}/clients/{client}.json"


#: Maximum bytes: Claude Code's file grows with its projects; beyond this it is no configuration.
MAX_FILE = 64 * 1024 * 1024

#: Seconds to wait for another program's lock.
_PATIENCE = 5.0


class ConfigFile(NamedTuple):
    """A file as it was read."""

    path: str  #: as its program names it
    real: str  #: with all links resolved
    data: bytes | None  #: None: there is none yet
    mode: int = 0o600

    @property
    def text(self) -> str:
        """Its content; empty if there is no file."""
        try:
            return (self.data or b"").decode()
        except UnicodeDecodeError as error:
            raise BadConfig(self.path, f"it is not UTF-8 (byte {error.start})") from error


def read_config_file(path: str, *, within: str | None = None) -> ConfigFile:
    """Read the file at `path`, which may be missing; with `within` it must not lead out of that folder.

    Raises:
        BadConfig: it is not a regular file of this user.
        StorageError: the disk refused.
    """
    real = os.path.realpath(path)
    if within is not None and os.path.commonpath([os.path.realpath(within), real]) != os.path.realpath(within):
        raise BadConfig(path, f"it leads to {real}, outside of the project", advice="Replace the link by a file.")
    try:
        found = os.lstat(real)
    except (FileNotFoundError, NotADirectoryError):
        if os.path.lexists(path):
            raise BadConfig(path, f"it leads to {real}, which is not there", advice="Fix or remove the link.") from None
        return ConfigFile(path, real, None, 0o644 if within is not None else 0o600)
    except OSError as error:
        raise storage_files.storage_error(path, error) from error
    if not stat.S_ISREG(found.st_mode):
        raise BadConfig(path, "it is not a plain file", advice="Move it out of the way.")
    if found.st_uid != os.geteuid():
        raise BadConfig(path, f"it belongs to user {found.st_uid}, not to you", advice="Run this as its owner.")
    return ConfigFile(path, real, storage_files.read(real, most=MAX_FILE), stat.S_IMODE(found.st_mode))


def write_config_file(file: ConfigFile, data: bytes | None, *, locked: bool = False) -> str | None:
    """Replace the file by `data` (None: remove it); return the path of the backup, if there was a file.

    Args:
        file: As it was read; if it has changed since, nothing is written.
        data: The new content.
        locked: Its program writes it under a lock folder, which is taken.

    Raises:
        Conflict: another program changed it meanwhile.
        Busy: its program holds its lock.
    """
    folder = os.path.dirname(file.real)
    if not os.path.isdir(folder):
        storage_files.make_folder(folder, mode=0o755 if file.mode & 0o044 else 0o700)
    if not locked:
        return _write(file, data)
    with FolderLock(file.real, timeout=_PATIENCE, what=file.path, guarded=False):
        return _write(file, data)


def _write(file: ConfigFile, data: bytes | None) -> str | None:
    copy = None if file.data is None else _back_up(file, file.data)
    temporary = f"{file.real}.taskyard-{os.getpid()}-{os.urandom(4).hex()}.tmp"
    if data is not None:
        storage_files.create(temporary, data, mode=file.mode, sync=True)
    try:
        if storage_files.read(file.real, most=MAX_FILE) != file.data:
            raise Conflict(f"{file.path} was changed by another process meanwhile. Nothing was written: try again.")
        if data is None:
            os.unlink(file.real)
        else:
            os.chmod(temporary, file.mode)
            os.rename(temporary, file.real)
    except OSError as error:
        raise storage_files.storage_error(file.real, error) from error
    finally:
        storage_files.remove(temporary)
    return copy


def _back_up(file: ConfigFile, data: bytes) -> str:
    """Write a copy of the current content beside it."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for number in range(1, 1000):
        copy = f"{file.real}.taskyard-{stamp}{'' if number == 1 else f'-{number}'}.bak"
        try:
            storage_files.create(copy, data, mode=file.mode & 0o600, sync=True)
        except FileExistsError:
            continue
        return copy
    raise Conflict(f"{file.path} has been copied a thousand times within this second.")


CLIENTS: Mapping[str, Callable[[SetupOptions, Mapping[str, str]], list[Target]]] = {
    "claude-code": programs.claude_targets,
    "codex": programs.codex_targets,
    "gemini": programs.gemini_targets,
    "opencode": programs.opencode_targets,
}


class FileChange(NamedTuple):
    """The change of one file."""

    file: ConfigFile
    data: bytes | None  #: new content; None: remove it
    lines: tuple[str, ...]  #: the changes, for people
    record: Mapping[str, object] | None  #: the record to keep
    locked: bool = False

    @property
    def is_one(self) -> bool:
        """Whether anything changes."""
        return self.data != self.file.data


class SetupPlan(NamedTuple):
    """The changes of all files of a client."""

    client: str
    files: tuple[FileChange, ...]
    notes: tuple[str, ...] = ()

    @property
    def changes(self) -> tuple[FileChange, ...]:
        """The files that change."""
        return tuple(change for change in self.files if change.is_one)


def plan_install(client: str, wanted: SetupOptions, env: Mapping[str, str], home: str) -> SetupPlan:
    """Return the changes needed for `client` to use Taskyard.

    Raises:
        BadConfig: one of its files cannot be changed safely; names it, and why.
    """
    known = read_records(home, client)
    changes: list[FileChange] = []
    notes: list[str] = []
    for target in CLIENTS[client](wanted, env):
        file = read_config_file(target.path, within=target.within)
        record = known.get(file.real)
        edited = _edit_file(file, target, record, install=True)
        notes += edited.notes
        if not edited.changes:
            changes.append(FileChange(file, file.data, (), record))
            continue
        is_new = file.data is None or bool((record or {}).get("new"))
        kept = {**edited.record, "new": is_new}
        changes.append(FileChange(file, edited.text.encode(), edited.changes, kept, target.locked))
    return SetupPlan(client, tuple(changes), tuple(notes))


def plan_uninstall(client: str, wanted: SetupOptions, env: Mapping[str, str], home: str) -> SetupPlan:
    """Return the changes that remove Taskyard from `client` without a trace.

    Raises:
        BadConfig: one of its files cannot be changed safely; names it, and why.
    """
    known = read_records(home, client)
    changes: list[FileChange] = []
    notes: list[str] = []
    for target in CLIENTS[client](wanted, env):
        file = read_config_file(target.path, within=target.within)
        record = known.get(file.real)
        if file.data is None:
            changes.append(FileChange(file, None, (), None))
            continue
        edited = _edit_file(file, target, record, install=False)
        notes += [f"{file.path}: {note}" for note in edited.notes]
        data: bytes | None = edited.text.encode() if edited.changes else file.data
        if edited.changes and (record or {}).get("new") and edited.text.strip() in ("", "{}"):
            data = None  # there was no file before us
        changes.append(FileChange(file, data, edited.changes, None, target.locked))
    return SetupPlan(client, tuple(changes), tuple(notes))


def apply_plan(plan: SetupPlan, home: str) -> dict[str, str | None]:
    """Apply a plan; return the backup path of each changed file.

    Records are written before the files on install and after them on uninstall: a crash leaves a record that
    lists too much, never too little.
    """
    known: dict[str, Mapping[str, object]] = dict(read_records(home, plan.client))
    after = {**known}
    for change in plan.files:
        if change.record is None:
            after.pop(change.file.real, None)
        else:
            after[change.file.real] = known[change.file.real] = change.record
    if plan.changes:
        write_records(home, plan.client, known)
    copies = {
        change.file.path: write_config_file(change.file, change.data, locked=change.locked) for change in plan.changes
    }
    if plan.changes or after != known:
        write_records(home, plan.client, after)
    return copies


def _edit_file(file: ConfigFile, target: Target, record: Mapping[str, object] | None, *, install: bool) -> EditResult:
    """Return a file's text after the edit."""
    wish = target.wish
    try:
        if isinstance(wish, JsonConfigSpec):
            if install:
                return formats.install_json(file.text, wish, record)
            return formats.uninstall_json(file.text, record, servers=wish.servers)
        if install:
            return formats.install_toml(file.text, wish, record)
        return formats.uninstall_toml(file.text, record)
    except NotEditable as error:
        raise BadConfig(file.path, str(error)) from error
