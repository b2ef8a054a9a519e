"""Repairs of the doctor: locks, mark, names, permissions, leases, index, task files, dependencies.

Each repair checks again under the locks of what it writes, and does nothing where nothing is wrong any
more. Every rewrite of a task is an ordinary change: crash-safe, in the event log, cause `repaired`.
Originals are kept unchanged in `.taskyard/doctor/<when>/…`, where no other program looks.
"""

from __future__ import annotations

import errno
import os
import stat
import time

from taskyard.core import files as disk
from taskyard.core import files as storage_files
from taskyard.core.system import iso, now_ms
from taskyard.core.values import MAX_COUNTED_ID, as_object, is_id
from taskyard.errors import Damaged, StorageError
from taskyard.storage.locks import STALE_AFTER, free_stale_lock
from taskyard.tasks import history
from taskyard.tasks.doctor.checks import (
    hidden_reasons,
    mismatched_id,
    mismatched_rows,
    orphan_reason,
    salvage_task,
)
from taskyard.tasks.doctor.finding import Finding, Repair
from taskyard.tasks.doctor.snapshot import summarize_log
from taskyard.tasks.file_store import FileStore
from taskyard.tasks.graph import half_edges
from taskyard.tasks.list_folder import IndexRow, make_row
from taskyard.tasks.model import Act, Task
from taskyard.tasks.rules import merge_metadata
from taskyard.tasks.writer import TaskWrite

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from taskyard.tasks.file_store import ListFiles
    from taskyard.tasks.reader import TaskFileState


class FolderRepairs:
    """Repairs in a list's folder that touch no task."""

    def __init__(self, files: ListFiles, keep: Backup) -> None:
        self._files = files
        self._keep = keep

    def stale_lock(self, finding: Finding) -> Repair | None:
        """Release an abandoned lock, under the kernel lock that guards the same target.

        A lock dated in the future is observed for as long as a live holder may leave it untouched.
        """
        if not free_stale_lock(finding.file):
            return None  # its holder is alive
        name = os.path.basename(finding.file).removesuffix(".lock")
        task_id = name.removesuffix(".json")
        with self._files.hold([task_id] if is_id(task_id) else (), whole=True):
            try:
                found = os.lstat(finding.file)
                if not found.st_mode & stat.S_ISVTX and time.time() - found.st_mtime <= STALE_AFTER:
                    return None  # another process took it over meanwhile
                os.rmdir(finding.file)
            except FileNotFoundError:
                pass  # acquiring the lock ourselves has released it
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.ENOTDIR):
                    raise disk.storage_error(finding.file, error) from error
                return None
        return Repair(finding.name, finding.file, "freed it")

    def foreign_lock(self, finding: Finding) -> Repair | None:
        """Move away what prevents a lock from being taken. No process can hold such a lock."""
        if not os.path.lexists(finding.file):
            return None
        kept = self._keep.move(finding.file)
        if finding.file == self._files.folder.npm_target:
            disk.create(finding.file, b"", mode=0o644)
        return Repair(finding.name, finding.file, "moved it aside", kept)

    def foreign_file(self, finding: Finding) -> Repair | None:
        """Move away a file that would be a task if its name were a valid id."""
        with self._files.hold(whole=True):
            if not os.path.lexists(finding.file):
                return None
            return Repair(finding.name, finding.file, "moved it aside", self._keep.move(finding.file))

    def mark(self, finding: Finding) -> Repair | None:
        """Write the highest id in any record."""
        folder = self._files.folder
        with self._files.hold(whole=True):
            known = [self._files.writer.index.highest(), self._files.tasks.highest_consolidated()]
            was = self._mark_now()
            highest = max(0, *known, *(number for number in folder.ids_on_disk() if number <= MAX_COUNTED_ID))
            if was is not None and was <= MAX_COUNTED_ID:
                highest = max(highest, was)
            kept = None
            if os.path.lexists(folder.mark):
                plain = stat.S_ISREG(os.lstat(folder.mark).st_mode)
                kept = self._keep.copy(folder.mark) if plain else self._keep.move(folder.mark)
            disk.replace(folder.mark, b"%d" % highest, mode=0o644)
        return Repair(finding.name, finding.file, f"wrote {highest}", kept)

    def _mark_now(self) -> int | None:
        try:
            return self._files.writer.mark.read()
        except (Damaged, StorageError):
            return None

    def draft(self, finding: Finding) -> Repair | None:
        """Move away a partly written file."""
        with self._files.hold(everything=True):
            if not os.path.lexists(finding.file):
                return None
            return Repair(finding.name, finding.file, "moved it aside", self._keep.move(finding.file))


