"""Read task files and whole lists: JSON codec, cached file reader, older `tasks.json`, leases.

Format: exactly the JSON that Claude Code writes and accepts: 2-space indent, raw UTF-8, no final newline,
absent optional keys left out. Keys that neither program knows are kept, so that an older version never erases what a
newer one wrote.

`TaskReader` caches parsed tasks by mtime, ctime, size and inode; a file that changed within the last
moments is not cached, since a clock tick may hide a second change. Another program writes in place, so a
file can be read half-written: a parse error on a fresh file is retried before it counts as damage.

`ConsolidatedFile` reads the older `tasks.json`, one file with a whole list, for tasks without an `N.json`;
it is never written.

    {"tasks": [{"id": 1, "title": "…", "status": "in_progress", "owner": "teammate-1", "dependencies": [2]}]}

`teammate-N` is the Nth tracker on the list, whose subject is the teammate's name. An entry with an id that
cannot be parsed is a damaged task: its id is spent, and tasks that depend on it stay blocked.

`ListReader` combines them with the leases, and reports files that differ from the index.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from _thread import allocate_lock, get_ident
from itertools import islice
from json.encoder import encode_basestring

from taskyard.core import files
from taskyard.core.files import LARGEST_RECORD, open_plain, storage_error
from taskyard.core.values import (
    LARGEST_ID,
    MAX_COUNTED_ID,
    NamedTuple,
    as_list,
    as_object,
    cast,
    is_id,
    nearest_ids,
)
from taskyard.errors import BadValue, Damaged, StorageError
from taskyard.storage.change_feed import subscribe, wake_subscribers
from taskyard.tasks.graph import Dependents
from taskyard.tasks.list_folder import IndexRow, LeaseFiles, RecordedFields
from taskyard.tasks.model import (
    DamagedFile,
    Lease,
    Listing,
    Task,
    TaskStatus,
    mirror_blocks,
    sort_by_id,
    with_blocks,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from taskyard.storage.inotify import Subscription
    from taskyard.tasks.list_folder import ListFolder


#: Levels; deeper metadata is an attack on recursive readers, not data.
MAX_METADATA_DEPTH = 50
#: Levels read of another program's file: the deepest that can certainly be written back.
MAX_FILE_DEPTH = 200
MAX_METADATA_SIZE = 1_000_000

_KNOWN = frozenset(
    {"id", "subject", "description", "activeForm", "owner", "status"}
    | {"blocks", "blockedBy", "metadata", "createdAt", "updatedAt"}
)
_STATUS = {status.value: status for status in TaskStatus}


class UnreadableTask(Exception):
    """Bytes that are not a task; the text states why."""


class DeletedMarker(Exception):
    """A file with status `deleted`, which older writers left instead of removing it."""


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number - number != 0.0:  # 1e999: no program could write it back as JSON
        raise ValueError(f"{text[:20]} is too large a number")
    return number


_decoder = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)


def _decode(text: str) -> object:
    if text.startswith("{"):  # nearly always, and then without a search for white space before and after
        found, end = _decoder.raw_decode(text)
        if end == len(text):
            return found
    return _decoder.decode(text)


def parse_object(data: bytes) -> dict[str, object]:
    """Return the JSON object in `data`.

    Raises:
        UnreadableTask: there is none.
    """
    try:
        found = _decode(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise UnreadableTask("it is empty" if not data.strip(b"\0 \n") else f"it is not JSON ({error})") from None
    if not isinstance(found, dict):
        raise UnreadableTask("it is JSON, but no object")
    raw = cast("dict[str, object]", found)
    if data.count(b"[") + data.count(b"{") > MAX_FILE_DEPTH and is_too_deep(raw):
        raise UnreadableTask(f"it nests deeper than {MAX_FILE_DEPTH} levels")
    return raw


def is_too_deep(raw: Mapping[str, object]) -> bool:
    """Return whether a task nests deeper than is read."""
    return _depth(raw, MAX_FILE_DEPTH) > MAX_FILE_DEPTH


def decode_task(task_id: str, raw: Mapping[str, object]) -> Task:
    """Return the task in a file named after `task_id`; omissions of older writers are filled in.

    Raises:
        UnreadableTask: a field has the wrong type.
        DeletedMarker: the file only marks the task as deleted.
    """
    get = raw.get
    status = get("status", "pending")
    if status == "deleted":
        raise DeletedMarker
    if not isinstance(status, str) or status not in _STATUS:
        raise UnreadableTask(f"its status is {str(status)[:40]!r}")
    subject = get("subject")
    if not isinstance(subject, str):
        raise UnreadableTask("it has no subject")
    metadata: object = get("metadata") or {}
    if not isinstance(metadata, dict):
        raise UnreadableTask("its metadata is not an object")
    return Task(
        task_id,
        subject,
        _text(raw, "description") or "",
        _text(raw, "activeForm"),
        _text(raw, "owner") or None,
        _STATUS[status],
        _ids(raw, "blocks"),
        _ids(raw, "blockedBy"),
        cast("dict[str, object]", metadata),
        _timestamp(get("createdAt")),
        _timestamp(get("updatedAt")),
    )


def _text(raw: Mapping[str, object], key: str) -> str | None:
    value = raw.get(key)
    if value is not None and not isinstance(value, str):
        raise UnreadableTask(f"its {key} is not text")
    return value


def _ids(raw: Mapping[str, object], key: str) -> tuple[str, ...]:
    value = raw.get(key)
    if not value:
        if value is None or isinstance(value, list):
            return ()
        raise UnreadableTask(f"its {key} is not a list")
    if not isinstance(value, list):
        raise UnreadableTask(f"its {key} is not a list")
    ids = [str(item) for item in cast("list[object]", value) if isinstance(item, (str, int))]
    return tuple(dict.fromkeys(item for item in ids if is_id(item)))  # an invalid id blocks nothing


def _timestamp(value: object) -> int | None:
    return int(value) if isinstance(value, (int, float)) and 0 < value < 1e15 else None


def encode_task(task: Task, keep: Mapping[str, object] | None = None) -> bytes:
    """Return `task` as its file's bytes; unknown keys of `keep` follow at the end."""
    text = encode_basestring
    parts = [
        f'{{\n  "id": {text(task.id)},\n  "subject": {text(task.subject)},\n  "description": {text(task.description)}'
    ]
    if task.active_form is not None:
        parts.append(f'  "activeForm": {text(task.active_form)}')
    if task.owner is not None:
        parts.append(f'  "owner": {text(task.owner)}')
    parts.append(
        f'  "status": "{task.status.value}",\n  "blocks": {_array(task.blocks)},\n'
        f'  "blockedBy": {_array(task.blocked_by)}'
    )
    if task.metadata:
        parts.append(f'  "metadata": {_nested(task.metadata)}')
    if task.created_at is not None:
        parts.append(f'  "createdAt": {task.created_at}')
    if task.updated_at is not None:
        parts.append(f'  "updatedAt": {task.updated_at}')
    for key, value in (keep or {}).items():
        if key not in _KNOWN:
            parts.append(f"  {text(key)}: {_nested(value)}")
    # A lone surrogate (from another program's escape) is written back as the escape it was.
    return (",\n".join(parts) + "\n}").encode("utf-8", "backslashreplace")


