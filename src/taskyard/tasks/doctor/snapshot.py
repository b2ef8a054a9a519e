"""Snapshot of a list for the doctor's checks, read while no Taskyard process writes.

It holds every lock of the list shared: current writers have finished, and new ones wait for some
milliseconds. Every unfinished change, draft and sticky lock folder then belongs to a crashed process.
Taking a snapshot creates, settles and releases nothing.
"""

from __future__ import annotations

import os

from taskyard.core.files import open_plain, storage_error
from taskyard.core.system import now_ms
from taskyard.core.values import LARGEST_ID, NamedTuple, as_list, as_object, is_id
from taskyard.errors import Busy, StorageError
from taskyard.storage.journal import Journal, parse_entry
from taskyard.storage.locks import RangeLock, is_network_fs
from taskyard.tasks.list_folder import IndexRow, TaskIndex
from taskyard.tasks.reader import DeletedMarker, UnreadableTask, decode_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from taskyard.tasks.file_store import ListFiles
    from taskyard.tasks.list_folder import ListFolder
    from taskyard.tasks.model import DamagedFile, Task
    from taskyard.tasks.reader import TaskFileState

#: Seconds. A change takes milliseconds; a process that holds a lock for this long is stopped, or debugged.
LOCK_TIMEOUT = 5.0


class ListSnapshot(NamedTuple):
    """A list at one moment."""

    folder: ListFolder
    entries: Mapping[str, os.stat_result]  #: everything in the list's folder, by name
    seen: Mapping[str, TaskFileState]  #: entries named like a task, by id
    older: Mapping[str, Task]  #: the tasks of an older `tasks.json`
    older_broken: Mapping[str, DamagedFile]  #: those of them that cannot be read
    older_highest: int  #: the highest id in that file
    older_damage: str | None
    rows: Mapping[str, IndexRow]  #: the index
    log: LogSummary
    is_quiet: bool  #: no Taskyard process was writing, according to kernel locks
    busy: Busy | None  #: the lock holder that prevented this check
    is_network: bool
    at: float  #: epoch seconds

    @property
    def tasks(self) -> dict[str, Task]:
        """The readable tasks that have their own file."""
        return {task_id: found.task for task_id, found in self.seen.items() if found.task is not None}

    def exists(self, task_id: str) -> bool:
        """Return whether the task exists, readable or not."""
        found = self.seen.get(task_id)
        if found is None:
            return task_id in self.older or task_id in self.older_broken
        return found.task is not None or found.damage is not None


class LogSummary(NamedTuple):
    """Content of the event log at the time of the snapshot."""

    last: Mapping[str, int]  #: by task: the id of its last effective entry
    present: frozenset[str]  #: the tasks that existed after that entry
    known: Mapping[str, Task]  #: the last state of each task
    torn: int  #: unreadable lines


def take_snapshot(files: ListFiles) -> ListSnapshot:
    """Read everything about the list."""
    folder = files.folder
    network = is_network_fs(folder.path)
    lock, busy = (None, None) if network else _lock_shared(folder)
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
    log = _summarize_segments(folder.log, segments)
    older = files.tasks.consolidated
    damage = older.damage()
    return ListSnapshot(
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


def _lock_shared(folder: ListFolder) -> tuple[RangeLock | None, Busy | None]:
    """Lock the whole list shared; None if there is no lock file, or we may not lock it."""
    if not os.path.isfile(folder.lock):
        return None, None
    try:
        lock = RangeLock(folder.lock)
    except StorageError:
        return None, None
    try:
        lock.take(0, timeout=LOCK_TIMEOUT, what=f"list {folder.name!r}", shared=True, length=LARGEST_ID + 1)
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
                    continue  # removed since the folder was read
    except OSError as error:
        raise storage_error(path, error) from error
    return dict(sorted(found.items(), key=lambda pair: (len(pair[0]), pair[0])))


def _rows(folder: ListFolder) -> dict[str, IndexRow]:
    if not os.path.isfile(folder.index) or os.path.islink(folder.index):
        return {}
    try:
        index = TaskIndex(folder.index, writable=False)
    except StorageError:
        return {}
    try:
        return {task_id: row for task_id, row in index.rows() if is_id(task_id)}
    finally:
        index.close()


def summarize_log(folder: ListFolder) -> LogSummary:
    """Summarize the log; no process may be writing."""
    return _summarize_segments(folder.log, _segments(folder.log))


def _segments(folder: str) -> dict[int, int]:
    """Return the log's segments: first position and size of each."""
    try:
        names = [name for name in os.listdir(folder) if name.endswith(".jsonl") and name[:-6].isdigit()]
        return {int(name[:-6]): os.lstat(os.path.join(folder, name)).st_size for name in names}
    except OSError:
        return {}


def _summarize_segments(folder: str, segments: Mapping[int, int]) -> LogSummary:
    """Summarize the log up to these sizes. It only grows, so this needs no lock."""
    end = max((base + size for base, size in segments.items()), default=0)
    journal = Journal(folder)
    last: dict[str, int] = {}
    states: dict[str, object] = {}
    present: set[str] = set()
    try:
        without_effect = _ineffective_entries(entry for at, entry in journal.since(0) if at < end)
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
        torn = sum(_count_torn(journal, base, size) for base, size in segments.items())
    except (StorageError, FileNotFoundError):
        return LogSummary({}, frozenset(), {}, 0)
    known = {task_id: task for task_id, raw in states.items() if (task := _parse_state(task_id, raw))}
    return LogSummary(last, frozenset(present), known, torn)


def _count_torn(journal: Journal, base: int, size: int) -> int:
    """Count unreadable lines in a segment of `size` bytes; those beyond its limit do not count."""
    lines = [line for at, line in journal.lines(base) if at < base + size]
    unreadable = sum(line is None or parse_entry(line) is None for line in lines)
    return unreadable + (size <= journal.limit and _ends_torn(journal.path(base), size))


def _ends_torn(path: str, size: int) -> bool:
    """Return whether a segment of `size` bytes ended within a line."""
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


def _ineffective_entries(entries: Iterable[Mapping[str, object]]) -> set[tuple[int, str | None]]:
    """Return entries that were closed as aborted, and single tasks that a repair left unchanged."""
    found: set[tuple[int, str | None]] = set()
    for entry in entries:
        of = entry.get("of")
        if not isinstance(of, int):
            continue
        if entry.get("cause") == "aborted":
            found.add((of, None))
        found.update((of, str(task_id)) for task_id in as_list(entry.get("left")) or ())
    return found


def _parse_state(task_id: str, raw: object) -> Task | None:
    try:
        return decode_task(task_id, as_object(raw) or {})
    except (UnreadableTask, DeletedMarker):
        return None
