"""
Bringing the log and the files together again.

Two things leave them apart. A writer died, or another program got into its way: its intent is
still in the ledger, and the log says what it wanted. Or another program changed the files: then
a row and its file differ, and the log gets an entry with cause `external`, so that everything
any Taskyard process ever saw can be shown and brought back.
"""

from __future__ import annotations

import json

from taskyard.errors import Busy, StorageError
from taskyard.names import is_id
from taskyard.shapes import as_object
from taskyard.tasklist.ledger import Row, row_for
from taskyard.tasklist.model import Act
from taskyard.tasklist.task_file import encoded
from taskyard.tasklist.writer import Interfered, Write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Protocol

    from taskyard.tasklist.hold import Hold
    from taskyard.tasklist.leases import LeaseFiles
    from taskyard.tasklist.model import Task
    from taskyard.tasklist.reader import Seen, TaskReader
    from taskyard.tasklist.writer import Writer

    class Holder(Protocol):
        def __call__(self, ids: Iterable[str] = (), *, whole: bool = False, everything: bool = False) -> Hold: ...


#: More changed files than this at once are taken in together, in entries of this many.
_MANY = 100

_EXTERNAL = Act(by=None, cause="external", via="watch")
_REPAIRED = Act(by=None, cause="repaired", via="watch")
_ABORTED = Act(by=None, cause="aborted", via="watch")


