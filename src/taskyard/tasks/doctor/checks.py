"""Checks of the doctor: `$TASKYARD_HOME`, a list's folder, its records, task files and dependencies.

They yield findings and change nothing; most are pure functions of a `ListSnapshot`. Claude Code ignores a
file that its schema refuses. Taskyard reads more than that, so a task can be on our list and missing from
Claude Code's: such tasks are reported, and repaired by rewriting them.
"""

from __future__ import annotations

import json
import os
import stat
from itertools import pairwise

from taskyard.core.files import open_plain
from taskyard.core.values import LARGEST_ID, MAX_COUNTED_ID, NamedTuple, as_list, as_object, is_id
from taskyard.errors import Damaged, StorageError
from taskyard.storage import trust
from taskyard.storage.locks import MAX_CLOCK_SKEW, STALE_AFTER
from taskyard.tasks.doctor.finding import Finding
from taskyard.tasks.graph import find_cycles, half_edges
from taskyard.tasks.list_folder import IndexRow
from taskyard.tasks.model import Task, TaskStatus, sort_by_id
from taskyard.tasks.reader import UnreadableTask, decode_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from taskyard.tasks.doctor.snapshot import ListSnapshot, LogSummary
    from taskyard.tasks.list_folder import LeaseFiles, ListFolder
    from taskyard.tasks.reader import TaskFileState


_OURS = frozenset([".lock", ".highwatermark", "tasks.json", ".taskyard"])


def check_names(look: ListSnapshot) -> Iterator[Finding]:
    """Report entries of the folder that are neither a task nor a lock."""
    for name in look.entries:
        if name in _OURS or name.endswith(".lock") or (name.endswith(".json") and is_id(name[:-5])):
            continue
        file = os.path.join(look.folder.path, name)
        if name.endswith(".json") and name[:-5].isascii() and name[:-5].isdigit():
            why = f"No task can be called that: ids are whole numbers from 1 to {LARGEST_ID}, without leading zeros."
            yield Finding("foreign-file", file, why, "moves it aside")
        else:
            yield Finding("other-file", file, "It is not part of the list; Taskyard leaves it alone.")
    for task_id in look.seen:
        if int(task_id) > MAX_COUNTED_ID:
            why = f"Id {task_id} leaves no room for others. Taskyard counts on from lower ids; Claude Code does not."
            yield Finding("id-without-room", look.folder.task(task_id), why, f"`taskyard task rm {task_id}`", task_id)


def check_locks(look: ListSnapshot) -> Iterator[Finding]:
    """Report abandoned lock folders, and entries that prevent a lock folder."""
    if look.busy is not None:
        why = f"It is held by {look.busy.holder}, for more than {look.busy.waited:.0f} s."
        fix = "see what that process does; end it if it is stuck, and its lock is free at once"
        yield Finding("lock-held", look.folder.lock, why, fix)
    for name, found in look.entries.items():
        if not name.endswith(".lock") or name == ".lock":
            continue
        file = os.path.join(look.folder.path, name)
        if not stat.S_ISDIR(found.st_mode):
            yield Finding(
                "foreign-lock", file, "It is not a folder, so no process can take or free this lock.", "moves it aside"
            )
        elif _list_dir(file):
            yield Finding("foreign-lock", file, "It is not empty, so no process can free this lock.", "moves it aside")
        elif reason := stale_reason(look, found):
            yield Finding("stale-lock", file, reason, "frees it")
    target = look.entries.get(".lock")
    if target is not None and not stat.S_ISREG(target.st_mode):
        why = "It is not a plain file; the list's lock is taken beside it."
        yield Finding("foreign-lock", look.folder.npm_target, why, "moves it aside and makes the empty file again")


def stale_reason(look: ListSnapshot, found: os.stat_result) -> str | None:
    """Return why a lock folder is abandoned; None if a process may hold it."""
    age = look.at - found.st_mtime
    if found.st_mode & stat.S_ISVTX and look.is_quiet:
        return "A Taskyard process that died left it."
    if age < -MAX_CLOCK_SKEW:
        return f"Its time is {-age:.0f} s ahead of the clock, so it would never count as abandoned."
    return f"It was last touched {age:.0f} s ago; live holders touch theirs." if age > STALE_AFTER else None


