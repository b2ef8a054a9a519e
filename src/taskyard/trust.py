"""
Which of other people's commands a person has read and allowed to run.

Hooks that come with a project and acceptance commands of tasks are somebody else's code. They run only
after `taskyard trust`, which keeps here what exactly was allowed:

    $TASKYARD_HOME/trust.json     by project root: the SHA-256 of all its hook commands, and of all programs
                                  that its git configuration names;
                                  by SHA-256: one acceptance command in one folder

One changed character in a command, one command more or less, another folder: it has to be allowed again.
What a command calls (a script in the project) is not looked into.
"""

from __future__ import annotations

import os

from taskyard.clock import now_ms
from taskyard.disk import files
from taskyard.disk.kernel_lock import RangeLock
from taskyard.errors import Damaged
from taskyard.names import check_text
from taskyard.paths import home
from taskyard.typed import NamedTuple, cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Store = dict[str, "Trusted"]

#: Updates take milliseconds; somebody who holds the lock this long is stopped or debugged.
LOCK_TIMEOUT = 15.0


class Trusted(NamedTuple):
    """One thing a person allowed."""

    kind: str  #: "project", "git" or "acceptance"
    path: str  #: the project's root, or the folder the command runs in; without symbolic links
    commands: tuple[str, ...]  #: what was allowed, as it was shown
    sha256: str
    at: int  #: epoch ms
    how: str = "shown"  #: "shown": by `taskyard trust`; "typed": an acceptance command a person typed at a terminal


def trusted_project(root: str, commands: Iterable[str], *, env: Mapping[str, str] | None = None) -> bool:
    """Whether exactly these hook commands of the project at `root` were allowed.

    Raises:
        Damaged: the store cannot be read; then nothing is trusted.
    """
    return _is_allowed(_project(root, commands), env)


def trust_project(root: str, commands: Iterable[str], *, env: Mapping[str, str] | None = None) -> Trusted:
    """Allow exactly these hook commands of the project at `root`, in place of those allowed before.

    Raises:
        BadText: a command is empty or holds what no command line can.
        Damaged: the store cannot be read; it is left as it is.
    """
    return _allow(_project(root, commands), env)


def trusted_git(root: str, programs: Iterable[str], *, env: Mapping[str, str] | None = None) -> bool:
    """Whether exactly these programs of the git configuration of the project at `root` were allowed.

    Raises:
        Damaged: the store cannot be read; then nothing is trusted.
    """
    return _is_allowed(_project(root, programs, kind="git"), env)


def trust_git(root: str, programs: Iterable[str], *, env: Mapping[str, str] | None = None) -> Trusted:
    """Allow exactly these programs of the git configuration of the project at `root`, replacing earlier ones.

    Raises:
        BadText: a program is empty or holds what no command line can.
        Damaged: the store cannot be read; it is left as it is.
    """
    return _allow(_project(root, programs, kind="git"), env)


def trusted_command(command: str, cwd: str, *, env: Mapping[str, str] | None = None) -> bool:
    """Whether the acceptance command `command` may run in `cwd`, a folder of a main checkout.

    Trust in a command of a linked worktree is kept by the same folder of the main checkout
    (`acceptance.Acceptance.trusted_at`).

    Raises:
        Damaged: the store cannot be read; then nothing is trusted.
    """
    return _is_allowed(_acceptance(command, cwd), env)


def trust_command(command: str, cwd: str, *, how: str = "shown", env: Mapping[str, str] | None = None) -> Trusted:
    """Allow the acceptance command `command` to run in `cwd` and in the same folder of linked worktrees.

    Args:
        command: The command as it was shown.
        cwd: A folder of a main checkout: `acceptance.Acceptance.trusted_at`.
        how: How a person allowed it.
        env: The environment that names `$TASKYARD_HOME`.

    Raises:
        BadText: the command is empty or holds what no command line can.
        Damaged: the store cannot be read; it is left as it is.
    """
    return _allow(_acceptance(command, cwd)._replace(how=how), env)


