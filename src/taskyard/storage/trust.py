"""Trust store: which commands from projects and tasks a user has reviewed and allowed to run.

Hooks that come with a project and acceptance commands of tasks are foreign code. They run only after
`taskyard trust`, which records exactly what was allowed:

    $TASKYARD_HOME/trust.json     by project root: the SHA-256 of all its hook commands, and of all programs
                                  that its git configuration names;
                                  by SHA-256: one acceptance command in one folder

One changed character in a command, one command more or less, another folder: it must be allowed again. What
a command calls (a script in the project) is not checked.
"""

from __future__ import annotations

import os

from taskyard.config import home
from taskyard.core import files
from taskyard.core.system import now_ms
from taskyard.core.values import NamedTuple, cast, check_text
from taskyard.errors import Damaged
from taskyard.storage.locks import RangeLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Store = dict[str, "TrustRecord"]

#: Seconds. Updates take milliseconds; a process that holds the lock this long is stopped or debugged.
LOCK_TIMEOUT = 15.0


class TrustRecord(NamedTuple):
    """One thing a user allowed."""

    kind: str  #: "project", "git" or "acceptance"
    path: str  #: the project's root, or the folder the command runs in; without symbolic links
    commands: tuple[str, ...]  #: what was allowed, as it was shown
    sha256: str
    at: int  #: epoch ms
    how: str = "shown"  #: "shown": by `taskyard trust`; "typed": an acceptance command typed by a user at a terminal


def is_project_trusted(root: str, commands: Iterable[str], *, env: Mapping[str, str] | None = None) -> bool:
    """Return whether exactly these hook commands of the project at `root` were allowed.

    Raises:
        Damaged: the store cannot be read; then nothing is trusted.
    """
    return _is_allowed(_project_record(root, commands), env)


def trust_project(root: str, commands: Iterable[str], *, env: Mapping[str, str] | None = None) -> TrustRecord:
    """Allow exactly these hook commands of the project at `root`, replacing those allowed before.

    Raises:
        BadText: a command is empty or contains characters that no command line can.
        Damaged: the store cannot be read; it is left unchanged.
    """
    return _allow(_project_record(root, commands), env)


def is_git_trusted(root: str, programs: Iterable[str], *, env: Mapping[str, str] | None = None) -> bool:
    """Return whether exactly these programs of the git configuration of the project at `root` were allowed.

    Raises:
        Damaged: the store cannot be read; then nothing is trusted.
    """
    return _is_allowed(_project_record(root, programs, kind="git"), env)


def trust_git(root: str, programs: Iterable[str], *, env: Mapping[str, str] | None = None) -> TrustRecord:
    """Allow exactly these programs of the git configuration of the project at `root`, replacing earlier ones.

    Raises:
        BadText: a program is empty or contains characters that no command line can.
        Damaged: the store cannot be read; it is left unchanged.
    """
    return _allow(_project_record(root, programs, kind="git"), env)


def is_command_trusted(command: str, cwd: str, *, env: Mapping[str, str] | None = None) -> bool:
    """Return whether the acceptance command `command` may run in `cwd`, a folder of a main checkout.

    A command of a linked worktree is trusted by the same folder of the main checkout
    (`integrations.acceptance.Acceptance.trusted_at`).

    Raises:
        Damaged: the store cannot be read; then nothing is trusted.
    """
    return _is_allowed(_acceptance_record(command, cwd), env)


def trust_command(command: str, cwd: str, *, how: str = "shown", env: Mapping[str, str] | None = None) -> TrustRecord:
    """Allow the acceptance command `command` to run in `cwd` and in the same folder of linked worktrees.

    Args:
        command: The command as it was shown.
        cwd: A folder of a main checkout: `integrations.acceptance.Acceptance.trusted_at`.
        how: How a user allowed it.
        env: The environment that names `$TASKYARD_HOME`.

    Raises:
        BadText: the command is empty or contains characters that no command line can.
        Damaged: the store cannot be read; it is left unchanged.
    """
    return _allow(_acceptance_record(command, cwd)._replace(how=how), env)


def list_trusted(*, env: Mapping[str, str] | None = None) -> tuple[TrustRecord, ...]:
    """Return everything allowed, projects first, each by path.

    Raises:
        Damaged: the store cannot be read.
    """
    return tuple(sorted(_read_store(_store_path(env)).values(), key=lambda one: (one.kind != "project", one)))


