"""Files of a list's folder: paths, task index, high-water mark, lease records, recorded fields.

    <list>/N.json            task N                       <list>/.lock            npm's lock target
    <list>/.highwatermark    the highest id given out     <list>/tasks.json       older consolidated form
    <list>/.taskyard/        lock  ledger  log/  leases/  tmp/

Index (`.taskyard/ledger`): one fixed-size row per id with size and checksum of the task file after our last
read or write, its last log entry, and, while a write is in progress, the position in the log where it began
(the intent). Another program's change is detected by comparing one row, and the next process finds the
unfinished work of a crashed writer. The index can be rebuilt from the log and the files.

High-water mark (`.highwatermark`, shared with Claude Code): decimal text without a newline; garbage counts
as 0. It is read and raised in place, under the list's lock: it only grows, so a smaller number is never
visible.

Lease records: the instance that holds a claim, one file per claimed task in `.taskyard/leases/`. They are
not in the task file, because another program patches a task's metadata from an older read, and a revived
token would be no fence.

Recorded fields: for `metadata.taskyard` the log is the authority, the task file a mirror. Claude Code
merges an update into metadata that it read before it took the task's lock; such a write brings old metadata
back, so a value in the task file alone proves nothing. Every change of ours is in the log with the whole
task, and the index shows whether a file still is what we last wrote or saw. If it is not, the fields are
taken from the log:

    the log has fields that Taskyard wrote      they count; a different mirror was undone, and is restored
    the log ends with the task's removal,       the mirror counts: another program made the task, or its fields
    or Taskyard never wrote fields

Readers show the fields of the log at once; a process that may write restores the mirror
(`writer.Recovery`).
"""

from __future__ import annotations

import json
import os
import struct
import time
import zlib
from _thread import allocate_lock
from collections.abc import Iterable

from taskyard.core import files
from taskyard.core.files import open_plain, storage_error
from taskyard.core.system import now_ms
from taskyard.core.values import LARGEST_ID, MAX_COUNTED_ID, NamedTuple, cast, folder_name, is_id
from taskyard.errors import BadName, StorageError
from taskyard.storage.change_feed import subscribe
from taskyard.tasks.model import Lease, Task
from taskyard.tasks.model import paths_overlap as paths_overlap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from taskyard.storage.inotify import Subscription
    from taskyard.storage.journal import Journal
    from taskyard.tasks.history import RowSource
    from taskyard.tasks.reader import TaskFileState, TaskReader


class ListFolder:
    """The paths of one list."""

    def __init__(self, tasks_dir: str, name: str) -> None:
        self.name = name
        self.tasks_dir = tasks_dir
        self.path = os.path.join(tasks_dir, name)
        self.mark = os.path.join(self.path, ".highwatermark")
        self.npm_target = os.path.join(self.path, ".lock")
        self.consolidated = os.path.join(self.path, "tasks.json")
        self.ours = os.path.join(self.path, ".taskyard")
        self.lock = os.path.join(self.ours, "lock")
        self.index = os.path.join(self.ours, "ledger")
        self.log = os.path.join(self.ours, "log")
        self.leases = os.path.join(self.ours, "leases")
        self.tmp = os.path.join(self.ours, "tmp")

    def task(self, task_id: str) -> str:
        """Return the file of a task."""
        return f"{self.path}/{task_id}.json"

    def draft(self, task_id: str) -> str:
        """Return the path where a task's next content is written before it is renamed into place."""
        return f"{self.tmp}/{task_id}.json"

    def lease(self, task_id: str) -> str:
        """Return the lease record of a task."""
        return f"{self.leases}/{task_id}.json"

    def lease_draft(self, task_id: str) -> str:
        """Return the path where a lease record is written before it is renamed into place."""
        return f"{self.tmp}/{task_id}.lease"

    def exists(self) -> bool:
        """Return whether the list exists; refuse folders that are files or links.

        Raises:
            StorageError: there is something else at its path.
        """
        for path in (self.tasks_dir, self.path):
            try:
                found = os.lstat(path)
            except FileNotFoundError:
                return False
            except OSError as error:
                raise files.storage_error(path, error) from error
            files.check_folder(path, found)
        return True

    def make(self) -> None:
        """Create what is missing of the list's folder and of `.taskyard` in it."""
        files.make_folder(self.tasks_dir, mode=0o755)
        files.make_folder(self.path, mode=0o755)
        for path in (self.ours, self.log, self.leases, self.tmp):
            files.make_folder(path, mode=0o700)
        if not os.access(self.npm_target, os.F_OK):
            try:
                files.create(self.npm_target, b"", mode=0o644)
            except FileExistsError:
                pass

    def ids_on_disk(self) -> Iterator[int]:
        """Yield the ids for which an entry `N.json` of any type exists."""
        try:
            names = os.listdir(self.path)
        except OSError as error:
            raise files.storage_error(self.path, error) from error
        for name in names:
            number = name[:-5]
            if name.endswith(".json") and number.isascii() and number.isdigit() and int(number) <= LARGEST_ID:
                yield int(number)


