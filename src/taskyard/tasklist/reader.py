"""
Reading task files, as often as anyone likes.

Parsed tasks are kept by how their file looks (mtime, ctime, size, inode); a file that changed
within the last moments is not believed, since a clock tick may hide a second change. Another
program writes in place, so a file can be seen torn: a parse error on a fresh file is tried again
before it counts as damage.
"""

from __future__ import annotations

import os
import time
import zlib

from taskyard.disk.files import LARGEST_RECORD, storage_error
from taskyard.names import is_id
from taskyard.plain_file import open_plain
from taskyard.tasklist.model import DamagedFile, Task
from taskyard.tasklist.task_file import DeletedMark, Unreadable, document, task_from
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskyard.tasklist.list_folder import ListFolder

#: A file younger than this may still change without its time showing it (coarse kernel clocks tick at 4-10 ms).
_YOUNG_NS = 20_000_000

#: A file this fresh may be in the middle of another program's in-place write.
_FRESH_NS = 1_000_000_000

#: Waits between two looks at a torn file: 31 ms in all, where an in-place write takes less than one.
_TORN_WAITS = (0.001, 0.002, 0.004, 0.008, 0.016)


class Seen(NamedTuple):
    """One task file at one moment. Neither task nor damage: it only marks the task as deleted."""

    task: Task | None
    damage: str | None
    stat: os.stat_result
    data: bytes
    raw: dict[str, object]

    @property
    def crc(self) -> int:
        """A fingerprint of the content."""
        return zlib.crc32(self.data)


class TaskReader:
    """The task files of one list."""

    def __init__(self, folder: ListFolder) -> None:
        self._folder = folder
        self._cache: dict[str, tuple[tuple[int, int, int, int], Task | DamagedFile | None]] = {}
        self._fresh: dict[str, tuple[int, int]] = {}
        self._unchecked: dict[str, tuple[int, int]] = {}
        self._present: set[str] | None = None

    def read(self, task_id: str) -> Seen | None:
        """The file of `task_id` as it is now, past every cache; None if there is no such task."""
        path = self._folder.task(task_id)
        for wait in (*_TORN_WAITS, 0.0):
            found = _look(path, task_id)
            if found is None or found.damage is None:
                return found
            if not wait or time.time_ns() - found.stat.st_mtime_ns > _FRESH_NS:
                return found
            time.sleep(wait)
        return None

    def get(self, task_id: str) -> Task | DamagedFile | None:
        """The task, its damage, or None; from memory if its file did not change."""
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
        """Every task of the list by id, or those in the files `names`."""
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
                            continue  # gone since the folder was read
                        if item is not None:
                            tasks[task_id] = item
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise storage_error(self._folder.path, error) from error
        return tasks

    def news(self, present: Iterable[str]) -> tuple[dict[str, tuple[int, int]], set[str] | None]:
        """Files read anew since last asked, each with size and checksum, and ids gone since; None = first time."""
        fresh, self._fresh = self._fresh, {}
        before, self._present = self._present, set(present)
        return fresh, None if before is None else before - self._present

    def unchecked(self) -> dict[str, tuple[int, int]]:
        """Files read since last asked, each with size and checksum, whose own fields nobody compared with the log."""
        unchecked, self._unchecked = self._unchecked, {}
        return unchecked

    def correct(self, task_id: str, seen: Seen, task: Task) -> None:
        """Answer `task` for as long as the file looks as it did in `seen`."""
        known = self._cache.get(task_id)
        if known is not None and known[0] == _look_of(seen.stat):
            self._cache[task_id] = (known[0], task)

    def forget(self, task_id: str) -> None:
        """Read the file anew next time."""
        self._cache.pop(task_id, None)

    def _known(self, task_id: str, found: os.stat_result) -> Task | DamagedFile | None:
        known = self._cache.get(task_id)
        return known[1] if known is not None and known[0] == _look_of(found) else self._read(task_id)

    def _read(self, task_id: str) -> Task | DamagedFile | None:
        seen = self.read(task_id)
        if seen is None:
            self._cache.pop(task_id, None)
            return None
        item = DamagedFile(f"{task_id}.json", seen.damage) if seen.damage is not None else seen.task
        now = seen.stat
        self._fresh[task_id] = self._unchecked[task_id] = (len(seen.data), seen.crc)
        if time.time_ns() - max(now.st_mtime_ns, now.st_ctime_ns) > _YOUNG_NS:
            self._cache[task_id] = (_look_of(now), item)
        else:
            self._cache.pop(task_id, None)
        return item


def _look_of(found: os.stat_result) -> tuple[int, int, int, int]:
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def _look(path: str, task_id: str) -> Seen | None:
    try:
        fd = open_plain(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        return _closed(path, error)
    try:
        found = os.fstat(fd)
        data = os.pread(fd, min(found.st_size, LARGEST_RECORD) + 1, 0)
    except OSError as error:
        raise storage_error(path, error) from error
    finally:
        os.close(fd)
    if len(data) > LARGEST_RECORD:
        return Seen(None, f"it is larger than {LARGEST_RECORD:,} bytes", found, data, {})
    try:
        raw = document(data)
        return Seen(task_from(task_id, raw), None, found, data, raw)
    except Unreadable as why:
        return Seen(None, str(why), found, data, {})
    except DeletedMark:
        return Seen(None, None, found, data, {})


def _closed(path: str, error: OSError) -> Seen | None:
    """A file that is there and cannot be opened: a link, or somebody else's."""
    try:
        return Seen(None, storage_error(path, error).why, os.lstat(path), b"", {})
    except FileNotFoundError:
        return None
    except OSError as worse:
        raise storage_error(path, worse) from error