def list_trusted(*, env: Mapping[str, str] | None = None) -> tuple[Trusted, ...]:
    """Everything allowed, projects first, each by path.

    Raises:
        Damaged: the store cannot be read.
    """
    return tuple(sorted(_read(_store_path(env)).values(), key=lambda one: (one.kind != "project", one)))


def revoke(
    path: str, command: str | None = None, *, kind: str = "project", env: Mapping[str, str] | None = None
) -> bool:
    """Take back what was allowed to the project at `path`, or to one acceptance command there; whether it was there.

    Without a command, `kind` says what of the project: its hooks ("project") or its git programs ("git").

    Raises:
        Damaged: the store cannot be read; it is left as it is.
    """
    key = _key(_project(path, (), kind=kind) if command is None else _acceptance(command, path))
    return _change(env, lambda store: store.pop(key, None) is not None)


def _project(root: str, commands: Iterable[str], *, kind: str = "project") -> Trusted:
    ordered = tuple(sorted(set(commands)))
    return Trusted(kind, os.path.realpath(root), ordered, _sha256(ordered), now_ms())


def _acceptance(command: str, cwd: str) -> Trusted:
    folder = os.path.realpath(cwd)
    return Trusted("acceptance", folder, (command,), _sha256((command, folder)), now_ms())


def _key(one: Trusted) -> str:
    """Where `one` stands in the store: a project once per kind, an acceptance command by what it is."""
    if one.kind == "git":
        return f"git {one.path}"
    return one.path if one.kind == "project" else one.sha256


def _is_allowed(wanted: Trusted, env: Mapping[str, str] | None) -> bool:
    found = _read(_store_path(env)).get(_key(wanted))
    return found is not None and found.kind == wanted.kind and found.sha256 == wanted.sha256


def _allow(wanted: Trusted, env: Mapping[str, str] | None) -> Trusted:
    for command in wanted.commands:
        check_text("command", command, allow_empty=False)

    def put(store: Store) -> bool:
        store[_key(wanted)] = wanted
        return True

    _change(env, put)
    return wanted


def _change(env: Mapping[str, str] | None, change: Callable[[Store], bool]) -> bool:
    """Read, change and write the store under its lock; nothing is written if nothing changed."""
    path = _store_path(env)
    files.make_private_folder(os.path.dirname(path))
    with RangeLock(path + ".lock") as lock:
        lock.take(0, timeout=LOCK_TIMEOUT, what="the trust store")
        store = _read(path)
        if not change(store):
            return False
        files.replace(path, _as_json(store))
        return True


def _store_path(env: Mapping[str, str] | None) -> str:
    return os.path.join(home(env), "trust.json")


def _sha256(parts: Iterable[str]) -> str:
    import hashlib
    import json

    return hashlib.sha256(json.dumps(list(parts)).encode("ascii")).hexdigest()


def _as_json(store: Store) -> bytes:
    import json

    return json.dumps({"version": 1, "trusted": [one._asdict() for one in store.values()]}, indent=2).encode("ascii")


def _read(path: str) -> Store:
    data = files.read(path)
    if data is None:
        return {}
    import json

    try:
        found = json.loads(data)
        return {_key(one): one for one in map(_record, found["trusted"])}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Damaged(path, f"it is not a list of what you trust ({type(error).__name__}: {error})") from error


def _record(entry: object) -> Trusted:
    """`entry` as `_as_json` wrote it; its hash is computed anew, so that what is shown is what is allowed."""
    if not isinstance(entry, dict):
        raise TypeError("an entry is no object")
    fields = cast("dict[str, object]", entry)
    kind, path, commands, at = (fields[name] for name in ("kind", "path", "commands", "at"))
    if not isinstance(path, str) or not isinstance(commands, list) or not isinstance(at, int):
        raise TypeError("an entry has a field of the wrong type")
    how = "typed" if fields.get("how") == "typed" else "shown"
    texts = tuple(command for command in cast("list[object]", commands) if isinstance(command, str))
    if kind in ("project", "git"):
        return Trusted(str(kind), path, texts, _sha256(texts), at)
    if kind == "acceptance" and len(texts) == 1:
        return Trusted("acceptance", path, texts, _sha256((texts[0], path)), at, how)
    raise ValueError("an entry is neither a project's nor an acceptance command's")