def list_names(tasks_dir: str) -> list[str]:
    """Return the sorted names of lists in a folder, none if it is missing. Links are skipped: a list is a folder.

    Raises:
        StorageError: it is a file or a link, or not readable.
    """
    try:
        files.check_folder(tasks_dir, os.lstat(tasks_dir))
        with os.scandir(tasks_dir) as entries:
            found = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise files.storage_error(tasks_dir, error) from error
    return sorted(name for name in found if is_list_name(name))


def is_list_name(name: str) -> bool:
    """Return whether a list's folder can have this name."""
    try:
        return folder_name("a list", name) == name
    except BadName:
        return False


_ROW = struct.Struct("<QQII")
_GONE = 0xFFFFFFFF
_WRITE = os.O_RDWR | os.O_CREAT

#: Rows read of one index (48 MB): more than any list has; a file with more is not ours.
_MAX_ROWS = 2_000_000


class IndexRow(NamedTuple):
    """What is known of one task."""

    entry: int | None = None  #: id of its last log entry; None = unknown task
    intent: int | None = None  #: end of the log when an unfinished write began
    size: int = _GONE
    crc: int = 0

    @property
    def is_present(self) -> bool:
        """Whether the file existed."""
        return self.size != _GONE

    def holds(self, size: int, crc: int) -> bool:
        """Return whether a file with this size and checksum is the one last known."""
        return self.size == size and self.crc == crc