def _array(ids: tuple[str, ...]) -> str:
    return "[\n    " + ",\n    ".join(f'"{task_id}"' for task_id in ids) + "\n  ]" if ids else "[]"


def _nested(value: object) -> str:
    # Newlines inside strings are escaped, so every real one is layout.
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False).replace("\n", "\n  ")


def check_metadata(metadata: object) -> dict[str, object]:
    """Return `metadata` if it can be stored as JSON and read back by every program.

    Raises:
        BadValue: it is no object, too deep, too large, or not expressible as JSON.
    """
    found = as_object(metadata)
    if found is None:
        raise BadValue("metadata", str(metadata), "an object with text keys")
    if _depth(found, MAX_METADATA_DEPTH) > MAX_METADATA_DEPTH:
        raise BadValue("metadata", "this object", f"at most {MAX_METADATA_DEPTH} levels")
    try:
        size = len(json.dumps(found, ensure_ascii=False, allow_nan=False).encode("utf-8"))
    except (TypeError, ValueError) as error:
        raise BadValue("metadata", "this object", f"plain JSON values ({error})") from None
    if size > MAX_METADATA_SIZE:
        raise BadValue("metadata", f"an object of {size:,} bytes", f"at most {MAX_METADATA_SIZE:,} bytes")
    return found