def restrict_permissions(finding: Finding) -> Repair | None:
    """Remove other users' permissions on our file or folder; a link is not followed."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        fd = os.open(finding.file, flags)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise disk.storage_error(finding.file, error) from error
    try:
        mode = 0o700 if stat.S_ISDIR(os.fstat(fd).st_mode) else 0o600
        os.fchmod(fd, mode)
    finally:
        os.close(fd)
    return Repair(finding.name, finding.file, f"set it to {mode:04o}")


#: Bytes. A larger index is mostly holes; it can be rebuilt from the log, so no copy is needed.
_MAX_INDEX_COPY = disk.LARGEST_RECORD


class StateRepairs:
    """Repairs in `.taskyard`."""

    def __init__(self, files: ListFiles, keep: Backup) -> None:
        self._files = files
        self._keep = keep

    def unsettled(self, finding: Finding) -> Repair | None:
        """Complete or undo the change of a crashed writer; opening the list for writing does so already."""
        self._files.recovery.settle(str(finding.task_id))
        return Repair(finding.name, finding.file, f"recovered the last change of #{finding.task_id}")

    def orphan_lease(self, finding: Finding) -> Repair | None:
        """Remove a lease record that matches no task."""
        task_id, leases = str(finding.task_id), self._files.leases
        with self._files.hold([task_id]):
            if (
                not os.path.lexists(finding.file)
                or orphan_reason(self._files.tasks.look(task_id), task_id, leases) is None
            ):
                return None
            return Repair(finding.name, finding.file, "removed the record", self._keep.move(finding.file))

    def dead_holder(self, finding: Finding) -> Repair | None:
        """Return the task of a dead holder to the pool, as any read of it does."""
        FileStore(self._files).get(str(finding.task_id))
        return Repair(finding.name, finding.file, f"put #{finding.task_id} back into the pool")

    def index(self, finding: Finding) -> Repair | None:
        """Rebuild index rows that disagree with the log."""
        writer, reader = self._files.writer, self._files.tasks.reader
        with self._files.hold(everything=True):
            rows = dict(writer.index.rows())
            log = summarize_log(self._files.folder)
            wrong = mismatched_rows(rows, log)
            if not wrong:
                return None
            kept = None
            if os.lstat(finding.file).st_size <= _MAX_INDEX_COPY:
                kept = self._keep.copy(finding.file)
            for task_id in wrong:
                entry_id = log.last.get(task_id)
                if entry_id is None:
                    writer.index.put(task_id, IndexRow())
                    continue
                entry = writer.journal.read(entry_id) or {}
                state = (as_object(entry.get("tasks")) or {}).get(task_id)
                seen = reader.read(task_id)
                if seen is not None and state is not None and seen.raw == state:
                    writer.index.put(task_id, make_row(entry_id, seen.data))
                elif state is None and task_id not in (as_object(entry.get("damaged")) or {}):
                    writer.index.put(task_id, IndexRow(entry_id))
                else:  # exists, and differs from the log: the next read logs it as another program's change
                    writer.index.put(task_id, IndexRow(entry_id, size=0))
        return Repair(finding.name, finding.file, f"rebuilt {len(wrong)} rows", kept)


def sync_blocks(task: Task, others: Sequence[Task]) -> Task:
    """Return the task with `blocks` that match the `blocked_by` of the others."""
    known = {other.id: other for other in (task, *others)}
    for blocker, blocked in half_edges(known):
        if blocker != task.id:
            continue
        if blocker in known[blocked].blocked_by:
            task = task._replace(blocks=(*task.blocks, blocked))
        else:
            task = task._replace(blocks=tuple(other for other in task.blocks if other != blocked))
    return task


def drop_dangling_links(task: Task, exists: Callable[[str], object]) -> Task:
    """Return the task without dependencies on missing tasks."""
    return task._replace(
        blocks=tuple(other for other in task.blocks if exists(other)),
        blocked_by=tuple(other for other in task.blocked_by if exists(other)),
    )


def clear_quarantine(task: Task) -> Task:
    """Return the task without its quarantine."""
    extra = {key: value for key, value in task.extra.items() if key != "held"}
    return task._replace(metadata=merge_metadata(task.metadata, {"taskyard": extra or None}))


def past_tense(fix: str) -> str:
    """Return a fix such as `adds #2 to …` in the past tense."""
    verb, _, rest = fix.partition(" ")
    return f"{ {'adds': 'added', 'takes': 'took', 'offers': 'offered'}.get(verb, verb) } {rest}"


class TaskRepairs:
    """Repairs of tasks within one list, in one run."""

    def __init__(self, files: ListFiles, keep: Backup, by: str | None) -> None:
        self._files = files
        self._keep = keep
        self._by = by

    def _act(self, finding: Finding) -> Act:
        return Act(self._by, "repaired", "doctor", finding.name)

    # -- files -------------------------------------------------------------------------------

    def damaged_task(self, finding: Finding) -> Repair | None:
        """Rewrite a damaged file from what is readable of it, or from the log; else move it aside."""

        def rule(seen: TaskFileState) -> Task | None:
            if seen.damage is None or not stat.S_ISREG(seen.stat.st_mode):
                return seen.task
            saved = salvage_task(str(finding.task_id), seen.data)
            if saved is not None:
                return saved.task
            writer = self._files.writer
            past = history.last_seen(writer.journal, writer.index, str(finding.task_id))
            return past[0] if past is not None else None

        return self._rewrite(finding, rule, wanted=lambda seen: seen.damage is not None)

    def whole(self, finding: Finding) -> Repair | None:
        """Rewrite a readable file in the form that both programs accept."""

        def is_wanting(seen: TaskFileState) -> bool:
            return seen.damage is None and bool(
                hidden_reasons(seen.raw) or mismatched_id(str(finding.task_id), seen.raw)
            )

        return self._rewrite(finding, lambda seen: seen.task, wanted=is_wanting)

    def quarantine(self, finding: Finding) -> Repair | None:
        """Move away an entry that is named like a task and is none; its id stays spent."""
        task_id = str(finding.task_id)
        with self._files.hold([task_id], whole=True):
            seen = self._files.tasks.reader.read(task_id)
            if seen is None or (seen.task is not None and stat.S_ISREG(seen.stat.st_mode)):
                return None
            return self._moved(finding, task_id)

    def _rewrite(
        self, finding: Finding, rule: Callable[[TaskFileState], Task | None], *, wanted: Callable[[TaskFileState], bool]
    ) -> Repair | None:
        task_id = str(finding.task_id)

        def attempt() -> Repair | None:
            with self._files.hold([task_id], whole=True) as hold:
                seen = self._files.tasks.reader.read(task_id)
                if seen is None or not wanted(seen):
                    return None
                seen = self._files.recovery.log_external(task_id, seen, hold)
                if seen is None or not wanted(seen):
                    return None  # restoring our fields has rewritten it
                task = rule(seen)
                if task is None:
                    return self._moved(finding, task_id)
                kept = self._keep.copy(finding.file)
                self._files.writer.commit(hold, self._act(finding), [TaskWrite(task_id, seen, task)])
                return Repair(finding.name, finding.file, f"wrote #{task_id} again", kept)

        return self._files.with_retries(attempt)

    def _moved(self, finding: Finding, task_id: str) -> Repair:
        self._files.raise_mark(int(task_id))
        kept = self._keep.move(finding.file)
        entry = self._files.writer.log(self._act(finding), {task_id: None})
        self._files.writer.index.put(task_id, IndexRow(entry))
        return Repair(finding.name, finding.file, "moved it aside", kept)

    # -- dependencies ------------------------------------------------------------------------

    def half_edge(self, finding: Finding) -> Repair | None:
        """Make a task's `blocks` match what the others wait for."""
        return self._adjust(finding, sync_blocks)

    def dangling_blocker(self, finding: Finding) -> Repair | None:
        """Remove dependencies on missing tasks."""

        def without(task: Task, others: Sequence[Task]) -> Task:
            there = {task.id, *(other.id for other in others)}
            return drop_dangling_links(task, lambda other: other in there or self._files.tasks.look(other))

        return self._adjust(finding, without)

    def held_task(self, finding: Finding) -> Repair | None:
        """Offer a quarantined task again; its count of lost holders is reset."""
        return self._adjust(finding, lambda task, _: clear_quarantine(task), forget_losses=True)

    def _adjust(
        self,
        finding: Finding,
        rule: Callable[[Task, Sequence[Task]], Task],
        *,
        forget_losses: bool = False,
    ) -> Repair | None:
        task_id = str(finding.task_id)

        def attempt() -> Repair | None:
            with self._files.hold([task_id], whole=True) as hold:
                before, seen = self._files.seen(task_id, hold)
                task = rule(before, self._files.tasks.everything())
                if task == before or seen is None:
                    return None
                kept = self._keep.copy(finding.file)
                record = (None, 0) if forget_losses else None
                self._files.writer.commit(hold, self._act(finding), [TaskWrite(task_id, seen, task, record)])
                return Repair(finding.name, finding.file, past_tense(finding.fix), kept)

        return self._files.with_retries(attempt)


