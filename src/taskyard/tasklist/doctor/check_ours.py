"""Checks of what Taskyard keeps beside the tasks: unfinished changes, leases, ledger, event log."""

from __future__ import annotations

import os

from taskyard.errors import Damaged, StorageError
from taskyard.names import is_id
from taskyard.tasklist.doctor.finding import Finding
from taskyard.tasklist.ledger import Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from taskyard.tasklist.doctor.look import Log, Look
    from taskyard.tasklist.leases import LeaseFiles
    from taskyard.tasklist.model import Task


def check_unsettled(look: Look) -> Iterator[Finding]:
    """Changes whose writers died in the middle."""
    for task_id, row in look.rows.items() if look.is_quiet else ():
        if row.intent is not None:
            why = f"The last change of #{task_id} was begun and not finished: its writer died."
            fix = "completes it if it had taken effect, else undoes it"
            yield Finding("unsettled", look.folder.ledger, why, fix, task_id)


def check_leases(look: Look, leases: LeaseFiles) -> Iterator[Finding]:
    """Lease records that fit no task, and holders that are gone."""
    if not look.is_quiet:
        return
    unsettled = {task_id for task_id, row in look.rows.items() if row.intent is not None}
    for task_id in lease_ids(look):
        if task_id in unsettled:
            continue  # its record may belong to the unfinished change
        file = look.folder.lease(task_id)
        found = look.seen.get(task_id)
        task = found.task if found is not None else look.older.get(task_id)
        if found is not None and found.damage is not None:
            continue  # whose it is, only the task can say
        if why := misfit(task, task_id, leases):
            yield Finding("orphan-lease", file, why, "removes the record", task_id)
        elif task is not None and (lease := leases.current(task)) is not None and leases.is_dead(lease):
            why = f"{lease.owner!r} held #{task_id} and is gone."
            yield Finding("dead-holder", file, why, "puts the task back into the pool", task_id)


def lease_ids(look: Look) -> list[str]:
    """The tasks that have a lease record."""
    try:
        names = os.listdir(look.folder.leases)
    except OSError:
        return []
    return sorted((name[:-5] for name in names if name.endswith(".json") and is_id(name[:-5])), key=int)


def misfit(task: Task | None, task_id: str, leases: LeaseFiles) -> str | None:
    """Why a lease record has no business being there; None if it has."""
    try:
        lease, losses = leases.read(task_id)
    except (Damaged, StorageError) as error:
        return f"It cannot be read: {error.why}."
    if task is None:
        return f"There is no task #{task_id}."
    if lease is None:
        return None if losses else "It says nothing that can be read."
    if task.is_done:
        return f"#{task_id} is completed; nobody holds it any more."
    if task.owner != lease.owner:
        return f"It is of {lease.owner!r}, but #{task_id} belongs to {task.owner or 'nobody'}."
    return None


def check_ledger(look: Look) -> Iterator[Finding]:
    """The ledger, against what follows from the event log."""
    wrong = wrong_rows(look.rows, look.log) if look.is_quiet else []
    if wrong:
        names = ", ".join(f"#{task_id}" for task_id in wrong[:5]) + (" …" if len(wrong) > 5 else "")
        why = f"It disagrees with the event log about {names}: history and restoring would miss something."
        yield Finding("ledger", look.folder.ledger, why, "makes those rows again from the log and the files")


def wrong_rows(rows: Mapping[str, Row], log: Log) -> list[str]:
    """The tasks whose row does not say what their last entry in the log says; those still unsettled apart."""
    wrong = [
        task_id
        for task_id in {*rows, *log.last}
        if (row := rows.get(task_id, Row())).intent is None
        and (row.entry != log.last.get(task_id) or (task_id in log.present and not row.is_present))
    ]
    return sorted(wrong, key=int)


def check_log(look: Look) -> Iterator[Finding]:
    """Lines of the event log that say nothing."""
    if look.log.torn and look.is_quiet:
        lines = "1 line" if look.log.torn == 1 else f"{look.log.torn} lines"
        why = f"{lines} cannot be read: a writer died while it wrote. They are passed over."
        yield Finding("torn-log", look.folder.log, why)
