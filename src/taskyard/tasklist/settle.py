"""
Bringing the log and the files together again.

Two things leave them apart. A writer died, or another program got into its way: its intent is
still in the ledger, and the log says what it wanted. Or another program changed the files: then
a row and its file differ, and the log gets an entry with cause `external`, so that everything
any Taskyard process ever saw can be shown and brought back.
"""

from __future__ import annotations

import json
from contextlib import suppress

from taskyard.errors import Busy, StorageError
from taskyard.shapes import as_object
from taskyard.tasklist.history import rows_from
from taskyard.tasklist.ledger import Row, row_for
from taskyard.tasklist.model import Act
from taskyard.tasklist.own_fields import undone, with_recorded
from taskyard.tasklist.starting_over import Interfered, StartOver
from taskyard.tasklist.task_file import encoded
from taskyard.tasklist.writer import Write
from taskyard.typed import NamedTuple

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
        def __call__(
            self,
            ids: Iterable[str] = (),
            *,
            whole: bool = False,
            everything: bool = False,
            timeout: float | None = None,
        ) -> Hold: ...


#: More changed files than this at once are taken in together, in entries of this many.
_MANY = 100

#: How long somebody who only looks waits for a writer to finish: it takes about a millisecond.
_PATIENCE = 0.5

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

    def note_external(self, task_id: str, seen: Seen | None, hold: Hold, row: Row | None = None) -> Seen | None:
        """Log another program's change to a task under `hold`, if there was one; the file as it is then.

        Fields of ours that the change undid are put back in the same step. `row` is what the ledger knows of the task.

        Raises:
            StartOver: another program wrote meanwhile.
        """
        row = row or self._writer.ledger.row(task_id)
        if is_as_known(row, seen):
            return seen
        if seen is not None and (kept := self._kept(seen, row)) is not None:
            return self._put_back(seen, kept, hold)
        if seen is not None and seen.damage is not None:
            # There is no state to log, but what came before must still be found.
            entry = self._writer.log(_EXTERNAL, {}, about=(task_id,), damaged={task_id: seen.damage})
        else:
            state = encoded(seen.task, seen.raw) if seen is not None and seen.task is not None else None
            entry = self._writer.log(_EXTERNAL, {task_id: state})
            self._tidy_lease(task_id, seen.raw if seen is not None else None)
        self._writer.ledger.put(task_id, _row(entry, seen))
        return seen

    def _kept(self, seen: Seen, row: Row) -> Task | None:
        """The task of a changed file with our fields as recorded; None if the change undid none of them."""
        if seen.task is None or row.entry is None:
            return None
        kept = with_recorded(self._writer.journal, self._writer.ledger, seen.task)
        return kept if kept is not seen.task else None

    def _put_back(self, seen: Seen, kept: Task, hold: Hold) -> Seen | None:
        """Log another program's change and write the file again with the fields that it undid."""
        note = f"it undid, and Taskyard put back: {undone(seen.task or kept, kept)}"
        self._writer.commit(hold, _EXTERNAL._replace(note=note), (Write(kept.id, seen, kept),))
        self._tidy_lease(kept.id, seen.raw)
        return self._reader.read(kept.id)

    def note_consolidated(self, task: Task) -> None:
        """Log a task that only the older file has, as it is there."""
        if self._writer.ledger.row(task.id).entry is None:
            entry = self._writer.log(_EXTERNAL, {task.id: encoded(task)})
            self._writer.ledger.put(task.id, Row(entry))

    def look_around(self, ids: Sequence[str]) -> None:
        """Take a look at tasks whose files seem to have changed, under their locks.

        What cannot be written, or is in use by somebody for long, is left as it is until the next look. Only the
        first of those is waited for.
        """
        if len(ids) > _MANY:
            with suppress(StorageError, Busy):
                self._look_at_each(self._adopt(ids))
            return
        self._look_at_each(ids)

    def _look_at_each(self, ids: Sequence[str]) -> None:
        timeout: float | None = None
        for task_id in ids:
            try:
                if self._writer.ledger.row(task_id).intent is not None:
                    self.settle(task_id, timeout=timeout)
                with self._hold([task_id], timeout=timeout) as hold:
                    if self._writer.ledger.row(task_id).intent is None:
                        self.note_external(task_id, self._reader.read(task_id), hold)
            except (StorageError, Busy):
                timeout = 0.0
            except StartOver:
                self.settle_if_free(task_id)  # another program writes it right now: the next look sees the result

    def _adopt(self, ids: Sequence[str]) -> list[str]:
        """Many at once, as when a list of another program's is first met: a few large entries.

        The tasks whose files must be written again are left for a look at each, and answered.
        """
        left: list[str] = []
        with self._hold(everything=True) as hold:
            for start in range(0, len(ids), _MANY):
                found: dict[str, Seen | None] = {}
                for task_id in ids[start : start + _MANY]:
                    row, seen = self._writer.ledger.row(task_id), self._reader.read(task_id)
                    if row.intent is not None or is_as_known(row, seen):
                        continue
                    if seen is not None and seen.damage is not None:
                        self.note_external(task_id, seen, hold)
                    elif seen is not None and self._kept(seen, row) is not None:
                        left.append(task_id)
                    else:
                        found[task_id] = seen
                states = {
                    task_id: encoded(seen.task, seen.raw) if seen is not None and seen.task is not None else None
                    for task_id, seen in found.items()
                }
                entry = self._writer.log(_EXTERNAL, states) if states else 0
                for task_id, seen in found.items():
                    self._tidy_lease(task_id, seen.raw if seen is not None else None)
                    self._writer.ledger.put(task_id, _row(entry, seen))
        return left

    # -- what a dead writer left -------------------------------------------------------------

    def relearn(self) -> None:
        """Fill a ledger that was lost from the log, so that every task it tells of can be brought back."""
        with self._hold(everything=True):
            if self._writer.ledger.highest():
                return  # somebody was quicker
            for task_id, row in rows_from(self._writer.journal).items():
                self._writer.ledger.put(task_id, row)

    def unsettled(self) -> list[str]:
        """The tasks some writer began to change and did not finish."""
        return self._writer.ledger.intents()

    def settle(self, task_id: str, *, timeout: float | None = None) -> None:
        """Complete or undo the change of `task_id` that its writer did not finish.

        Raises:
            Busy: its writer lives, and did not finish within `timeout` seconds (the setting's if not given).
        """
        row = self._writer.ledger.row(task_id)
        if row.intent is None:
            return
        wanted = self._wanted(task_id, row)
        ids = [task_id] if wanted is None else list(wanted.tasks)
        with self._hold(ids, whole=True, timeout=timeout):
            if self._writer.ledger.row(task_id).intent != row.intent:
                return  # somebody was quicker, or its writer lives and has finished
            wanted = self._wanted(task_id, row)
            if wanted is None:
                self._forget(task_id, row)
            elif list(wanted.tasks) == ids:
                self._close(wanted)

    def tidy_lease(self, task_id: str, *, timeout: float | None = None) -> None:
        """Drop a lease record that fits no owner any more, since another program changed the task."""
        with self._hold([task_id], timeout=timeout):
            seen = self._reader.read(task_id)
            if seen is None or seen.damage is None:
                self._tidy_lease(task_id, seen.raw if seen is not None else None)

    def settle_if_free(self, task_id: str) -> bool:
        """Settle unless a living writer is at it or we may not write; whether it is settled now."""
        try:
            self.settle(task_id, timeout=_PATIENCE)
        except (StorageError, Busy):
            return False
        return self._writer.ledger.row(task_id).intent is None

    def _wanted(self, task_id: str, row: Row) -> _Wanted | None:
        """What the log says the unfinished writer wanted; None if it never got that far.

        Earlier attempts at the same change may stand there, closed as aborted: they count only if there
        is no other, for then whoever closed the last one died over it.
        """
        assert row.intent is not None
        found: list[_Wanted] = []
        aborted: set[object] = set()
        for entry_id, entry in self._writer.journal.since(row.intent):
            tasks, prev = as_object(entry.get("tasks")) or {}, as_object(entry.get("prev")) or {}
            if entry.get("cause") == _ABORTED.cause:
                aborted.add(entry.get("of"))
            elif task_id in tasks and entry.get("of") is None and prev.get(task_id) == row.entry:
                states = {key: as_object(state) for key, state in tasks.items()}
                found.append(_Wanted(entry_id, states, lost=entry.get("cause") == "lease_lost"))
        still = [wanted for wanted in found if wanted.entry not in aborted]
        return still[-1] if still else found[-1]._replace(aborted=True) if found else None

    def _close(self, wanted: _Wanted) -> None:
        """With the first task in place, put the others in place; otherwise none of them is."""
        rows = {task_id: self._writer.ledger.row(task_id) for task_id in wanted.tasks}
        unfinished = {task_id: row for task_id, row in rows.items() if self._is_unfinished(task_id, row, wanted)}
        first = next(iter(wanted.tasks))
        # The first task may have been changed again since: that its part is closed then says that it was done.
        if wanted.aborted or (first in unfinished and not self._is_done(first, wanted)):
            if not wanted.aborted:
                self._writer.log(_ABORTED, {}, of=wanted.entry)
            for task_id, row in unfinished.items():
                self._forget(task_id, row)
            return
        missing = [task_id for task_id, row in unfinished.items() if not self._finish(task_id, row, wanted)]
        self._writer.log(_REPAIRED, {}, of=wanted.entry, left=missing)

    def _is_unfinished(self, task_id: str, row: Row, wanted: _Wanted) -> bool:
        """Whether this task's part in the change is still to be closed; another's intent is another's."""
        found = None if row.intent is None else self._wanted(task_id, row)
        return found is not None and found.entry == wanted.entry

    def _is_done(self, task_id: str, wanted: _Wanted) -> bool:
        seen, state = self._reader.read(task_id), wanted.tasks[task_id]
        return state is None if seen is None else seen.raw == state

    def _finish(self, task_id: str, row: Row, wanted: _Wanted) -> bool:
        """Bring one task to where the log wants it, unless another program changed it since."""
        seen, state = self._reader.read(task_id), wanted.tasks[task_id]
        if self._is_done(task_id, wanted):
            self._tidy_lease(task_id, state, lost=wanted.lost)
            self._writer.ledger.put(task_id, _row(wanted.entry, seen))
            return True
        if not is_as_known(row, seen):
            self._forget(task_id, row)
            return False
        self._tidy_lease(task_id, state, lost=wanted.lost)
        draft = None if state is None else _bytes(state)
        if draft is not None:
            self._writer.draft(task_id, draft)
        try:
            self._writer.apply(Write(task_id, seen, None), wanted.entry, draft)
        except Interfered:
            self._forget(task_id, row)
            return False
        return True

    def _forget(self, task_id: str, row: Row) -> None:
        """Close an intent that came to nothing."""
        seen = self._reader.read(task_id)
        self._tidy_lease(task_id, seen.raw if seen is not None else None)
        self._writer.ledger.put(task_id, row._replace(intent=None))

    def _tidy_lease(self, task_id: str, state: Mapping[str, object] | None, *, lost: bool = False) -> None:
        """Drop a lease record that does not fit the task, or was never in place: its writer died before or after it."""
        self._leases.discard_draft(task_id)
        lease, losses = self._leases.read(task_id)
        if state is None:
            self._leases.write(task_id, None, 0)
        elif lease is not None and (state.get("owner") != lease.owner or state.get("status") == "completed"):
            self._leases.write(task_id, None, losses + lost)


class _Wanted(NamedTuple):
    """An unfinished change, as the log has it."""

    entry: int
    tasks: dict[str, dict[str, object] | None]
    lost: bool  #: it takes a task from a dead holder, which is counted
    aborted: bool = False  #: somebody began to undo it


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