#: Bytes copied in one piece; no file that is repaired by rewriting comes near it.
MAX_COPY_SIZE = 64 * 1024 * 1024


class Backup:
    """Folder for the originals of one run of the doctor, created with the first one."""

    def __init__(self, root: str, ours: str) -> None:
        """Set up; `root` is the folder of the originals, `ours` Taskyard's own part of it."""
        self._root = root
        self._ours = ours
        self.folder = os.path.join(ours, "doctor", iso(now_ms()).replace(":", "-"))

    def copy(self, path: str) -> str:
        """Keep a copy of `path` and return its path. The first copy of a run is the original and stays."""
        target = self._target(path)
        data = storage_files.read(path, most=MAX_COPY_SIZE)
        if data is not None:
            try:
                storage_files.create(target, data)
            except FileExistsError:
                pass
        return target

    def move(self, path: str) -> str:
        """Move `path`, whatever it is, into the backup and return its new path. A link is not followed."""
        target = self._target(path)
        while os.path.lexists(target):
            target += "~"
        try:
            os.rename(path, target)
        except OSError as error:
            raise storage_files.storage_error(path, error) from error
        return target

    def _target(self, path: str) -> str:
        target = os.path.join(self.folder, os.path.relpath(path, self._root))
        storage_files.make_private_folder(self._ours)
        storage_files.make_private_folder(os.path.join(self._ours, "doctor"))
        storage_files.make_private_folder(self.folder)
        storage_files.make_private_folder(os.path.dirname(target))
        return target
