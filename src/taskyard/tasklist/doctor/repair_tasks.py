"""
Repairs of task files and dependencies.

Each one looks again under the locks of what it writes, and does nothing where nothing is wrong
any more. Every rewrite is an ordinary change: crash-safe, in the event log, cause `repaired`.
"""

from __future__ import annotations

import stat

from taskyard.tasklist import history
from taskyard.tasklist.doctor.adjusting import mirrored, offered, past, tied_to_what_is_there
from taskyard.tasklist.doctor.finding import Finding, Repair
from taskyard.tasklist.doctor.mending import hidden_by, mended, other_id
from taskyard.tasklist.ledger import Row
from taskyard.tasklist.model import Act, Task
from taskyard.tasklist.writer import Write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from taskyard.tasklist.doctor.keep import Keep
    from taskyard.tasklist.list_files import ListFiles
    from taskyard.tasklist.reader import Seen


class TaskRepairs:
    """Repairs within one list, by one person, in one run."""

    def __init__(self, files: ListFiles, keep: Keep, by: str | None) -> None:
        self._files = files
        self._keep = keep
        self._by = by

    def _act(self, finding: Finding) -> Act:
        return Act(self._by, "repaired", "doctor", finding.name)

    # -- files -------------------------------------------------------------------------------

    def damaged_task(self, finding: Finding) -> Repair | None:
        """Write a damaged file again from what is left of it, or from the log; else move it aside."""

        def rule(seen: Seen) -> Task | None:
            if seen.damage is None or not stat.S_ISREG(seen.stat.st_mode):
                return seen.task
            saved = mended(str(finding.task_id), seen.data)
            if saved is not None:
                return saved.task
            writer = self._files.writer
            past = history.last_seen(writer.journal, writer.ledger, str(finding.task_id))
            return past[0] if past is not None else None

        return self._rewritten(finding, rule, wanted=lambda seen: seen.damage is not None)

    def whole(self, finding: Finding) -> Repair | None:
        """Write a readable file again as both programs want it."""

        def is_wanting(seen: Seen) -> bool:
            return seen.damage is None and bool(hidden_by(seen.raw) or other_id(str(finding.task_id), seen.raw))

        return self._rewritten(finding, lambda seen: seen.task, wanted=is_wanting)

    def set_aside(self, finding: Finding) -> Repair | None:
        """Move away what is called like a task and is none; its id stays spent."""
        task_id = str(finding.task_id)
        with self._files.hold([task_id], whole=True):
            seen = self._files.tasks.reader.read(task_id)
            if seen is None or (seen.task is not None and stat.S_ISREG(seen.stat.st_mode)):
                return None
            return self._moved(finding, task_id)

    def _rewritten(
        self, finding: Finding, rule: Callable[[Seen], Task | None], *, wanted: Callable[[Seen], bool]
    ) -> Repair | None:
        task_id = str(finding.task_id)

        def attempt() -> Repair | None:
            with self._files.hold([task_id], whole=True) as hold:
                seen = self._files.tasks.reader.read(task_id)
                if seen is None or not wanted(seen):
                    return None
                seen = self._files.settler.note_external(task_id, seen, hold)
                if seen is None or not wanted(seen):
                    return None  # putting our fields back wrote it again
                task = rule(seen)
                if task is None:
                    return self._moved(finding, task_id)
                kept = self._keep.copy(finding.file)
                self._files.writer.commit(hold, self._act(finding), [Write(task_id, seen, task)])
                return Repair(finding.name, finding.file, f"wrote #{task_id} again", kept)

        return self._files.persist(attempt)

    def _moved(self, finding: Finding, task_id: str) -> Repair:
        self._files.keep_above(int(task_id))
        kept = self._keep.move(finding.file)
        entry = self._files.writer.log(self._act(finding), {task_id: None})
        self._files.writer.ledger.put(task_id, Row(entry))
        return Repair(finding.name, finding.file, "moved it aside", kept)

    # -- dependencies ------------------------------------------------------------------------

    def half_edge(self, finding: Finding) -> Repair | None:
        """Let what a task blocks say what the others wait for."""
        return self._adjusted(finding, mirrored)

    def dangling_blocker(self, finding: Finding) -> Repair | None:
        """Take dependencies on what is not there away."""

        def without(task: Task, others: Sequence[Task]) -> Task:
            there = {task.id, *(other.id for other in others)}
            return tied_to_what_is_there(task, lambda other: other in there or self._files.tasks.look(other))

        return self._adjusted(finding, without)

    def held_task(self, finding: Finding) -> Repair | None:
        """Offer a task again that was set aside; its lost holders are forgotten."""
        return self._adjusted(finding, lambda task, _: offered(task), forget_losses=True)

    def _adjusted(
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
                self._files.writer.commit(hold, self._act(finding), [Write(task_id, seen, task, record)])
                return Repair(finding.name, finding.file, past(finding.fix), kept)

        return self._files.persist(attempt)
