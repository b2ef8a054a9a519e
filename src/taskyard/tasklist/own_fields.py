"""
Taskyard's own fields of a task: the list's log is the authority, `metadata.taskyard` in the task file a mirror.

Claude Code merges an update into metadata that it read before it took the task's lock. Such a write brings old
metadata back, so a value in the task file alone proves nothing. Every change of ours is in the log with the whole
task, and the ledger says whether a file still is what we last wrote or saw. For a file that is not, the fields are
taken from the log:

    the log has fields that Taskyard wrote      they count; a different mirror was undone, and is put back
    the log ends with the task's removal,       the mirror counts: another program made the task, or its fields
    or Taskyard never wrote fields

Readers show the fields of the log at once. Whoever may write puts the mirror back (`settle.py`).
"""

from __future__ import annotations

from taskyard.errors import StorageError
from taskyard.tasklist.ledger import Ledger, Row, look

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from taskyard.disk.journal import Journal
    from taskyard.tasklist.history import Rows
    from taskyard.tasklist.list_folder import ListFolder
    from taskyard.tasklist.model import Task
    from taskyard.tasklist.reader import Seen, TaskReader

#: From this many tasks on, the whole ledger is read at once.
_MANY = 32

#: How often a file is read again because a Taskyard process is just writing it.
_TRIES = 3


class OwnFields:
    """The fields of one list's tasks, for readers: opens what it needs for a moment, and writes nothing."""

    def __init__(self, folder: ListFolder) -> None:
        self._folder = folder

    def suspects(self, found: Mapping[str, tuple[int, int]]) -> list[str]:
        """The tasks whose file is not as last known, of those given with size and checksum of their file."""
        rows = self._rows(found)
        return [
            task_id
            for task_id, content in found.items()
            if (row := rows.get(task_id)) is not None and row.entry is not None and not row.holds(*content)
        ]

    def _rows(self, ids: Iterable[str]) -> Mapping[str, Row]:
        wanted = list(ids)
        if len(wanted) >= _MANY:
            return look(self._folder.ledger) or {}
        try:
            ledger = Ledger(self._folder.ledger, writable=False)
        except StorageError:
            return {}
        try:
            return {task_id: ledger.row(task_id) for task_id in wanted}
        finally:
            ledger.close()

    def corrected(self, task_id: str, reader: TaskReader) -> tuple[Seen, Task] | None:
        """The file as it is now and the task with its recorded fields; None where the file itself counts.

        A file that one of ours is just writing counts as it is, and is not kept in the reader's memory.
        """
        try:
            ledger = Ledger(self._folder.ledger, writable=False)
        except StorageError:
            return None
        try:
            for _ in range(_TRIES):
                row = ledger.row(task_id)
                seen = reader.read(task_id)
                if seen is None or seen.task is None or row.entry is None or row.holds(len(seen.data), seen.crc):
                    return None
                if row.intent is not None:
                    break
                if ledger.row(task_id) == row:  # nobody of ours wrote between the two reads
                    from taskyard.disk.journal import Journal

                    task = with_recorded(Journal(self._folder.log), ledger, seen.task)
                    return None if task is seen.task else (seen, task)
            reader.forget(task_id)
            return None
        except StorageError:
            return None  # a log that cannot be read is no authority
        finally:
            ledger.close()


def with_recorded(journal: Journal, ledger: Rows, found: Task) -> Task:
    """`found`, a task as its file has it, with Taskyard's fields as recorded; `found` itself if they are the same.

    Raises:
        StorageError: the log cannot be read.
    """
    from taskyard.tasklist import history

    recorded: Mapping[str, object] | None = None
    for change in history.newest_first(journal, ledger, found.id):
        if found.id not in change.tasks:
            continue  # it says that the file was damaged, not how the task is
        state = change.tasks[found.id]
        if state is None:
            return found  # what was recorded ended with the task
        if recorded is None:
            recorded = state.extra
            if recorded == found.extra and isinstance(found.metadata.get("taskyard", {}), dict):
                return found
        if state.extra and change.act.cause != "external":
            break  # Taskyard wrote fields: they are its own to change
    else:
        return found
    metadata = {name: value for name, value in found.metadata.items() if name != "taskyard" or recorded}
    if recorded:
        metadata["taskyard"] = recorded
    return found._replace(metadata=metadata)


def undone(found: Task, kept: Task) -> str:
    """Which fields differ between a file's task and the one with recorded fields, for the log."""
    names = {*found.extra, *kept.extra}
    return ", ".join(sorted(name for name in names if found.extra.get(name) != kept.extra.get(name))) or "taskyard"