def revoke(
    path: str, command: str | None = None, *, kind: str = "project", env: Mapping[str, str] | None = None
) -> bool:
    """Revoke trust in the project at `path`, or in one acceptance command there; return whether it existed.

    Without a command, `kind` selects the project's hooks ("project") or its git programs ("git").

    Raises:
        Damaged: the store cannot be read; it is left unchanged.
    """
    key = _key(_project_record(path, (), kind=kind) if command is None else _acceptance_record(command, path))
    return _update_store(env, lambda store: store.pop(key, None) is not None)


def _project_record(root: str, commands: Iterable[str], *, kind: str = "project") -> TrustRecord:
    ordered = tuple(sorted(set(commands)))
    return TrustRecord(kind, os.path.realpath(root), ordered, _sha256(ordered), now_ms())


def _acceptance_record(command: str, cwd: str) -> TrustRecord:
    folder = os.path.realpath(cwd)
    return TrustRecord("acceptance", folder, (command,), _sha256((command, folder)), now_ms())


def _key(one: TrustRecord) -> str:
    """Return the key in the store: a project once per kind, an acceptance command by its hash."""
    if one.kind == "git":
        return f"git {one.path}"
    return one.path if one.kind == "project" else one.sha256


def _is_allowed(wanted: TrustRecord, env: Mapping[str, str] | None) -> bool:
    found = _read_store(_store_path(env)).get(_key(wanted))
    return found is not None and found.kind == wanted.kind and found.sha256 == wanted.sha256


def _allow(wanted: TrustRecord, env: Mapping[str, str] | None) -> TrustRecord:
    for command in wanted.commands:
        check_text("command", command, allow_empty=False)

    def put(store: Store) -> bool:
        store[_key(wanted)] = wanted
        return True

    _update_store(env, put)
    return wanted


def _update_store(env: Mapping[str, str] | None, change: Callable[[Store], bool]) -> bool:
    """Read, change and write the store under its lock; nothing is written if nothing changed."""
    path = _store_path(env)
    files.make_private_folder(os.path.dirname(path))
    with RangeLock(path + ".lock") as lock:
        lock.take(0, timeout=LOCK_TIMEOUT, what="the trust store")
        store = _read_store(path)
        if not change(store):
            return False
        files.replace(path, _encode_store(store))
        return True


def _store_path(env: Mapping[str, str] | None) -> str:
    return os.path.join(home(env), "trust.json")


def _sha256(parts: Iterable[str]) -> str:
    import hashlib
    import json

    return hashlib.sha256(json.dumps(list(parts)).encode("ascii")).hexdigest()


def _encode_store(store: Store) -> bytes:
    import json

    return json.dumps({"version": 1, "trusted": [one._asdict() for one in store.values()]}, indent=2).encode("ascii")


def _read_store(path: str) -> Store:
    data = files.read(path)
    if data is None:
        return {}
    import json

    try:
        found = json.loads(data)
        return {_key(one): one for one in map(_parse_record, found["trusted"])}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Damaged(path, f"it is not a list of trusted commands ({type(error).__name__}: {error})") from error


def _parse_record(entry: object) -> TrustRecord:
    """Parse an entry of the store; its hash is recomputed, so that what is shown is what is allowed."""
    if not isinstance(entry, dict):
        raise TypeError("an entry is not an object")
    fields = cast("dict[str, object]", entry)
    kind, path, commands, at = (fields[name] for name in ("kind", "path", "commands", "at"))
    if not isinstance(path, str) or not isinstance(commands, list) or not isinstance(at, int):
        raise TypeError("an entry has a field of the wrong type")
    how = "typed" if fields.get("how") == "typed" else "shown"
    texts = tuple(command for command in cast("list[object]", commands) if isinstance(command, str))
    if kind in ("project", "git"):
        return TrustRecord(str(kind), path, texts, _sha256(texts), at)
    if kind == "acceptance" and len(texts) == 1:
        return TrustRecord("acceptance", path, texts, _sha256((texts[0], path)), at, how)
    raise ValueError("an entry is neither a project's nor an acceptance command's")