class Settler:
    """Finds and closes what others left open in one list."""

    def __init__(self, writer: Writer, reader: TaskReader, leases: LeaseFiles, hold: Holder) -> None:
        self._writer = writer
        self._reader = reader
        self._leases = leases
        self._hold = hold

    # -- what another program did ------------------------------------------------------------

    def note_external(self, task_id: str, seen: Seen | None) -> None:
        """Log another program's change to a task we hold, if there was one."""
        row = self._writer.ledger.row(task_id)
        if is_as_known(row, seen):
            return
        if seen is not None and seen.damage is not None:
            # There is no state to log, but what came before must still be found.
            entry = self._writer.log(_EXTERNAL, {}, about=(task_id,), damaged={task_id: seen.damage})
        else:
            state = encoded(seen.task, seen.raw) if seen is not None and seen.task is not None else None
            entry = self._writer.log(_EXTERNAL, {task_id: state})
        self._writer.ledger.put(task_id, _row(entry, seen))

    def note_consolidated(self, task: Task) -> None:
        """Log a task that only the older file has, as it is there."""
        if self._writer.ledger.row(task.id).entry is None:
            entry = self._writer.log(_EXTERNAL, {task.id: encoded(task)})
            self._writer.ledger.put(task.id, Row(entry))

    def look_around(self, ids: Sequence[str]) -> None:
        """Take a look at tasks whose files seem to have changed, under their locks.

        A list that cannot be written, or is in use by somebody for long, is left as it is.
        """
        try:
            if len(ids) > _MANY:
                self._adopt(ids)
                return
            for task_id in ids:
                if self._writer.ledger.row(task_id).intent is not None:
                    self.settle(task_id)
                with self._hold([task_id]):
                    if self._writer.ledger.row(task_id).intent is None:
                        self.note_external(task_id, self._reader.read(task_id))
        except (StorageError, Busy):
            return

    def _adopt(self, ids: Sequence[str]) -> None:
        """Many at once, as when a list of another program's is first met: a few large entries."""
        with self._hold(everything=True):
            for start in range(0, len(ids), _MANY):
                found: dict[str, Seen | None] = {}
                for task_id in ids[start : start + _MANY]:
                    row, seen = self._writer.ledger.row(task_id), self._reader.read(task_id)
                    if row.intent is not None or is_as_known(row, seen):
                        continue
                    if seen is not None and seen.damage is not None:
                        self.note_external(task_id, seen)
                    else:
                        found[task_id] = seen
                states = {
                    task_id: encoded(seen.task, seen.raw) if seen is not None and seen.task is not None else None
                    for task_id, seen in found.items()
                }
                entry = self._writer.log(_EXTERNAL, states) if states else 0
                for task_id, seen in found.items():
                    self._writer.ledger.put(task_id, _row(entry, seen))

    # -- what a dead writer left -------------------------------------------------------------

    def relearn(self) -> None:
        """Fill a ledger that was lost from the log, so that every task it tells of can be brought back."""
        with self._hold(everything=True):
            if self._writer.ledger.highest():
                return  # somebody was quicker
            entries = [*self._writer.journal.since()]
            aborted = {entry.get("of") for _, entry in entries if entry.get("cause") == "aborted"}
            for entry_id, entry in entries:
                if entry_id not in aborted:
                    for task_id in filter(is_id, as_object(entry.get("tasks")) or {}):
                        self._writer.ledger.put(task_id, Row(entry_id))

    def unsettled(self) -> list[str]:
        """The tasks some writer began to change and did not finish."""
        return [task_id for task_id, row in self._writer.ledger.rows() if row.intent is not None]

    def settle(self, task_id: str) -> None:
        """Complete or undo the change of `task_id` that its writer did not finish."""
        row = self._writer.ledger.row(task_id)
        if row.intent is None:
            return
        found = self._entry(task_id, row)
        ids = [task_id] if found is None else list(found[1])
        with self._hold(ids, whole=True):
            if self._writer.ledger.row(task_id).intent != row.intent:
                return  # somebody was quicker, or its writer lives and has finished
            found = self._entry(task_id, row)
            if found is None:
                self._forget(ids)
            elif list(found[1]) == ids:
                self._close(*found)

    def tidy_lease(self, task_id: str) -> None:
        """Drop a lease record that fits no owner any more, since another program changed the task."""
        with self._hold([task_id]):
            seen = self._reader.read(task_id)
            if seen is None or seen.damage is None:
                self._tidy_leases([task_id])

    def _entry(self, task_id: str, row: Row) -> tuple[int, dict[str, dict[str, object] | None]] | None:
        """What the log says the unfinished writer wanted; None if it never got that far."""
        assert row.intent is not None
        for entry_id, entry in self._writer.journal.since(row.intent):
            tasks, prev = as_object(entry.get("tasks")) or {}, as_object(entry.get("prev")) or {}
            if task_id in tasks and prev.get(task_id) == row.entry:
                return entry_id, {key: as_object(state) for key, state in tasks.items()}
        return None

    def _close(self, entry: int, tasks: Mapping[str, dict[str, object] | None]) -> None:
        """With the first task in place, put the others in place; otherwise none of them is."""
        first = next(iter(tasks))
        if not self._is_done(first, tasks[first]):
            self._writer.log(_ABORTED, {}, of=entry)
            self._forget(tasks)
            return
        missing = [task_id for task_id, wanted in tasks.items() if not self._finish(task_id, wanted, entry)]
        self._writer.log(_REPAIRED, {}, of=entry, left=missing)
        self._tidy_leases(tasks)

    def _is_done(self, task_id: str, wanted: dict[str, object] | None) -> bool:
        seen = self._reader.read(task_id)
        return wanted is None if seen is None else seen.raw == wanted

    def _finish(self, task_id: str, wanted: dict[str, object] | None, entry: int) -> bool:
        """Bring one task to where the log wants it, unless another program changed it since."""
        seen = self._reader.read(task_id)
        row = self._writer.ledger.row(task_id)
        if row.intent is None:
            return True
        if self._is_done(task_id, wanted):
            self._writer.ledger.put(task_id, _row(entry, seen))
            return True
        self._writer.ledger.put(task_id, row._replace(intent=None))
        if not is_as_known(row, seen):
            return False
        draft = None if wanted is None else _bytes(wanted)
        if draft is not None:
            self._writer.draft(task_id, draft)
        try:
            self._writer.apply(Write(task_id, seen, None), entry, draft)
        except Interfered:
            return False
        return True

    def _forget(self, ids: Iterable[str]) -> None:
        for task_id in ids:
            row = self._writer.ledger.row(task_id)
            self._writer.ledger.put(task_id, row._replace(intent=None))
        self._tidy_leases(ids)

    def _tidy_leases(self, ids: Iterable[str]) -> None:
        """Drop lease records that fit no owner: their writer died before or after the task."""
        for task_id in ids:
            lease, losses = self._leases.read(task_id)
            seen = self._reader.read(task_id)
            task = seen.task if seen is not None else None
            if lease is not None and (task is None or task.is_done or task.owner != lease.owner):
                self._leases.write(task_id, None, losses)


def is_as_known(row: Row, seen: Seen | None) -> bool:
    """Whether a file is what the ledger says it was."""
    if seen is None:
        return not row.is_present
    return row.size == len(seen.data) and row.crc == seen.crc


def _row(entry: int, seen: Seen | None) -> Row:
    return row_for(entry, seen.data) if seen is not None else Row(entry)


def _bytes(wanted: dict[str, object]) -> bytes:
    """A task from the log as its file's bytes: the same layout, key order as logged."""
    return json.dumps(wanted, indent=2, ensure_ascii=False).encode("utf-8", "backslashreplace")
