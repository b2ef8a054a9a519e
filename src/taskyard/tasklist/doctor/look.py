"""
One look at a list: everything the checks need, read in a moment in which no Taskyard writes.

The look holds every lock of the list shared: whoever writes has finished, whoever wants to write
waits for some milliseconds. Then every unfinished change, draft and sticky lock folder belongs to
the dead. Nothing is made, settled or released by looking.
"""

from __future__ import annotations

import os

from taskyard.clock import now_ms
from taskyard.disk.files import storage_error
from taskyard.disk.journal import Journal, parsed
from taskyard.disk.kernel_lock import RangeLock
from taskyard.disk.mounts import is_network
from taskyard.errors import Busy, StorageError
from taskyard.names import LARGEST_ID, is_id
from taskyard.plain_file import open_plain
from taskyard.shapes import as_list, as_object
from taskyard.tasklist.ledger import Ledger, Row
from taskyard.tasklist.task_file import DeletedMark, Unreadable, task_from
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from taskyard.tasklist.list_files import ListFiles
    from taskyard.tasklist.list_folder import ListFolder
    from taskyard.tasklist.model import DamagedFile, Task
    from taskyard.tasklist.reader import Seen

#: A change takes milliseconds; who holds a lock for this many seconds is stopped, or a debugger's.
PATIENCE = 5.0


class Look(NamedTuple):
    """A list at one moment."""

    folder: ListFolder
    entries: Mapping[str, os.stat_result]  #: everything in the list's folder, by name
    seen: Mapping[str, Seen]  #: what is called like a task, by id
    older: Mapping[str, Task]  #: the tasks of an older `tasks.json`
    older_broken: Mapping[str, DamagedFile]  #: those of them that cannot be read
    older_highest: int  #: the highest id in that file
    older_damage: str | None
    rows: Mapping[str, Row]  #: the ledger
    log: Log
    is_quiet: bool  #: no Taskyard was writing, by the kernel's word
    busy: Busy | None  #: who kept us from making sure of that
    is_network: bool
    at: float  #: epoch seconds

    @property
    def tasks(self) -> dict[str, Task]:
        """The readable tasks that have a file of their own."""
        return {task_id: found.task for task_id, found in self.seen.items() if found.task is not None}

    def exists(self, task_id: str) -> bool:
        """Whether there is such a task, readable or not."""
        found = self.seen.get(task_id)
        if found is None:
            return task_id in self.older or task_id in self.older_broken
        return found.task is not None or found.damage is not None


class Log(NamedTuple):
    """What the event log says, up to the moment of the look."""

    last: Mapping[str, int]  #: by task: the id of the last entry about it that took effect
    present: frozenset[str]  #: the tasks that were there after that entry
    known: Mapping[str, Task]  #: how each task last looked
    torn: int  #: lines that cannot be read


def look_at(files: ListFiles) -> Look:
    """Everything about the list, as it is now."""
    folder = files.folder
    network = is_network(folder.path)
    lock, busy = (None, None) if network else _hold_still(folder)
    is_quiet = not network and busy is None and (lock is not None or not os.path.lexists(folder.lock))
    try:
        entries = _entries(folder.path)
        ids = [name[:-5] for name in entries if name.endswith(".json") and is_id(name[:-5])]
        seen = {task_id: found for task_id in ids if (found := files.tasks.reader.read(task_id)) is not None}
        rows = _rows(folder)
        segments = _segments(folder.log)
    finally:
        if lock is not None:
            lock.close()
    log = _log(folder.log, segments)
    older = files.tasks.consolidated
    damage = older.damage()
    return Look(
        folder,
        entries,
        seen,
        older.tasks(),
        older.broken(),
        older.highest(),
        damage.why if damage is not None else None,
        rows,
        log,
        is_quiet,
        busy,
        network,
        now_ms() / 1000,
    )


def _hold_still(folder: ListFolder) -> tuple[RangeLock | None, Busy | None]:
    """All locks of the list, shared; None where there is nobody to wait for, or the list is not ours to lock."""
    if not os.path.isfile(folder.lock):
        return None, None
    try:
        lock = RangeLock(folder.lock)
    except StorageError:
        return None, None
    try:
        lock.take(0, timeout=PATIENCE, what=f"list {folder.name!r}", shared=True, length=LARGEST_ID + 1)
    except Busy as busy:
        lock.close()
        return None, busy
    return lock, None


