"""
The doctor: names what is wrong with a list, and repairs it by name.

Role
    `Doctor.examine` looks and changes nothing. `Doctor.repair` carries out repairs: those that can
    lose nothing, or those that were named. Originals are kept in `.taskyard/doctor/<when>/`.

Not here
    What the names mean (`finding.py`); how to look without disturbing anyone (`look.py`); the checks
    (`check_*.py`) and repairs (`repair_*.py`) themselves.
"""

from __future__ import annotations

import os

from taskyard.errors import BadValue, StorageError, TaskyardError
from taskyard.tasklist.doctor import check_folder, check_home, check_ours, check_tasks
from taskyard.tasklist.doctor.finding import KINDS, Finding, Repair
from taskyard.tasklist.doctor.keep import Keep
from taskyard.tasklist.doctor.look import Look, look_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping

    from taskyard.tasklist.list_files import ListFiles

    Treatment = Callable[[Finding], Repair | None]

__all__ = ["KINDS", "Doctor", "Finding", "Repair", "in_order", "repairable"]

_ORDER = {name: place for place, name in enumerate(KINDS)}


class Doctor:
    """Looks after one list, and Taskyard's own state."""

    def __init__(
        self,
        files: ListFiles,
        home: str,
        *,
        by: str | None = None,
        beyond: Callable[[], Iterable[Finding]] = tuple,
        treatments: Mapping[str, Treatment] | None = None,
    ) -> None:
        """`beyond` finds what is wrong outside both: hooks, settings, Claude Code's teams; `treatments` repair it."""
        self._files = files
        self._home = home
        self._by = by
        self._beyond = beyond
        self._beyond_treatments = treatments or {}
        self.refused: list[tuple[Finding, TaskyardError]] = []  #: repairs the last `repair` could not do, and why

    @property
    def folder(self) -> str:
        """The list's folder."""
        return self._files.folder.path

    def examine(self) -> tuple[Finding, ...]:
        """Everything found, in the order of `KINDS`; nothing is changed."""
        return in_order([*self._list_findings(), *check_home.check_home(self._home), *self._beyond()])

    def _list_findings(self) -> Iterator[Finding]:
        folder = self._files.folder
        try:
            if not folder.exists():
                return
        except StorageError as error:
            yield Finding("not-a-list", error.path, f"{error.why[:1].upper()}{error.why[1:]}.", "move it away")
            return
        seen = look_at(self._files)
        yield from check_tasks.check_task_files(seen)
        yield from check_tasks.check_dependencies(seen)
        yield from check_tasks.check_held(seen)
        yield from check_folder.check_names(seen)
        yield from check_folder.check_locks(seen)
        yield from check_folder.check_mark(seen)
        yield from check_folder.check_drafts(seen)
        yield from check_folder.check_older(seen)
        yield from check_folder.check_place(seen)
        yield from self._own_findings(seen)
        yield from check_home.check_private(folder)

    def _own_findings(self, seen: Look) -> Iterator[Finding]:
        yield from check_ours.check_unsettled(seen)
        yield from check_ours.check_leases(seen, self._files.leases)
        yield from check_ours.check_ledger(seen)
        yield from check_ours.check_log(seen)

    def repair(self, names: Iterable[str] = ()) -> tuple[Repair, ...]:
        """Repair what can lose nothing; with `names`, those kinds instead. What was done.

        Raises:
            BadValue: there is no finding of such a name, or nothing can repair it.
        """
        wanted, self.refused = repairable(names), []
        return treated(self.examine(), wanted, self._treatments(), self.refused)

    def close(self) -> None:
        """Let go of open files."""
        self._files.close()

    def __enter__(self) -> Doctor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _treatments(self) -> Mapping[str, Treatment]:
        from taskyard.tasklist.doctor.repair_folder import FolderRepairs, close_to_others
        from taskyard.tasklist.doctor.repair_ours import OwnRepairs
        from taskyard.tasklist.doctor.repair_tasks import TaskRepairs

        keep = Keep(self._files.folder.path, self._files.folder.ours)
        tasks = TaskRepairs(self._files, keep, self._by)
        folder, ours = FolderRepairs(self._files, keep), OwnRepairs(self._files, keep)
        return {
            "damaged-task": tasks.damaged_task,
            "not-a-task-file": tasks.set_aside,
            "deleted-mark": tasks.set_aside,
            "hidden-task": tasks.whole,
            "wrong-id": tasks.whole,
            "half-edge": tasks.half_edge,
            "dangling-blocker": tasks.dangling_blocker,
            "held-task": tasks.held_task,
            "foreign-file": folder.foreign_file,
            "stale-lock": folder.stale_lock,
            "foreign-lock": folder.foreign_lock,
            "bad-mark": folder.mark,
            "low-mark": folder.mark,
            "impossible-mark": folder.mark,
            "leftover-draft": lambda finding: self._put_draft_away(finding, folder.draft),
            "unsettled": ours.unsettled,
            "orphan-lease": ours.orphan_lease,
            "dead-holder": ours.dead_holder,
            "ledger": ours.ledger,
            "open-permissions": close_to_others,
            **self._beyond_treatments,
        }

    def _put_draft_away(self, finding: Finding, of_list: Treatment) -> Repair | None:
        if finding.file.startswith(self._files.folder.path + os.sep):
            return of_list(finding)
        if not os.path.lexists(finding.file):
            return None
        kept = Keep(self._home, self._home).move(finding.file)
        return Repair(finding.name, finding.file, "moved it aside", kept)


def in_order(found: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings in the order of a report."""
    return tuple(sorted(found, key=lambda finding: _ORDER[finding.name]))


def repairable(names: Iterable[str]) -> frozenset[str]:
    """The kinds of findings to be repaired: those named, or all by which nothing can be lost.

    Raises:
        BadValue: there is no finding of such a name, or nothing can repair it.
    """
    wanted = frozenset(names)
    for name in wanted:
        if name not in KINDS or not KINDS[name].can_fix:
            known = ", ".join(name for name, kind in KINDS.items() if kind.can_fix)
            raise BadValue("A repair", name, f"one of {known}")
    return wanted or frozenset(name for name, kind in KINDS.items() if kind.is_safe)


def treated(
    findings: Iterable[Finding],
    wanted: Container[str],
    treatments: Mapping[str, Treatment],
    refused: list[tuple[Finding, TaskyardError]],
) -> tuple[Repair, ...]:
    """Repair the findings of the kinds that are `wanted`; what was done. What could not be is added to `refused`."""
    done: list[Repair] = []
    for finding in findings:
        if finding.name not in wanted:
            continue
        try:
            repair = treatments[finding.name](finding)
        except TaskyardError as error:
            refused.append((finding, error))
            continue
        if repair is not None:
            done.append(repair)
    return tuple(done)
