"""
A list's past, for those who look: its log and its ledger.

Where we may write they are the writer's, and what a dead writer left is settled on the way. Where we may
not, they are opened to be read and nothing else: a read-only disk still tells all it knows.
"""

from __future__ import annotations

import os

from taskyard.disk.files import check_folder, storage_error
from taskyard.disk.journal import Journal
from taskyard.errors import StorageError
from taskyard.tasklist import history
from taskyard.tasklist.ledger import Ledger, Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from taskyard.tasklist.list_files import ListFiles
    from taskyard.tasklist.list_folder import ListFolder
    from taskyard.tasklist.model import Change


def changes(files: ListFiles, since: int, *, task_id: str | None) -> Iterator[Change]:
    """The event log from an id on, or one task's part of it, oldest first.

    Raises:
        StorageError: the log is not even ours to read.
    """
    writer = files.writer_if_allowed()
    if writer is not None:
        return _told(writer.journal, writer.ledger, since, task_id, files.settler.settle_if_free)
    return _read_only(files.folder, since, task_id)


def position(files: ListFiles) -> int:
    """The id the next change will have, or a smaller one; 0 where nobody may tell us."""
    writer = files.writer_if_allowed()
    try:
        return writer.journal.end() if writer is not None else _journal(files.folder).end()
    except StorageError:
        return 0


def is_restorable(files: ListFiles, task_id: str) -> bool:
    """Whether the log remembers how a task looked."""
    writer = files.writer_if_allowed()
    if writer is not None:
        return history.last_seen(writer.journal, writer.ledger, task_id) is not None
    try:
        journal = _journal(files.folder)
        ledger = _ledger(files.folder, journal)
        try:
            return history.last_seen(journal, ledger, task_id) is not None
        finally:
            ledger.close()
    except StorageError:
        return False


def row(folder: ListFolder, task_id: str) -> Row:
    """What a ledger that we may only read knows of one task."""
    try:
        ledger = Ledger(folder.ledger, writable=False)
    except StorageError:
        return Row()
    try:
        return ledger.row(task_id)
    finally:
        ledger.close()


class _Learned:
    """What the log alone says, where the ledger is gone and it is not for us to make it again."""

    def __init__(self, rows: Mapping[str, Row]) -> None:
        self._rows = rows

    def row(self, task_id: str) -> Row:
        return self._rows.get(task_id, Row())

    def close(self) -> None:
        pass


def _read_only(folder: ListFolder, since: int, task_id: str | None) -> Iterator[Change]:
    journal = _journal(folder)
    ledger = _ledger(folder, journal)
    try:
        # Whoever did not finish a change, we may not do it for them.
        yield from _told(journal, ledger, since, task_id, lambda _: False)
    finally:
        ledger.close()


def _told(
    journal: Journal, ledger: history.Rows, since: int, task_id: str | None, settle: Callable[[str], bool]
) -> Iterator[Change]:
    if task_id is not None:
        return (change for change in history.life(journal, ledger, task_id) if change.id >= since)
    return history.changes(journal, ledger, since, settle)


def _journal(folder: ListFolder) -> Journal:
    """The log, unless it lies behind a planted link."""
    for path in (folder.ours, folder.log):
        try:
            check_folder(path, os.lstat(path))
        except FileNotFoundError:
            break  # nobody wrote here yet: an empty log
        except OSError as error:
            raise storage_error(path, error) from error
    return Journal(folder.log)


def _ledger(folder: ListFolder, journal: Journal) -> Ledger | _Learned:
    try:
        return Ledger(folder.ledger, writable=False)
    except StorageError:
        return _Learned(history.rows_from(journal))