def check_high_water_mark(look: ListSnapshot) -> Iterator[Finding]:
    """Compare the high-water mark with every id known to have been given out."""
    file, found = look.folder.mark, look.entries.get(".highwatermark")
    if found is not None and not stat.S_ISREG(found.st_mode):
        yield Finding(
            "impossible-mark", file, "It is not a plain file.", "moves it aside and writes the highest known id"
        )
        return
    text = _read_start(file) if found is not None else b"0"
    highest = highest_known(look)
    if not text.strip().isdigit():
        why = f"It says {text[:20].decode('ascii', 'replace')!r}, which counts as 0."
        yield Finding("bad-mark", file, why, f"writes {highest}")
    elif len(text.strip()) > 9 or int(text) > MAX_COUNTED_ID:
        why = f"It says {text[:20].decode('ascii')}, which leaves no room for new ids. Taskyard ignores it."
        yield Finding("impossible-mark", file, why, f"writes {highest}, the highest id that is known")
    elif max(int(text), highest_on_disk(look)) < highest:
        why = f"It says {int(text)}, but id {highest} was given out before: another program might give it again."
        yield Finding("low-mark", file, why, f"writes {highest}")


def highest_on_disk(look: ListSnapshot) -> int:
    """Return the highest id that has a file."""
    return max((number for number in map(int, look.seen) if number <= MAX_COUNTED_ID), default=0)


def highest_known(look: ListSnapshot) -> int:
    """Return the highest id in any record."""
    remembered = [number for number in map(int, (*look.rows, *look.log.last)) if number <= MAX_COUNTED_ID]
    return max(highest_on_disk(look), look.older_highest, *remembered)


def check_drafts(look: ListSnapshot) -> Iterator[Finding]:
    """Report partly written files of crashed writers in `.taskyard`."""
    for folder in (look.folder.tmp, look.folder.leases):
        for name in _list_dir(folder):
            file = os.path.join(folder, name)
            if folder == look.folder.leases and not name.endswith(".tmp"):
                continue
            if look.is_quiet or look.at - _mtime(file) > STALE_AFTER:
                yield Finding("leftover-draft", file, "Its writer died; no process reads it.", "moves it aside")


def check_consolidated(look: ListSnapshot) -> Iterator[Finding]:
    """Report damage in the consolidated file of an older layout, which is read and never written."""
    file = look.folder.consolidated
    if look.older_damage is not None:
        yield Finding(
            "damaged-older-list",
            file,
            _sentence(look.older_damage),
            "it is never written: fix it, or remove it",
        )
    for task_id, found in look.older_broken.items():
        if task_id not in look.seen:
            fix = f"it is never written: fix the entry; until then #{task_id} counts as open"
            yield Finding("damaged-older-list", file, _sentence(found.why), fix, task_id)


def _sentence(why: str) -> str:
    return f"{why[:1].upper()}{why[1:]}."


def check_file_system(look: ListSnapshot) -> Iterator[Finding]:
    """Report a list on a network file system."""
    if look.is_network:
        why = "Kernel locks may not reach other machines there: lock folders are used alone."
        yield Finding("network-fs", look.folder.path, why)


def _read_start(file: str) -> bytes:
    try:
        fd = open_plain(file)
    except OSError:
        return b""
    try:
        return os.read(fd, 4096)
    finally:
        os.close(fd)


