"""What a list's log tells: changes in order, the life of one task, and how a removed task last looked."""

from __future__ import annotations

from taskyard.names import is_id
from taskyard.shapes import as_object
from taskyard.tasklist.ledger import Row
from taskyard.tasklist.model import Act, Change, Task
from taskyard.tasklist.task_file import DeletedMark, Unreadable, task_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Protocol

    from taskyard.disk.journal import Journal

    class Rows(Protocol):
        """A ledger, as far as the past needs one."""

        def row(self, task_id: str) -> Row: ...


def changes(journal: Journal, ledger: Rows, since: int, settle: Callable[[str], bool]) -> Iterator[Change]:
    """Every change from an id on, oldest first; those whose writer died before they took effect say so.

    A change whose writer has not finished is settled first, by `settle(task id)`. Where that cannot be
    (its writer lives), they end before it: whether it counts is not decided yet.
    """
    end = journal.end()
    while True:
        entries = list(journal.since(since))
        aborted = {entry.get("of") for _, entry in entries if entry.get("cause") == "aborted"}
        unfinished = None
        for entry_id, entry in entries:
            if entry.get("cause") == "aborted" or entry_id >= end:
                continue
            change = change_from(entry_id, entry, aborted=entry_id in aborted)
            if not change.aborted and (unfinished := _unfinished(ledger, change)) is not None:
                break
            yield change
            since = entry_id + 1
        if unfinished is None or not settle(unfinished):
            return


def _unfinished(ledger: Rows, change: Change) -> str | None:
    """A task of `change` that its writer has not got to."""
    return next((task_id for task_id in change.tasks if _is_open(ledger.row(task_id), change.id)), None)


def _is_open(row: Row, entry_id: int) -> bool:
    return row.intent is not None and row.intent <= entry_id and (row.entry is None or row.entry < entry_id)


class _Broken(Exception):
    """A spoiled row or entry: what came before it is not found from there."""


def life(journal: Journal, ledger: Rows, task_id: str) -> list[Change]:
    """Every change of one task, oldest first, by following its entries back."""
    try:
        return [*_backwards(journal, ledger, task_id)][::-1]
    except _Broken:
        return _life_by_scan(journal, ledger, task_id)


def _backwards(journal: Journal, ledger: Rows, task_id: str) -> Iterator[Change]:
    """The changes of one task, newest first."""
    position = ledger.row(task_id).entry
    while position is not None:
        entry = journal.read(position)
        prev = as_object(entry.get("prev")) if entry is not None else None
        if entry is None or prev is None or task_id not in prev:
            raise _Broken
        yield change_from(position, entry)
        before = prev[task_id]
        position = before if isinstance(before, int) and before < position else None


def newest_first(journal: Journal, ledger: Rows, task_id: str) -> Iterator[Change]:
    """The changes of one task, newest first, read only as far as the caller goes.

    After a spoiled entry they begin anew with the newest, found by reading the whole log.
    """
    try:
        yield from _backwards(journal, ledger, task_id)
    except _Broken:
        yield from reversed(_life_by_scan(journal, ledger, task_id))


def _life_by_scan(journal: Journal, ledger: Rows, task_id: str) -> list[Change]:
    return [
        change
        for change in changes(journal, ledger, 0, lambda _: False)
        if task_id in change.tasks and not change.aborted
    ]


def last_seen(journal: Journal, ledger: Rows, task_id: str) -> tuple[Task, Change] | None:
    """How a task looked when it was last there, and the change that took it away; no more is read than that."""
    try:
        return _last_in(_backwards(journal, ledger, task_id), task_id)
    except _Broken:
        return _last_in(reversed(_life_by_scan(journal, ledger, task_id)), task_id)


def _last_in(newest_first: Iterable[Change], task_id: str) -> tuple[Task, Change] | None:
    later: Change | None = None
    for change in newest_first:
        task = change.tasks.get(task_id)
        if task is not None:
            return task, later or change
        later = change
    return None


def rows_from(journal: Journal) -> dict[str, Row]:
    """Where the log last tells of each task: a ledger that was lost, as far as the log knows it."""
    entries = [*journal.since()]
    aborted = {entry.get("of") for _, entry in entries if entry.get("cause") == "aborted"}
    return {
        task_id: Row(entry_id)
        for entry_id, entry in entries
        if entry_id not in aborted
        for task_id in filter(is_id, as_object(entry.get("tasks")) or {})
    }


def change_from(entry_id: int, entry: dict[str, object], *, aborted: bool = False) -> Change:
    """A log entry as a record; whatever cannot be read in it is left out."""
    tasks = as_object(entry.get("tasks")) or {}
    states = {task_id: _task(task_id, raw) for task_id, raw in tasks.items()}
    at, by = entry.get("at"), entry.get("by")
    act = Act(
        by if isinstance(by, str) else None,
        str(entry.get("cause", "unknown")),
        str(entry.get("via", "")),
        _note(entry),
    )
    return Change(entry_id, at if isinstance(at, int) else 0, act, states, aborted)


def _note(entry: dict[str, object]) -> str:
    if damaged := as_object(entry.get("damaged")):
        return "; ".join(f"{task_id}.json: {why}" for task_id, why in damaged.items())
    return str(entry.get("note", ""))


def _task(task_id: str, raw: object) -> Task | None:
    found = as_object(raw)
    if found is None:
        return None
    try:
        return task_from(task_id, found)
    except (Unreadable, DeletedMark):
        return None