class TaskIndex:
    """The index rows of one list, read and written by position."""

    def __init__(self, path: str, *, writable: bool = True) -> None:
        """Open the index, creating it if missing; without `writable` an existing one, read-only."""
        try:
            self._fd = open_plain(path, _WRITE if writable else os.O_RDONLY)
        except OSError as error:
            raise storage_error(path, error) from error
        self._path = path

    def row(self, task_id: str) -> IndexRow:
        """Return the row of `task_id`."""
        try:
            data = os.pread(self._fd, _ROW.size, int(task_id) * _ROW.size)
        except OSError as error:
            raise storage_error(self._path, error) from error
        return _unpack_row(_ROW.unpack(data)) if len(data) == _ROW.size else IndexRow()

    def put(self, task_id: str, row: IndexRow) -> None:
        """Write the row of a task."""
        entry = 0 if row.entry is None else row.entry + 1
        intent = 0 if row.intent is None else row.intent + 1
        data = _ROW.pack(entry, intent, row.size, row.crc)
        try:
            os.pwrite(self._fd, data, int(task_id) * _ROW.size)
        except OSError as error:
            raise storage_error(self._path, error) from error

    def intend(self, task_id: str, row: IndexRow, start: int) -> None:
        """Record the intent to change a task with index row `row`, with the log ending at `start`."""
        data = _ROW.pack(0 if row.entry is None else row.entry + 1, start + 1, *row[2:])
        try:
            os.pwrite(self._fd, data, int(task_id) * _ROW.size)
        except OSError as error:
            raise storage_error(self._path, error) from error

    def highest(self) -> int:
        """Return the highest id in the index, except ids above `MAX_COUNTED_ID`."""
        last = max(os.fstat(self._fd).st_size // _ROW.size - 1, 0)
        if last <= MAX_COUNTED_ID:
            return last
        return max((number for task_id, _ in self.rows() if (number := int(task_id)) <= MAX_COUNTED_ID), default=0)

    def intents(self) -> list[str]:
        """Return the ids with an unfinished write."""
        found: list[str] = []
        for first, data in _row_chunks(self._fd):
            # Checked in bulk: nearly always there is none among thousands.
            started = struct.unpack(f"<{len(data) // 8}Q", data)[1::3]
            if any(started):
                found += [str(first + index) for index, intent in enumerate(started) if intent]
        return [task_id for task_id in found if is_id(task_id)]

    def rows(self) -> Iterator[tuple[str, IndexRow]]:
        """Yield every known id with its row; holes of a sparse file are skipped."""
        return _rows(self._fd)

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


def read_index(path: str) -> dict[str, IndexRow] | None:
    """Return every row of an index, read-only; None if it is missing or not readable."""
    try:
        fd = open_plain(path)
    except OSError:
        return None
    try:
        return dict(_rows(fd))
    finally:
        os.close(fd)


def _rows(fd: int) -> Iterator[tuple[str, IndexRow]]:
    for first, data in _row_chunks(fd):
        for index, fields in enumerate(_ROW.iter_unpack(data), first):
            if (fields[0] or fields[1]) and 0 < index <= LARGEST_ID:
                yield str(index), _unpack_row(fields)


def _row_chunks(fd: int) -> Iterator[tuple[int, bytes]]:
    """Yield whole rows in chunks, each with the number of its first; holes are skipped."""
    position, size = 0, min(os.fstat(fd).st_size, (LARGEST_ID + 1) * _ROW.size)
    left = _MAX_ROWS
    while position < size and left > 0:
        try:
            position = os.lseek(fd, position, os.SEEK_DATA)
        except OSError:
            return  # only a hole up to the end
        position -= position % _ROW.size
        data = os.pread(fd, 4096 * _ROW.size, position)
        whole = len(data) - len(data) % _ROW.size
        if not whole:
            return
        left -= whole // _ROW.size
        yield position // _ROW.size, data[:whole]
        position += whole


def make_row(entry: int, data: bytes) -> IndexRow:
    """Return the row of a task whose file contains `data`."""
    return IndexRow(entry, None, len(data), zlib.crc32(data))


def _unpack_row(fields: tuple[int, ...]) -> IndexRow:
    entry, intent, size, crc = fields
    if not entry and not intent:
        return IndexRow()  # a hole between written rows: unknown task
    return IndexRow(entry - 1 if entry else None, intent - 1 if intent else None, size, crc)


_OPEN = os.O_RDWR | os.O_CREAT


class HighWaterMark:
    """The high-water mark of a list, kept open, and reopened when its file was replaced."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd = -1
        self._size = 0

    def read(self) -> int:
        """Return the highest id given out according to the mark."""
        try:
            found = os.fstat(self._fd) if self._fd >= 0 else None
            if found is None or not found.st_nlink:
                self.close()
                self._fd = open_plain(self._path, _OPEN, 0o644)
                found = os.fstat(self._fd)
            self._size = found.st_size
            return leading_number(os.pread(self._fd, 64, 0))
        except OSError as error:
            raise storage_error(self._path, error) from error

    def write(self, value: int) -> None:
        """Write `value`; `read` must have been called before."""
        data = b"%d" % value
        try:
            os.pwrite(self._fd, data, 0)
            if self._size > len(data):  # garbage of another program after it, or a returned id
                os.ftruncate(self._fd, len(data))
        except OSError as error:
            raise storage_error(self._path, error) from error

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def leading_number(data: bytes) -> int:
    """Parse digits as JavaScript's parseInt does: after white space, up to the first other character."""
    text = data.strip()
    if not text.isdigit():
        end = 0
        while end < len(text) and 48 <= text[end] <= 57:
            end += 1
        text = text[:end]
    if len(text) > 20:
        return LARGEST_ID + 1
    return int(text or b"0")


_TEXTS = ("owner", "instance", "token", "kind", "host", "lock", "place")


def lease_to_json(lease: Lease) -> dict[str, object]:
    """Return a lease as JSON; empty fields are left out."""
    return {name: value for name, value in zip(lease._fields, lease) if value}


def lease_from_json(raw: Mapping[str, object]) -> Lease | None:
    """Return the lease in a record; None if there is no valid one."""
    get = raw.get
    texts = [text for name in _TEXTS if isinstance(text := get(name, ""), str)]
    if len(texts) < len(_TEXTS) or not texts[2]:
        return None
    owner, instance, token, kind, *where = texts
    since, expires, span = get("since"), get("expires"), get("span")
    since = since if isinstance(since, int) else 0
    expires = expires if isinstance(expires, int) else None
    return Lease(owner, instance, token, kind, since, expires, span if isinstance(span, int) else 0, *where)


#: Nanoseconds. Two younger records may have equal times (coarse kernel clocks tick at 4-10 ms).
_MIN_CACHE_AGE_NS = 20_000_000

#: Bytes; far more than any record needs. A larger one is ignored.
_MAX_RECORD_SIZE = 65536

_decode = json.JSONDecoder().raw_decode
_encode = json.JSONEncoder().encode


class LeaseFiles:
    """The lease records of one list. Writers hold the task's lock."""

    def __init__(self, folder: ListFolder, *, alive: Callable[[Lease], bool | None]) -> None:
        """Open the records; `alive(lease)` checks its holder by kernel lock, None = unknown from here."""
        self._folder = folder
        self._alive = alive
        self._known: dict[str, Lease] = {}
        self._read: dict[str, tuple[tuple[int, int, int], tuple[Lease | None, int]]] = {}
        self._feed: Subscription | None = None
        self._looked = False
        self._holders: dict[tuple[str, str, str], list[str]] | None = None
        self._mutex = allocate_lock()

    def read(self, task_id: str) -> tuple[Lease | None, int]:
        """Return the lease of a task, and how many holders it lost before.

        Records are only ever replaced, so one with the same stat is the same, unless it is so young that a clock
        tick may hide a second one (in a file with a reused inode).
        """
        path = self._folder.lease(task_id)
        try:
            if (known := self._read.get(task_id)) is not None and known[0] == _stat_key(os.lstat(path)):
                return known[1]
            fd = open_plain(path)
        except OSError:
            return None, 0  # missing or unreadable: its owner is then never presumed dead
        try:
            found, data = os.fstat(fd), os.pread(fd, _MAX_RECORD_SIZE + 1, 0)
        except OSError:
            return None, 0
        finally:
            os.close(fd)
        record = _parse_record(data) if len(data) <= _MAX_RECORD_SIZE else (None, 0)
        if time.time_ns() - found.st_mtime_ns > _MIN_CACHE_AGE_NS:
            self._read[task_id] = (_stat_key(found), record)
        else:
            self._read.pop(task_id, None)
        return record

    def write(self, task_id: str, lease: Lease | None, losses: int) -> None:
        """Write the record; without lease and losses, remove it."""
        path = self._folder.lease(task_id)
        if lease is None and not losses:
            files.remove(path)
            return
        held = {} if lease is None else lease_to_json(lease)
        held["losses"] = losses
        self._put(path, self._folder.lease_draft(task_id), _encode(held).encode())

    def _put(self, path: str, draft: str, data: bytes) -> None:
        """Write a record through a draft, which the next writer or recovery finds after a crash."""
        try:
            files.create(draft, data)
        except FileExistsError:
            files.remove(draft)  # left by a crashed writer
            files.create(draft, data)
        try:
            os.rename(draft, path)
        except OSError as error:
            files.remove(draft)
            raise files.storage_error(path, error) from error

    def discard_draft(self, task_id: str) -> None:
        """Remove the draft of a record whose writer crashed."""
        files.remove(self._folder.lease_draft(task_id))

    def current(self, task: Task) -> Lease | None:
        """Return the lease under which the task is owned now, even if its holder is dead."""
        if task.owner is None or task.is_done:
            return None
        lease, _ = self.read(task.id)
        return lease if lease is not None and lease.owner == task.owner else None

    def is_dead(self, lease: Lease) -> bool:
        """Return whether the holder is certainly dead; an unknown state counts as alive."""
        if lease.kind == "time":
            return lease.expires is not None and lease.expires < now_ms()
        return lease.kind == "process" and self._alive(lease) is False

    def everyone(self) -> tuple[Mapping[str, Lease], bool]:
        """Return every lease by task id, and whether none changed since the last call."""
        with self._mutex:
            return self._all_leases()

    def _all_leases(self) -> tuple[Mapping[str, Lease], bool]:
        names = self._feed.changed() if self._feed is not None else None
        if self._feed is None and self._looked:
            self._feed = subscribe(self._folder.leases)
        self._looked = True
        if names is None:
            before, self._known = self._known, self._scan()
            same = before == self._known
            self._holders = self._holders if same else None
            return self._known, same
        ids = {name[:-5] for name in names if name.endswith(".json") and is_id(name[:-5])}
        if ids:
            self._holders = None
        for task_id in ids:
            lease, _ = self.read(task_id)
            if lease is None:
                self._known.pop(task_id, None)
            else:
                self._known[task_id] = lease
        return self._known, not ids

    def _scan(self) -> dict[str, Lease]:
        try:
            names = os.listdir(self._folder.leases)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return {}
        ids = [name[:-5] for name in names if name.endswith(".json") and is_id(name[:-5])]
        return {task_id: lease for task_id in ids if (lease := self.read(task_id)[0]) is not None}

    def dead_ids(self) -> list[str]:
        """Return the tasks whose holders are dead, by the records `everyone` last saw; each holder is checked once."""
        with self._mutex:
            return self._dead_ids()

    def _dead_ids(self) -> list[str]:
        if self._holders is None:
            self._holders = {}
            for task_id, lease in self._known.items():
                key = (lease.kind, lease.lock, lease.host) if lease.kind == "process" else (lease.kind, task_id, "")
                if lease.kind != "manual":
                    self._holders.setdefault(key, []).append(task_id)
        return [
            task_id
            for ids in self._holders.values()
            if ids[0] in self._known and self.is_dead(self._known[ids[0]])
            for task_id in ids
        ]

    def close(self) -> None:
        """End the subscription to the records."""
        if self._feed is not None:
            self._feed.close()
        self._feed, self._looked = None, False


def _stat_key(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_ino, found.st_mtime_ns, found.st_size


def _parse_record(data: bytes) -> tuple[Lease | None, int]:
    """Parse a record; an unreadable one counts as empty."""
    try:
        raw = _decode(data.decode())[0]
    except (ValueError, RecursionError):
        return None, 0
    if not isinstance(raw, dict):
        return None, 0
    record = cast("dict[str, object]", raw)
    losses = record.get("losses")
    return lease_from_json(record), losses if isinstance(losses, int) else 0


#: From this many tasks on, the whole index is read at once.
_MANY = 32

#: Attempts to read a file that another Taskyard process is writing.
_MAX_TRIES = 3


class RecordedFields:
    """Recorded fields for readers: opens files only while needed, and writes nothing."""

    def __init__(self, folder: ListFolder) -> None:
        self._folder = folder

    def suspects(self, found: Mapping[str, tuple[int, int]]) -> list[str]:
        """Return the tasks whose file differs from its index row; `found` has size and checksum of each file."""
        rows = self._rows(found)
        return [
            task_id
            for task_id, content in found.items()
            if (row := rows.get(task_id)) is not None and row.entry is not None and not row.holds(*content)
        ]

    def _rows(self, ids: Iterable[str]) -> Mapping[str, IndexRow]:
        wanted = list(ids)
        if len(wanted) >= _MANY:
            return read_index(self._folder.index) or {}
        try:
            index = TaskIndex(self._folder.index, writable=False)
        except StorageError:
            return {}
        try:
            return {task_id: index.row(task_id) for task_id in wanted}
        finally:
            index.close()

    def corrected(self, task_id: str, reader: TaskReader) -> tuple[TaskFileState, Task] | None:
        """Return the current file and the task with its recorded fields; None where the file itself counts.

        A file that a Taskyard process is writing counts as it is, and is not cached by the reader.
        """
        try:
            index = TaskIndex(self._folder.index, writable=False)
        except StorageError:
            return None
        try:
            for _ in range(_MAX_TRIES):
                row = index.row(task_id)
                seen = reader.read(task_id)
                if seen is None or seen.task is None or row.entry is None or row.holds(len(seen.data), seen.crc):
                    return None
                if row.intent is not None:
                    break
                if index.row(task_id) == row:  # no Taskyard process wrote between the two reads
                    from taskyard.storage.journal import Journal

                    task = with_recorded_fields(Journal(self._folder.log), index, seen.task)
                    return None if task is seen.task else (seen, task)
            reader.forget(task_id)
            return None
        except StorageError:
            return None  # a log that cannot be read is no authority
        finally:
            index.close()


def with_recorded_fields(journal: Journal, index: RowSource, found: Task) -> Task:
    """Return the file's task `found` with recorded Taskyard fields; `found` itself if they are the same.

    Raises:
        StorageError: the log cannot be read.
    """
    from taskyard.tasks import history

    recorded: Mapping[str, object] | None = None
    for change in history.newest_first(journal, index, found.id):
        if found.id not in change.tasks:
            continue  # the entry records damage of the file, not a state
        state = change.tasks[found.id]
        if state is None:
            return found  # the recorded fields ended with the task
        if recorded is None:
            recorded = state.extra
            if recorded == found.extra and isinstance(found.metadata.get("taskyard", {}), dict):
                return found
        if state.extra and change.act.cause != "external":
            break  # Taskyard wrote fields, and only Taskyard changes them
    else:
        return found
    metadata = {name: value for name, value in found.metadata.items() if name != "taskyard" or recorded}
    if recorded:
        metadata["taskyard"] = recorded
    return found._replace(metadata=metadata)


def differing_fields(found: Task, kept: Task) -> str:
    """Return the names of the fields that differ between the two tasks, for the log."""
    names = {*found.extra, *kept.extra}
    return ", ".join(sorted(name for name in names if found.extra.get(name) != kept.extra.get(name))) or "taskyard"
