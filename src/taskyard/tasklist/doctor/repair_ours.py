"""Repairs of what Taskyard keeps beside the tasks: unfinished changes, leases, the ledger."""

from __future__ import annotations

import os

from taskyard.disk import files as disk
from taskyard.shapes import as_object
from taskyard.tasklist.doctor.check_ours import misfit, wrong_rows
from taskyard.tasklist.doctor.finding import Finding, Repair
from taskyard.tasklist.doctor.look import log_now
from taskyard.tasklist.file_store import FileStore
from taskyard.tasklist.ledger import Row, row_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.tasklist.doctor.keep import Keep
    from taskyard.tasklist.list_files import ListFiles

#: A ledger beyond this is mostly holes; all of it follows from the log, so no copy is missed.
_LARGEST_LEDGER = disk.LARGEST_RECORD


class OwnRepairs:
    """Repairs in `.taskyard`."""

    def __init__(self, files: ListFiles, keep: Keep) -> None:
        self._files = files
        self._keep = keep

    def unsettled(self, finding: Finding) -> Repair | None:
        """Complete or undo what a dead writer began; opening the list for writing does so already."""
        self._files.settler.settle(str(finding.task_id))
        return Repair(finding.name, finding.file, f"settled the last change of #{finding.task_id}")

    def orphan_lease(self, finding: Finding) -> Repair | None:
        """Remove a lease record that fits no task."""
        task_id, leases = str(finding.task_id), self._files.leases
        with self._files.hold([task_id]):
            if not os.path.lexists(finding.file) or misfit(self._files.tasks.look(task_id), task_id, leases) is None:
                return None
            return Repair(finding.name, finding.file, "removed the record", self._keep.move(finding.file))

    def dead_holder(self, finding: Finding) -> Repair | None:
        """Put a task of a dead holder back into the pool: what any look at it does."""
        FileStore(self._files).get(str(finding.task_id))
        return Repair(finding.name, finding.file, f"put #{finding.task_id} back into the pool")

    def ledger(self, finding: Finding) -> Repair | None:
        """Make rows that disagree with the log again."""
        writer, reader = self._files.writer, self._files.tasks.reader
        with self._files.hold(everything=True):
            rows = dict(writer.ledger.rows())
            log = log_now(self._files.folder)
            wrong = wrong_rows(rows, log)
            if not wrong:
                return None
            kept = None
            if os.lstat(finding.file).st_size <= _LARGEST_LEDGER:
                kept = self._keep.copy(finding.file)
            for task_id in wrong:
                entry_id = log.last.get(task_id)
                if entry_id is None:
                    writer.ledger.put(task_id, Row())
                    continue
                entry = writer.journal.read(entry_id) or {}
                state = (as_object(entry.get("tasks")) or {}).get(task_id)
                seen = reader.read(task_id)
                if seen is not None and state is not None and seen.raw == state:
                    writer.ledger.put(task_id, row_for(entry_id, seen.data))
                elif state is None and task_id not in (as_object(entry.get("damaged")) or {}):
                    writer.ledger.put(task_id, Row(entry_id))
                else:  # present, and unlike anything: the next look logs what it finds as another program's
                    writer.ledger.put(task_id, Row(entry_id, size=0))
        return Repair(finding.name, finding.file, f"made {len(wrong)} rows again", kept)