def _depth(value: object, most: int) -> int:
    """Return the nesting depth of `value`, up to `most` + 1, without recursion."""
    level, here = 0, [value]
    while here and level <= most:
        level += 1
        here = [inner for item in here for inner in _child_values(item)]
    return level


def _child_values(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(cast("dict[object, object]", value).values())
    return as_list(value) or []


#: Nanoseconds. A younger file may still change with the same mtime (coarse kernel clocks tick at 4-10 ms).
_MIN_CACHE_AGE_NS = 20_000_000

#: Nanoseconds. A file this fresh may be in the middle of another program's in-place write.
_FRESH_NS = 1_000_000_000

#: Seconds between two reads of a half-written file: 31 ms in all; an in-place write takes less than one.
_TORN_RETRY_DELAYS = (0.001, 0.002, 0.004, 0.008, 0.016)


class TaskFileState(NamedTuple):
    """One task file at one moment. Neither task nor damage: it only marks the task as deleted."""

    task: Task | None
    damage: str | None
    stat: os.stat_result
    data: bytes
    raw: dict[str, object]

    @property
    def crc(self) -> int:
        """Checksum of the content."""
        return zlib.crc32(self.data)


class TaskReader:
    """The task files of one list."""

    def __init__(self, folder: ListFolder) -> None:
        self._folder = folder
        self._cache: dict[str, tuple[tuple[int, int, int, int], Task | DamagedFile | None]] = {}
        self._fresh: dict[str, tuple[int, int]] = {}
        self._unchecked: dict[str, tuple[int, int]] = {}
        self._present: set[str] | None = None

    def read(self, task_id: str) -> TaskFileState | None:
        """Read the file of `task_id` without the cache; None if there is no such task."""
        path = self._folder.task(task_id)
        for wait in (*_TORN_RETRY_DELAYS, 0.0):
            found = _read_task_file(path, task_id)
            if found is None or found.damage is None:
                return found
            if not wait or time.time_ns() - found.stat.st_mtime_ns > _FRESH_NS:
                return found
            time.sleep(wait)
        return None

    def get(self, task_id: str) -> Task | DamagedFile | None:
        """Return the task, its damage, or None; from the cache if its file did not change."""
        if task_id not in self._cache:
            return self._read(task_id)
        try:
            found = os.lstat(self._folder.task(task_id))
        except FileNotFoundError:
            self._cache.pop(task_id, None)
            return None
        except OSError as error:
            raise storage_error(self._folder.task(task_id), error) from error
        return self._known(task_id, found)

    def scan(self, names: Iterable[str] | None = None) -> dict[str, Task | DamagedFile]:
        """Return every task of the list by id, or those in the files `names`."""
        if names is not None:
            ids = [name[:-5] for name in names if name.endswith(".json") and is_id(name[:-5])]
            found = {task_id: self.get(task_id) for task_id in ids}
            return {task_id: item for task_id, item in found.items() if item is not None}
        tasks: dict[str, Task | DamagedFile] = {}
        try:
            with os.scandir(self._folder.path) as entries:
                for entry in entries:
                    name = entry.name
                    if name.endswith(".json") and is_id(task_id := name[:-5]):
                        try:
                            known = task_id in self._cache
                            item = (
                                self._known(task_id, entry.stat(follow_symlinks=False))
                                if known
                                else (self._read(task_id))
                            )
                        except FileNotFoundError:
                            continue  # removed since the folder was read
                        if item is not None:
                            tasks[task_id] = item
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise storage_error(self._folder.path, error) from error
        return tasks

    def news(self, present: Iterable[str]) -> tuple[dict[str, tuple[int, int]], set[str] | None]:
        """Return files read since the last call, with size and checksum, and ids removed since; None = first call."""
        fresh, self._fresh = self._fresh, {}
        before, self._present = self._present, set(present)
        return fresh, None if before is None else before - self._present

    def unchecked(self) -> dict[str, tuple[int, int]]:
        """Return files read since the last call, with size and checksum, not yet compared with the log."""
        unchecked, self._unchecked = self._unchecked, {}
        return unchecked

    def correct(self, task_id: str, seen: TaskFileState, task: Task) -> None:
        """Return `task` from the cache for as long as the file's stat is that of `seen`."""
        known = self._cache.get(task_id)
        if known is not None and known[0] == _stat_key(seen.stat):
            self._cache[task_id] = (known[0], task)

    def forget(self, task_id: str) -> None:
        """Drop the task from the cache."""
        self._cache.pop(task_id, None)

    def _known(self, task_id: str, found: os.stat_result) -> Task | DamagedFile | None:
        known = self._cache.get(task_id)
        return known[1] if known is not None and known[0] == _stat_key(found) else self._read(task_id)

    def _read(self, task_id: str) -> Task | DamagedFile | None:
        seen = self.read(task_id)
        if seen is None:
            self._cache.pop(task_id, None)
            return None
        item = DamagedFile(f"{task_id}.json", seen.damage) if seen.damage is not None else seen.task
        now = seen.stat
        self._fresh[task_id] = self._unchecked[task_id] = (len(seen.data), seen.crc)
        if time.time_ns() - max(now.st_mtime_ns, now.st_ctime_ns) > _MIN_CACHE_AGE_NS:
            self._cache[task_id] = (_stat_key(now), item)
        else:
            self._cache.pop(task_id, None)
        return item


def _stat_key(found: os.stat_result) -> tuple[int, int, int, int]:
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def _read_task_file(path: str, task_id: str) -> TaskFileState | None:
    try:
        fd = open_plain(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        return _unopenable_state(path, error)
    try:
        found = os.fstat(fd)
        data = os.pread(fd, min(found.st_size, LARGEST_RECORD) + 1, 0)
    except OSError as error:
        raise storage_error(path, error) from error
    finally:
        os.close(fd)
    if len(data) > LARGEST_RECORD:
        return TaskFileState(None, f"it is larger than {LARGEST_RECORD:,} bytes", found, data, {})
    try:
        raw = parse_object(data)
        return TaskFileState(decode_task(task_id, raw), None, found, data, raw)
    except UnreadableTask as why:
        return TaskFileState(None, str(why), found, data, {})
    except DeletedMarker:
        return TaskFileState(None, None, found, data, {})


def _unopenable_state(path: str, error: OSError) -> TaskFileState | None:
    """Return the state of a file that exists and cannot be opened: a link, or another user's."""
    try:
        return TaskFileState(None, storage_error(path, error).why, os.lstat(path), b"", {})
    except FileNotFoundError:
        return None
    except OSError as worse:
        raise storage_error(path, worse) from error


_ALIASES = {"title": "subject", "dependencies": "blockedBy"}


class _ConsolidatedContent(NamedTuple):
    """Parsed content of the file."""

    tasks: Mapping[str, Task] = {}
    broken: Mapping[str, DamagedFile] = {}
    highest: int = 0
    damage: DamagedFile | None = None


class ConsolidatedFile:
    """The `tasks.json` of one list, read again only when it changes."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._look: tuple[int, int, int] | None = None
        self._content = _ConsolidatedContent()

    def tasks(self) -> Mapping[str, Task]:
        """Return its tasks by id; none if there is no such file."""
        return self._now().tasks

    def broken(self) -> Mapping[str, DamagedFile]:
        """Return its tasks that have an id and cannot be parsed, by id."""
        return self._now().broken

    def highest(self) -> int:
        """Return the highest id in it, including unreadable and deleted tasks."""
        return self._now().highest

    def damage(self) -> DamagedFile | None:
        """Return why the file cannot be read, or which entry has no valid id."""
        return self._now().damage

    def _now(self) -> _ConsolidatedContent:
        if not os.access(self._path, os.F_OK):  # called at every create: a refusal is cheaper than an exception
            self._look, self._content = None, _EMPTY
            return _EMPTY
        found = os.lstat(self._path)
        look = (found.st_mtime_ns, found.st_size, found.st_ino)
        if look != self._look:
            self._look, self._content = look, _read_consolidated(self._path)
        return self._content


_EMPTY = _ConsolidatedContent()


def _read_consolidated(path: str) -> _ConsolidatedContent:
    try:
        data = files.read(path)
        rows = as_list(parse_object(data if data is not None else b"{}").get("tasks", []))
    except (UnreadableTask, Damaged, StorageError) as why:
        return _ConsolidatedContent(damage=DamagedFile("tasks.json", getattr(why, "why", str(why))))
    if rows is None:
        return _ConsolidatedContent(damage=DamagedFile("tasks.json", "its tasks are no list"))
    tasks: dict[str, Task] = {}
    broken: dict[str, DamagedFile] = {}
    highest, damage = 0, None
    for row in rows:
        raw = {_ALIASES.get(key, key): value for key, value in (as_object(row) or {}).items()}
        task_id = str(raw.get("id"))
        if not is_id(task_id):
            damage = DamagedFile("tasks.json", f"one of its tasks cannot be read: {str(row)[:60]}")
            continue
        highest = max(highest, int(task_id) if int(task_id) <= MAX_COUNTED_ID else 0)
        try:
            tasks[task_id] = decode_task(task_id, raw)
        except DeletedMarker:
            pass  # deleted by an older writer; only its id is spent
        except UnreadableTask as why:
            broken[task_id] = DamagedFile("tasks.json", f"its task #{task_id} cannot be read: {why}")
    return _ConsolidatedContent(
        tasks, {key: found for key, found in broken.items() if key not in tasks}, highest, damage
    )


def resolve_owner(task: Task, trackers: Sequence[Task]) -> Task:
    """Return `task` with owner `teammate-N` replaced by the name on the Nth tracker, if it exists."""
    kind, _, number = (task.owner or "").partition("-")
    if (
        kind != "teammate"
        or not (number.isascii() and number.isdigit() and len(number) < 10)
        or not 0 < int(number) <= len(trackers)
    ):
        return task
    return task._replace(owner=trackers[int(number) - 1].subject)


if TYPE_CHECKING:
    RowLookup = Callable[[Iterable[str] | None], Mapping[str, IndexRow] | None]


class ListReader:
    """All tasks of one list, by its files and lease records."""

    def __init__(
        self,
        folder: ListFolder,
        *,
        alive: Callable[[Lease], bool | None],
        was_removed: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._folder = folder
        self._was_removed = was_removed
        self.reader = TaskReader(folder)
        self.leases = LeaseFiles(folder, alive=alive)
        self.undone: set[str] = set()  #: tasks shown with recorded fields, since another program undid them
        self._own_fields = RecordedFields(folder)
        self.consolidated = ConsolidatedFile(folder.consolidated)
        self._items: dict[str, Task | DamagedFile] = {}
        self._dependents: Dependents | None = None
        self._plain: tuple[list[Task], list[DamagedFile]] | None = None
        self._whole: Listing | None = None
        self._feed: Subscription | None = None
        self._wakes: dict[int, Subscription] = {}
        self._looks = 0
        self._mutex = allocate_lock()

    def get(self, task_id: str) -> Task | None:
        """Return a task with its lease, and with the `blocks` that the blocked tasks confirm.

        A dependent that the task's file does not name is included only once this process has read the whole list:
        reading ten thousand files for one task would be too expensive.

        Raises:
            Damaged: its file cannot be read.
        """
        item = self._item(task_id) or self._older().get(task_id)
        if item is None:
            return None
        if isinstance(item, DamagedFile):
            raise self._damaged(item)
        if item.blocks or self._looks:
            candidates = {*item.blocks, *self._known_dependents(task_id)}
            item = with_blocks(item, sorted((o for o in candidates if self._agrees(o, task_id)), key=int))
        lease = self.leases.current(item) if item.owner is not None else None
        return item if lease is None else item._replace(lease=lease)

    def _known_dependents(self, task_id: str) -> set[str]:
        """Return the known dependents of a task; up to date where inotify reports every change."""
        with self._mutex:
            if self._feed is not None and self._feed.is_exact:
                self._refresh_items()
            return self._waiting(task_id) if self._looks else set()

    def waiting_for(self, task_id: str) -> list[str]:
        """Return the ids of tasks whose `blockedBy` names the task."""
        with self._mutex:
            self._refresh_items()
            return sorted(self._waiting(task_id), key=int)

    def _waiting(self, task_id: str) -> set[str]:
        if self._dependents is None:
            self._dependents = Dependents(self._items.values())
        known = (item for item in self._older().values() if isinstance(item, Task))
        older = {other.id for other in known if task_id in other.blocked_by}
        return {*self._dependents.of(task_id), *older.difference(self._items)}

    def older(self, task_id: str) -> Task | None:
        """Return a task without its own file from the older file.

        Raises:
            Damaged: it cannot be read there.
        """
        item = self._older().get(task_id)
        if isinstance(item, DamagedFile):
            raise self._damaged(item)
        return item

    def _damaged(self, item: DamagedFile) -> Damaged:
        return Damaged(f"{self._folder.path}/{item.file}", item.why)

    def _agrees(self, blocked: str, blocker: str) -> bool:
        other = self.look(blocked)
        return other is not None and blocker in other.blocked_by

    def look(self, task_id: str) -> Task | None:
        """Return another task, for a rule; an unreadable one counts as open."""
        item = self._item(task_id) or self._older().get(task_id)
        return Task(task_id, "") if isinstance(item, DamagedFile) else item

    def nearest(self, task_id: str, *, most: int = 3) -> tuple[str, ...]:
        """Return the readable tasks with the ids closest to a missing one; few files are read for it."""
        older = self._older()
        there = filter(is_id, {*older, *map(str, self._folder.ids_on_disk())} - {task_id})
        readable = (
            near
            for near in nearest_ids(task_id, there, most=LARGEST_ID)
            if isinstance(self.reader.get(near) or older.get(near), Task)
        )
        return tuple(islice(readable, most))

    def everything(self) -> list[Task]:
        """Return all readable tasks by id, read from their files."""
        found = {**self._older(), **self.reader.scan()}
        found.update(self._corrected(self._own_fields.suspects(self.reader.unchecked())))
        return sort_by_id(item for item in found.values() if isinstance(item, Task))

    def _item(self, task_id: str) -> Task | DamagedFile | None:
        """Return a task with its recorded fields, even if another program's write undid them."""
        item = self.reader.get(task_id)
        if isinstance(item, Task) and (unchecked := self.reader.unchecked()):
            return self._corrected(self._own_fields.suspects(unchecked)).get(task_id, item)
        return item

    def _corrected(self, suspects: Iterable[str]) -> dict[str, Task]:
        """Return those of the tasks whose fields were undone, with the recorded ones."""
        found: dict[str, Task] = {}
        for task_id in suspects:
            correction = self._own_fields.corrected(task_id, self.reader)
            if correction is None:
                self.undone.discard(task_id)
                continue
            found[task_id] = correction[1]
            self.reader.correct(task_id, *correction)
            self.undone.add(task_id)
        return found

    def listing(self, known: RowLookup) -> tuple[Listing, list[str]]:
        """Return the whole list, and the ids whose files differ from the index."""
        with self._mutex:
            return self._listing(known)

    def _listing(self, known: RowLookup) -> tuple[Listing, list[str]]:
        same = self._refresh()
        changed, suspects = self._changed(known)
        self.reader.unchecked()  # `_changed` has compared these already
        if suspects:
            corrected = self._corrected(suspects)
            self._items.update(corrected)
            same = same and not corrected
        leases, same_leases = self.leases.everyone()
        if not same or self._plain is None:
            self._plain = self._assembled()
        if not (same and same_leases) or self._whole is None:
            tasks, damaged = self._plain
            self._whole = Listing(_attach_leases(tasks, leases), damaged)
        return self._whole, changed

    def any_open(self) -> bool:
        """Return whether an open task that is no tracker, or an unreadable file, is left."""
        with self._mutex:
            self._refresh_items()
            found = {**self._older(), **self._items} if self._older() else self._items
            return any(
                isinstance(item, DamagedFile) or not (item.is_done or item.is_internal) for item in found.values()
            )

    def _assembled(self) -> tuple[list[Task], list[DamagedFile]]:
        found: dict[str, Task | DamagedFile] = {**self._older(), **self._items}
        tasks = mirror_blocks(sort_by_id(item for item in found.values() if isinstance(item, Task)))
        damaged = [item for item in found.values() if isinstance(item, DamagedFile)]
        if (whole := self.consolidated.damage()) is not None:
            damaged.append(whole)
        return tasks, damaged

    def _refresh_items(self) -> None:
        """Bring `_items` up to date, and drop what was derived from them if they changed."""
        if not self._refresh():
            self._whole = self._plain = None

    def _refresh(self) -> bool:
        """Bring `_items` up to date; return whether nothing had changed.

        The first call in a process reads everything, the second also subscribes to the folder, and from then on
        only files that inotify reports are read again.
        """
        if self._feed is None and self._looks:
            self._feed = subscribe(self._folder.path)
        self._looks += 1
        names = self._feed.changed() if self._feed is not None else None
        if names is None:
            self._items, self._dependents = self.reader.scan(), None
            return False
        ids = {name[:-5] for name in names if name.endswith(".json") and is_id(name[:-5])}
        for task_id in ids:
            item = self.reader.get(task_id)
            if self._dependents is not None:
                self._dependents.replace(self._items.get(task_id), item)
            if item is None:
                self._items.pop(task_id, None)
            else:
                self._items[task_id] = item
        return not ids and "tasks.json" not in names

    def wait(self, timeout: float, *, debounce: float) -> bool:
        """Wait for a file event or a signal of this process that something may have changed."""
        wake = self._wakes.get(get_ident())
        if wake is None:  # one per thread, so that no thread consumes another's wake-up
            self._wakes[get_ident()] = subscribe(self._folder.path)
            return True  # changes before the subscription are unknown
        woken = wake.wait(timeout, debounce=debounce)
        wake.changed()
        return woken

    def signal(self) -> None:
        """Wake all waiters for this list in this process."""
        wake_subscribers(self._folder.path)

    def close(self) -> None:
        """End the subscriptions."""
        for feed in (self._feed, *self._wakes.values()):
            if feed is not None:
                feed.close()
        self._feed, self._wakes = None, {}
        self.leases.close()
        self._looks = 0

    def _changed(self, known: RowLookup) -> tuple[list[str], list[str]]:
        """Return files that another program changed since any Taskyard process last read the list.

        The second list has those of them that are in the log: their recorded fields may have been undone.
        """
        fresh, gone = self.reader.news(self._items)
        if not fresh and not gone and gone is not None:
            return [], []
        rows = known(None if gone is None else {*fresh, *gone})
        if rows is None:
            return [], self._own_fields.suspects(fresh)
        changed = [task_id for task_id, found in fresh.items() if not rows.get(task_id, IndexRow()).holds(*found)]
        suspects = [task_id for task_id in changed if rows.get(task_id, IndexRow()).entry is not None]
        if gone is None:  # first call in this process: only the index shows earlier removals
            # An intent belongs to a crashed writer, or to one still at work: `Recovery` finds out.
            missing = {task_id for task_id, row in rows.items() if row.is_present and task_id not in self._items}
            unfinished = {task_id for task_id, row in rows.items() if row.intent is not None}
            return [*changed, *sorted((missing | unfinished).difference(changed), key=int)], suspects
        return changed + [task_id for task_id in gone if rows.get(task_id, IndexRow()).is_present], suspects

    def _older(self) -> Mapping[str, Task | DamagedFile]:
        """Return tasks that only the consolidated file has, readable or not, with owners by name."""
        broken, tasks = self.consolidated.broken(), self.consolidated.tasks()
        if not tasks and not broken:
            return broken
        there = {task_id: task for task_id, task in tasks.items() if not self._was_removed(task_id)}
        if any((task.owner or "").startswith("teammate-") for task in there.values()):
            items = self.reader.scan().values()
            trackers = sort_by_id(item for item in items if isinstance(item, Task) and item.is_internal)
            there = {task_id: resolve_owner(task, trackers) for task_id, task in there.items()}
        return {**broken, **there}

    def highest_consolidated(self) -> int:
        """Return the highest id in the older file, which `create` must not give out again."""
        return self.consolidated.highest()


def _attach_leases(tasks: list[Task], leases: Mapping[str, Lease]) -> list[Task]:
    """Return the tasks, with their leases attached to claimed ones."""
    if not leases:
        return tasks
    return [
        task._replace(lease=lease)
        if (lease := leases.get(task.id)) is not None and lease.owner == task.owner and not task.is_done
        else task
        for task in tasks
    ]
