"""
Lease records: which instance holds a claim. One file per claimed task in `.taskyard/leases/`.

They stand beside the tasks, not in them: another program patches a task's metadata from an older
read, and a token that came back from the dead would be no fence.
"""

from __future__ import annotations

import json
import os
import time
from _thread import allocate_lock

from taskyard.clock import now_ms
from taskyard.disk import files
from taskyard.disk.follow import follow
from taskyard.names import is_id
from taskyard.plain_file import open_plain
from taskyard.tasklist.lease_json import lease_from, lease_to_json
from taskyard.tasklist.model import Lease, Task
from taskyard.typed import cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from taskyard.disk.watch import Followed
    from taskyard.tasklist.list_folder import ListFolder


#: Younger than this, two records may look the same (coarse kernel clocks tick at 4-10 ms).
_YOUNG_NS = 20_000_000

#: Far more than any record needs; what is larger is none.
_LARGEST = 65536

_decode = json.JSONDecoder().raw_decode
_encode = json.JSONEncoder().encode


class LeaseFiles:
    """The lease records of one list. Writers hold the task's lock."""

    def __init__(self, folder: ListFolder, *, alive: Callable[[Lease], bool | None]) -> None:
        """`alive(lease)` is the kernel's word on its holder; None = it cannot be told from here."""
        self._folder = folder
        self._alive = alive
        self._known: dict[str, Lease] = {}
        self._read: dict[str, tuple[tuple[int, int, int], tuple[Lease | None, int]]] = {}
        self._feed: Followed | None = None
        self._looked = False
        self._holders: dict[tuple[str, str, str], list[str]] | None = None
        self._one_at_a_time = allocate_lock()

    def read(self, task_id: str) -> tuple[Lease | None, int]:
        """The record of a task, and how many holders it lost before.

        Records are only ever replaced, so one that looks the same is the same, unless it is so young that
        a clock tick may hide a second one (in a file whose number was given out again).
        """
        path = self._folder.lease(task_id)
        try:
            if (known := self._read.get(task_id)) is not None and known[0] == _looks(os.lstat(path)):
                return known[1]
            fd = open_plain(path)
        except OSError:
            return None, 0  # none, or as good as none: its owner is then nobody's to presume dead
        try:
            found, data = os.fstat(fd), os.pread(fd, _LARGEST + 1, 0)
        except OSError:
            return None, 0
        finally:
            os.close(fd)
        record = _parsed(data) if len(data) <= _LARGEST else (None, 0)
        if time.time_ns() - found.st_mtime_ns > _YOUNG_NS:
            self._read[task_id] = (_looks(found), record)
        else:
            self._read.pop(task_id, None)
        return record

    def write(self, task_id: str, lease: Lease | None, losses: int) -> None:
        """Put the record in place; without lease and losses there is none."""
        path = self._folder.lease(task_id)
        if lease is None and not losses:
            files.remove(path)
            return
        held = {} if lease is None else lease_to_json(lease)
        held["losses"] = losses
        self._put(path, self._folder.lease_draft(task_id), _encode(held).encode())

    def _put(self, path: str, draft: str, data: bytes) -> None:
        """Put a record in place by way of a draft that the next writer, or whoever settles, finds should we die."""
        try:
            files.create(draft, data)
        except FileExistsError:
            files.remove(draft)  # a dead writer's
            files.create(draft, data)
        try:
            os.rename(draft, path)
        except OSError as error:
            files.remove(draft)
            raise files.storage_error(path, error) from error

    def discard_draft(self, task_id: str) -> None:
        """Remove a record that its writer died over before it was in place."""
        files.remove(self._folder.lease_draft(task_id))

    def current(self, task: Task) -> Lease | None:
        """The lease under which the task is owned now, dead or alive."""
        if task.owner is None or task.is_done:
            return None
        lease, _ = self.read(task.id)
        return lease if lease is not None and lease.owner == task.owner else None

    def is_dead(self, lease: Lease) -> bool:
        """Whether the holder is gone for certain; what cannot be told counts as living."""
        if lease.kind == "time":
            return lease.expires is not None and lease.expires < now_ms()
        return lease.kind == "process" and self._alive(lease) is False

    def everyone(self) -> tuple[Mapping[str, Lease], bool]:
        """Every lease record by task id, and whether none changed since last asked."""
        with self._one_at_a_time:
            return self._everyone()

    def _everyone(self) -> tuple[Mapping[str, Lease], bool]:
        names = self._feed.changed() if self._feed is not None else None
        if self._feed is None and self._looked:
            self._feed = follow(self._folder.leases)
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
        """The tasks whose holders are gone, by the records `everyone` last saw; each holder is asked about once."""
        with self._one_at_a_time:
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
        """Follow the records no longer."""
        if self._feed is not None:
            self._feed.close()
        self._feed, self._looked = None, False


def _looks(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_ino, found.st_mtime_ns, found.st_size


def _parsed(data: bytes) -> tuple[Lease | None, int]:
    """A record as written above; one that cannot be read holds nothing."""
    try:
        raw = _decode(data.decode())[0]
    except (ValueError, RecursionError):
        return None, 0
    if not isinstance(raw, dict):
        return None, 0
    record = cast("dict[str, object]", raw)
    losses = record.get("losses")
    return lease_from(record), losses if isinstance(losses, int) else 0
