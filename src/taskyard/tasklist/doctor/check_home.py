"""Checks of `$TASKYARD_HOME` and of our part of a list: that they are ours alone, and readable."""

from __future__ import annotations

import os
import stat

from taskyard import trust
from taskyard.errors import Damaged, StorageError
from taskyard.tasklist import team_record
from taskyard.tasklist.doctor.finding import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.tasklist.list_folder import ListFolder

#: What Taskyard makes in its home. Whatever else lies there is somebody else's, and left alone.
_PARTS = (
    *("doctor", "events", "hold", "instances", "jobs", "mail", "notice.key", "outbox", "sinks", "sinks.log", "teams"),
    *("trust.json", "trust.json.lock"),
)


def check_home(home: str) -> Iterator[Finding]:
    """Permissions, links and unreadable records in Taskyard's own state."""
    if not os.path.lexists(home):
        return
    yield from _check_mode(home)
    for part in _PARTS:
        yield from _check_tree(os.path.join(home, part))
    try:
        damaged = team_record.listing(home)[1]
    except StorageError as error:
        damaged = [Damaged(error.path, error.why)]
    for one in damaged:
        yield Finding("damaged-record", one.file, f"The team in it cannot be read: {one.why}.", "mend it, or remove it")
    try:
        trust.list_trusted(env={"TASKYARD_HOME": home})
    except (Damaged, StorageError) as error:
        file = os.path.join(home, "trust.json")
        why = f"It cannot be read, so nothing is trusted: {error.why}."
        yield Finding("damaged-record", file, why, "remove it, and trust again what you trust")


def check_private(folder: ListFolder) -> Iterator[Finding]:
    """Permissions of our part of a list; drafts there become task files and look like them."""
    if not os.path.lexists(folder.ours):
        return
    yield from _check_mode(folder.ours)
    for part in (folder.ledger, folder.lock, folder.log, folder.leases):
        yield from _check_tree(part)


def _check_tree(path: str) -> Iterator[Finding]:
    if not os.path.lexists(path):
        return
    yield from _check_mode(path)
    if os.path.islink(path) or not os.path.isdir(path):
        return
    for folder, folders, names in os.walk(path):
        for name in sorted([*folders, *names]):
            file = os.path.join(folder, name)
            yield from _check_mode(file)
            if name.endswith(".tmp") and (pid := _writer(name)) and not os.path.exists(f"/proc/{pid}"):
                yield Finding("leftover-draft", file, "Whoever wrote it died; nobody reads it.", "moves it aside")


def _check_mode(path: str) -> Iterator[Finding]:
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return  # gone since the folder was read
    if stat.S_ISLNK(found.st_mode):
        if _is_own_link(path):
            return
        why = f"It leads to {os.readlink(path)!r}; Taskyard makes no links here and follows none."
        yield Finding("planted-link", path, why, "remove it, if you do not know what it is for")
    elif found.st_mode & 0o077:
        wanted = 0o700 if stat.S_ISDIR(found.st_mode) else 0o600
        why = f"Its mode is {stat.S_IMODE(found.st_mode):04o}: other users may read or change what is yours."
        yield Finding("open-permissions", path, why, f"sets it to {wanted:04o}")


def _is_own_link(path: str) -> bool:
    """Whether it is the output of a job that says everything in its transcript: the only link Taskyard makes."""
    folder, name = os.path.split(path)
    is_output = name == "output" and os.path.basename(os.path.dirname(folder)) == "jobs"
    return is_output and os.readlink(path) == "transcript.jsonl"


def _writer(name: str) -> str | None:
    """The process that wrote `<name>.<pid>.<8 hex>.tmp`."""
    parts = name.rsplit(".", 3)
    return parts[1] if len(parts) == 4 and parts[1].isdigit() and len(parts[2]) == 8 else None