def _entries(path: str) -> dict[str, os.stat_result]:
    found: dict[str, os.stat_result] = {}
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                try:
                    found[entry.name] = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue  # gone since the folder was read
    except OSError as error:
        raise storage_error(path, error) from error
    return dict(sorted(found.items(), key=lambda pair: (len(pair[0]), pair[0])))


def _rows(folder: ListFolder) -> dict[str, Row]:
    if not os.path.isfile(folder.ledger) or os.path.islink(folder.ledger):
        return {}
    try:
        ledger = Ledger(folder.ledger, writable=False)
    except StorageError:
        return {}
    try:
        return {task_id: row for task_id, row in ledger.rows() if is_id(task_id)}
    finally:
        ledger.close()


def log_now(folder: ListFolder) -> Log:
    """What the log says; nobody must be writing."""
    return _log(folder.log, _segments(folder.log))


def _segments(folder: str) -> dict[int, int]:
    """The log's files at this moment: first position and size of each."""
    try:
        names = [name for name in os.listdir(folder) if name.endswith(".jsonl") and name[:-6].isdigit()]
        return {int(name[:-6]): os.lstat(os.path.join(folder, name)).st_size for name in names}
    except OSError:
        return {}


def _log(folder: str, segments: Mapping[int, int]) -> Log:
    """What the log said when its files had these sizes. It only grows, so that needs no lock."""
    end = max((base + size for base, size in segments.items()), default=0)
    journal = Journal(folder)
    last: dict[str, int] = {}
    states: dict[str, object] = {}
    present: set[str] = set()
    try:
        without_effect = _without_effect(entry for at, entry in journal.since(0) if at < end)
        for at, entry in journal.since(0):
            if at >= end:
                break
            tasks = as_object(entry.get("tasks")) or {}
            for task_id in (*tasks, *(as_object(entry.get("damaged")) or {})):
                if (at, None) in without_effect or (at, task_id) in without_effect or not is_id(task_id):
                    continue
                last[task_id] = at
                present.discard(task_id)
                if tasks.get(task_id) is not None:
                    states[task_id] = tasks[task_id]
                    present.add(task_id)
        torn = sum(_torn(journal, base, size) for base, size in segments.items())
    except (StorageError, FileNotFoundError):
        return Log({}, frozenset(), {}, 0)
    known = {task_id: task for task_id, raw in states.items() if (task := _task(task_id, raw))}
    return Log(last, frozenset(present), known, torn)


def _torn(journal: Journal, base: int, size: int) -> int:
    """How many lines that count cannot be read in a segment of `size` bytes; those beyond its limit are no loss."""
    lines = [line for at, line in journal.lines(base) if at < base + size]
    unreadable = sum(line is None or parsed(line) is None for line in lines)
    return unreadable + (size <= journal.limit and _ends_torn(journal.path(base), size))


def _ends_torn(path: str, size: int) -> bool:
    """Whether a segment of `size` bytes ended in the middle of a line."""
    if size == 0:
        return False
    try:
        fd = open_plain(path)
        try:
            return os.pread(fd, 1, size - 1) != b"\n"
        finally:
            os.close(fd)
    except OSError as error:
        raise storage_error(path, error) from error


def _without_effect(entries: Iterable[Mapping[str, object]]) -> set[tuple[int, str | None]]:
    """Entries that were closed as aborted, and single tasks that a repair left as they were."""
    found: set[tuple[int, str | None]] = set()
    for entry in entries:
        of = entry.get("of")
        if not isinstance(of, int):
            continue
        if entry.get("cause") == "aborted":
            found.add((of, None))
        found.update((of, str(task_id)) for task_id in as_list(entry.get("left")) or ())
    return found


def _task(task_id: str, raw: object) -> Task | None:
    try:
        return task_from(task_id, as_object(raw) or {})
    except (Unreadable, DeletedMark):
        return None