def _list_dir(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _mtime(file: str) -> float:
    try:
        return os.lstat(file).st_mtime
    except OSError:
        return float("inf")


#: Entries that Taskyard creates in its home. All others belong to other programs and are left alone.
_HOME_ENTRIES = (
    *("doctor", "events", "hold", "instances", "jobs", "mail", "notice.key", "outbox", "sinks", "sinks.log", "teams"),
    *("trust.json", "trust.json.lock"),
)


def check_home(home: str) -> Iterator[Finding]:
    """Report open permissions, links and unreadable records in `$TASKYARD_HOME`."""
    if not os.path.lexists(home):
        return
    yield from _check_mode(home)
    for part in _HOME_ENTRIES:
        yield from _check_tree(os.path.join(home, part))
    try:
        trust.list_trusted(env={"TASKYARD_HOME": home})
    except (Damaged, StorageError) as error:
        file = os.path.join(home, "trust.json")
        why = f"It cannot be read, so nothing is trusted: {error.why}."
        yield Finding("damaged-record", file, why, "remove it, and trust again what you trust")


def check_permissions(folder: ListFolder) -> Iterator[Finding]:
    """Report open permissions in a list's `.taskyard`; drafts are exempt, since they become task files."""
    if not os.path.lexists(folder.ours):
        return
    yield from _check_mode(folder.ours)
    for part in (folder.index, folder.lock, folder.log, folder.leases):
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
                yield Finding("leftover-draft", file, "Its writer died; no process reads it.", "moves it aside")


def _check_mode(path: str) -> Iterator[Finding]:
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return  # removed since the folder was read
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
    """Return whether it is the output of a job that writes only a transcript: the only link Taskyard makes."""
    folder, name = os.path.split(path)
    is_output = name == "output" and os.path.basename(os.path.dirname(folder)) == "jobs"
    return is_output and os.readlink(path) == "transcript.jsonl"


def _writer(name: str) -> str | None:
    """Return the pid in `<name>.<pid>.<8 hex>.tmp`."""
    parts = name.rsplit(".", 3)
    return parts[1] if len(parts) == 4 and parts[1].isdigit() and len(parts[2]) == 8 else None


def check_unfinished(look: ListSnapshot) -> Iterator[Finding]:
    """Report changes whose writers crashed half-way."""
    for task_id, row in look.rows.items() if look.is_quiet else ():
        if row.intent is not None:
            why = f"The last change of #{task_id} was begun and not finished: its writer died."
            fix = "completes it if it had taken effect, else undoes it"
            yield Finding("unsettled", look.folder.index, why, fix, task_id)


def check_leases(look: ListSnapshot, leases: LeaseFiles) -> Iterator[Finding]:
    """Report lease records that match no task, and dead holders."""
    if not look.is_quiet:
        return
    unsettled = {task_id for task_id, row in look.rows.items() if row.intent is not None}
    for task_id in lease_ids(look):
        if task_id in unsettled:
            continue  # its record may belong to the unfinished change
        file = look.folder.lease(task_id)
        found = look.seen.get(task_id)
        task = found.task if found is not None else look.older.get(task_id)
        if found is not None and found.damage is not None:
            continue  # only the task states its owner
        if why := orphan_reason(task, task_id, leases):
            yield Finding("orphan-lease", file, why, "removes the record", task_id)
        elif task is not None and (lease := leases.current(task)) is not None and leases.is_dead(lease):
            why = f"{lease.owner!r} held #{task_id} and is gone."
            yield Finding("dead-holder", file, why, "puts the task back into the pool", task_id)


def lease_ids(look: ListSnapshot) -> list[str]:
    """Return the tasks that have a lease record."""
    try:
        names = os.listdir(look.folder.leases)
    except OSError:
        return []
    return sorted((name[:-5] for name in names if name.endswith(".json") and is_id(name[:-5])), key=int)


def orphan_reason(task: Task | None, task_id: str, leases: LeaseFiles) -> str | None:
    """Return why a lease record is invalid; None if it is valid."""
    try:
        lease, losses = leases.read(task_id)
    except (Damaged, StorageError) as error:
        return f"It cannot be read: {error.why}."
    if task is None:
        return f"There is no task #{task_id}."
    if lease is None:
        return None if losses else "It has no readable content."
    if task.is_done:
        return f"#{task_id} is completed; no agent holds it any more."
    if task.owner != lease.owner:
        return f"It is of {lease.owner!r}, but #{task_id} belongs to {task.owner or 'no agent'}."
    return None


def check_index(look: ListSnapshot) -> Iterator[Finding]:
    """Compare the index with the event log."""
    wrong = mismatched_rows(look.rows, look.log) if look.is_quiet else []
    if wrong:
        names = ", ".join(f"#{task_id}" for task_id in wrong[:5]) + (" …" if len(wrong) > 5 else "")
        why = f"It disagrees with the event log about {names}: history and restoring would miss something."
        yield Finding("ledger", look.folder.index, why, "rebuilds those rows from the log and the files")


def mismatched_rows(rows: Mapping[str, IndexRow], log: LogSummary) -> list[str]:
    """Return the tasks whose index row does not match their last log entry, except unsettled ones."""
    wrong = [
        task_id
        for task_id in {*rows, *log.last}
        if (row := rows.get(task_id, IndexRow())).intent is None
        and (row.entry != log.last.get(task_id) or (task_id in log.present and not row.is_present))
    ]
    return sorted(wrong, key=int)


def check_log(look: ListSnapshot) -> Iterator[Finding]:
    """Report unreadable lines of the event log."""
    if look.log.torn and look.is_quiet:
        lines = "1 line" if look.log.torn == 1 else f"{look.log.torn} lines"
        why = f"{lines} cannot be read: a writer died while it wrote. They are passed over."
        yield Finding("torn-log", look.folder.log, why)


_OPTIONAL_TEXTS = ("activeForm", "owner")
_STATUSES = frozenset(status.value for status in TaskStatus)


def hidden_reasons(raw: Mapping[str, object]) -> list[str]:
    """Return why Claude Code ignores a task that we can read: one phrase for each reason."""
    return list(_reasons(raw))


def _reasons(raw: Mapping[str, object]) -> Iterator[str]:
    if not isinstance(raw.get("id"), str):
        yield "its id is not text" if "id" in raw else "it has no id"
    if not isinstance(raw.get("description"), str):
        yield "its description is null" if "description" in raw else "it has no description"
    if "status" not in raw:
        yield "it has no status"
    for key in (*_OPTIONAL_TEXTS, "metadata"):
        if key in raw and raw[key] is None:
            yield f"its {key} is null"
    for key in ("blocks", "blockedBy"):
        if not isinstance(raw.get(key), list):
            yield f"its {key} is null" if key in raw else f"it has no {key}"
        elif not all(isinstance(item, str) for item in as_list(raw[key]) or ()):
            yield f"its {key} has an item that is not text"


class SalvagedTask(NamedTuple):
    """What could be recovered of a damaged file."""

    task: Task
    lost: tuple[str, ...]  #: the fields that could not


def salvage_task(task_id: str, data: bytes) -> SalvagedTask | None:
    """Recover a task from damaged bytes; None if not even its subject can be read."""
    try:
        raw = as_object(json.loads(data.rstrip(b"\0").decode("utf-8-sig")))
    except (ValueError, RecursionError):
        return None
    if raw is None or not isinstance(raw.get("subject"), str):
        return None
    kept = {key: value for key, value in raw.items() if _is_valid_field(key, value)}
    try:
        task = decode_task(task_id, kept)
    except UnreadableTask:
        return None
    return SalvagedTask(task, tuple(key for key in raw if key not in kept))


def _is_valid_field(key: str, value: object) -> bool:
    if key == "status":
        return value in _STATUSES
    if key in ("description", *_OPTIONAL_TEXTS):
        return value is None or isinstance(value, str)
    if key == "metadata":
        return value is None or isinstance(value, dict)
    if key in ("blocks", "blockedBy"):
        return value is None or isinstance(value, list)
    return True


def mismatched_id(task_id: str, raw: Mapping[str, object]) -> str | None:
    """Return the id inside a file if it differs from the file's name."""
    inside = raw.get("id")
    text = str(inside) if isinstance(inside, (str, int)) else ""
    return None if text == task_id or (not is_id(text) and not isinstance(inside, str)) else text


def check_task_files(look: ListSnapshot) -> Iterator[Finding]:
    """Report defects of files named like tasks."""
    for task_id, seen in sorted(look.seen.items(), key=lambda pair: int(pair[0])):
        file = look.folder.task(task_id)
        if not stat.S_ISREG(seen.stat.st_mode):
            what = _describe_type(seen.stat)
            yield Finding("not-a-task-file", file, f"It is {what}.", f"moves the {what.split()[-1]} aside", task_id)
        elif seen.damage is not None:
            yield Finding(
                "damaged-task", file, f"{_capitalize(seen.damage)}.", describe_repair(look, task_id, seen), task_id
            )
        elif seen.task is None:
            why = "It only says that the task was deleted, as older writers did."
            yield Finding("deleted-mark", file, why, "moves it aside; the id stays spent", task_id)
        else:
            yield from _check_readable(task_id, file, seen)


def _check_readable(task_id: str, file: str, seen: TaskFileState) -> Iterator[Finding]:
    if reasons := hidden_reasons(seen.raw):
        why = f"Claude Code does not see it: {', '.join(reasons)}."
        yield Finding("hidden-task", file, why, "writes it again, whole", task_id)
    if inside := mismatched_id(task_id, seen.raw):
        why = f"The id in it is {inside[:40]!r}; its name says {task_id!r}."
        yield Finding("wrong-id", file, why, f"writes it again with id {task_id!r}", task_id)


def describe_repair(look: ListSnapshot, task_id: str, seen: TaskFileState) -> str:
    """Describe what repairing a damaged file would do."""
    if saved := salvage_task(task_id, seen.data):
        lost = f"; what cannot be read goes: {', '.join(saved.lost)}" if saved.lost else ""
        return f"writes it again with what can be read of it{lost}"
    if task_id in look.log.known:
        return "writes it again as it last was, by the event log"
    return "moves it aside: nothing in it can be read, and the event log never saw the task"


def check_dependencies(look: ListSnapshot) -> Iterator[Finding]:
    """Report cycles, half edges, and dependencies on missing tasks."""
    yield from check_cycles({**look.older, **look.tasks}, look.folder.task)
    if look.is_quiet and not _is_being_written(look):
        yield from check_half_edges(look.tasks, look.folder.task)
    yield from check_dangling(look.tasks, look.exists, look.folder.task)


def check_cycles(tasks: Mapping[str, Task], place: Callable[[str], str]) -> Iterator[Finding]:
    """Report tasks that wait for each other; `place` returns the location of a task."""
    for cycle in _unique_cycles(find_cycles(tasks)):
        edges = [(blocker, blocked) for blocked, blocker in pairwise(cycle)]
        path = " → ".join(f"#{task_id}" for task_id in cycle)
        ways = " or ".join(f"`taskyard task unblock {blocked} --on {blocker}`" for blocker, blocked in edges)
        why = f"They wait for each other for ever: {path}."
        yield Finding("cycle", place(cycle[0]), why, f"which is wrong, only you can say: {ways}", cycle[0])


def check_half_edges(tasks: Mapping[str, Task], place: Callable[[str], str]) -> Iterator[Finding]:
    """Report dependencies that only one of two tasks records."""
    for blocker, blocked in half_edges(tasks):
        file = place(blocker)
        if blocker in tasks[blocked].blocked_by:
            why = f"#{blocked} waits for #{blocker}, which does not say so."
            yield Finding("half-edge", file, why, f"adds #{blocked} to what #{blocker} blocks", blocker)
        else:
            why = f"#{blocker} says that it blocks #{blocked}, which does not wait for it."
            yield Finding("half-edge", file, why, f"takes #{blocked} from what #{blocker} blocks", blocker)


def check_dangling(
    tasks: Mapping[str, Task], exists: Callable[[str], object], place: Callable[[str], str]
) -> Iterator[Finding]:
    """Report dependencies on missing tasks."""
    for task in sort_by_id(tasks.values()):
        gone = sorted({other for other in (*task.blocked_by, *task.blocks) if not exists(other)}, key=int)
        if gone:
            names = ", ".join(f"#{other}" for other in gone)
            why = f"#{task.id} depends on {names}: there is no such task."
            yield Finding("dangling-blocker", place(task.id), why, f"takes {names} from it", task.id)


def check_snapshot_quarantine(look: ListSnapshot) -> Iterator[Finding]:
    """Report the quarantined tasks of a snapshot."""
    yield from check_quarantined(look.tasks, look.folder.task)


def check_quarantined(tasks: Mapping[str, Task], place: Callable[[str], str]) -> Iterator[Finding]:
    """Report quarantined tasks of any store; `place` returns the location of a task."""
    for task in sort_by_id(tasks.values()):
        if task.is_held and not task.is_done:
            why = f"#{task.id} lost its holder too often and is offered to no agent."
            yield Finding("held-task", place(task.id), why, "offers it again", task.id)


def _is_being_written(look: ListSnapshot) -> bool:
    """Return whether another program holds a task's lock: it may still write the other half of an edge."""
    return any(
        name.endswith(".json.lock") and not found.st_mode & stat.S_ISVTX and look.at - found.st_mtime < 10
        for name, found in look.entries.items()
    )


def _unique_cycles(found: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return each cycle once, starting with its lowest id."""
    kept: dict[frozenset[str], tuple[str, ...]] = {}
    for cycle in found:
        ring = cycle[:-1]
        first = ring.index(min(ring, key=int))
        kept.setdefault(frozenset(ring), (*ring[first:], *ring[:first], ring[first]))
    return list(kept.values())


def _describe_type(found: os.stat_result) -> str:
    if stat.S_ISLNK(found.st_mode):
        return "a symbolic link"
    return "a folder" if stat.S_ISDIR(found.st_mode) else "a special file"


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]
