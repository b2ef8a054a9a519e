"""The doctor: reports defects of a list and of Taskyard's own state, and repairs them by name.

`Doctor.examine` reads and changes nothing. `Doctor.repair` makes repairs: those that cannot lose anything,
or those that were named. Originals are kept in `.taskyard/doctor/<when>/`. `finding` defines the names,
`snapshot` reads the list consistently, `checks` and `repairs` do the work.
"""

from __future__ import annotations

import os

from taskyard.errors import BadValue, StorageError, TaskyardError
from taskyard.tasks.doctor import checks
from taskyard.tasks.doctor.finding import FINDING_KINDS, Finding, Repair
from taskyard.tasks.doctor.repairs import Backup
from taskyard.tasks.doctor.snapshot import ListSnapshot, take_snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping

    from taskyard.tasks.file_store import ListFiles

    RepairFunction = Callable[[Finding], Repair | None]

__all__ = ["FINDING_KINDS", "Doctor", "Finding", "Repair", "select_repairs", "sort_findings"]

_ORDER = {name: place for place, name in enumerate(FINDING_KINDS)}


class Doctor:
    """Checks and repairs one list, and Taskyard's own state."""

    def __init__(
        self,
        files: ListFiles,
        home: str,
        *,
        by: str | None = None,
        beyond: Callable[[], Iterable[Finding]] = tuple,
        repairs: Mapping[str, RepairFunction] | None = None,
    ) -> None:
        """Set up; `beyond` finds other defects (hooks, settings, Claude Code's teams), `repairs` repairs them."""
        self._files = files
        self._home = home
        self._by = by
        self._extra_checks = beyond
        self._extra_repairs = repairs or {}
        self.refused: list[tuple[Finding, TaskyardError]] = []  #: repairs that the last `repair` could not make

    @property
    def folder(self) -> str:
        """The list's folder."""
        return self._files.folder.path

    def examine(self) -> tuple[Finding, ...]:
        """Return all findings, in the order of `FINDING_KINDS`; nothing is changed."""
        return sort_findings([*self._list_findings(), *checks.check_home(self._home), *self._extra_checks()])

    def _list_findings(self) -> Iterator[Finding]:
        folder = self._files.folder
        try:
            if not folder.exists():
                return
        except StorageError as error:
            yield Finding("not-a-list", error.path, f"{error.why[:1].upper()}{error.why[1:]}.", "move it away")
            return
        seen = take_snapshot(self._files)
        yield from checks.check_task_files(seen)
        yield from checks.check_dependencies(seen)
        yield from checks.check_snapshot_quarantine(seen)
        yield from checks.check_names(seen)
        yield from checks.check_locks(seen)
        yield from checks.check_high_water_mark(seen)
        yield from checks.check_drafts(seen)
        yield from checks.check_consolidated(seen)
        yield from checks.check_file_system(seen)
        yield from self._own_findings(seen)
        yield from checks.check_permissions(folder)

    def _own_findings(self, seen: ListSnapshot) -> Iterator[Finding]:
        yield from checks.check_unfinished(seen)
        yield from checks.check_leases(seen, self._files.leases)
        yield from checks.check_index(seen)
        yield from checks.check_log(seen)

    def repair(self, names: Iterable[str] = ()) -> tuple[Repair, ...]:
        """Make the repairs that cannot lose anything, or with `names` those kinds instead; return what was done.

        Raises:
            BadValue: a name is no finding, or it cannot be repaired.
        """
        wanted, self.refused = select_repairs(names), []
        return apply_repairs(self.examine(), wanted, self._repairs(), self.refused)

    def close(self) -> None:
        """Close open files."""
        self._files.close()

    def __enter__(self) -> Doctor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _repairs(self) -> Mapping[str, RepairFunction]:
        from taskyard.tasks.doctor.repairs import (
            FolderRepairs,
            StateRepairs,
            TaskRepairs,
            restrict_permissions,
        )

        keep = Backup(self._files.folder.path, self._files.folder.ours)
        tasks = TaskRepairs(self._files, keep, self._by)
        folder, ours = FolderRepairs(self._files, keep), StateRepairs(self._files, keep)
        return {
            "damaged-task": tasks.damaged_task,
            "not-a-task-file": tasks.quarantine,
            "deleted-mark": tasks.quarantine,
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
            "leftover-draft": lambda finding: self._move_draft_aside(finding, folder.draft),
            "unsettled": ours.unsettled,
            "orphan-lease": ours.orphan_lease,
            "dead-holder": ours.dead_holder,
            "ledger": ours.index,
            "open-permissions": restrict_permissions,
            **self._extra_repairs,
        }

    def _move_draft_aside(self, finding: Finding, of_list: RepairFunction) -> Repair | None:
        if finding.file.startswith(self._files.folder.path + os.sep):
            return of_list(finding)
        if not os.path.lexists(finding.file):
            return None
        kept = Backup(self._home, self._home).move(finding.file)
        return Repair(finding.name, finding.file, "moved it aside", kept)


def sort_findings(found: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings in the order of a report."""
    return tuple(sorted(found, key=lambda finding: _ORDER[finding.name]))


def select_repairs(names: Iterable[str]) -> frozenset[str]:
    """Return the kinds of findings to repair: those named, or all that cannot lose anything.

    Raises:
        BadValue: a name is no finding, or it cannot be repaired.
    """
    wanted = frozenset(names)
    for name in wanted:
        if name not in FINDING_KINDS or not FINDING_KINDS[name].can_fix:
            known = ", ".join(name for name, kind in FINDING_KINDS.items() if kind.can_fix)
            raise BadValue("A repair", name, f"one of {known}")
    return wanted or frozenset(name for name, kind in FINDING_KINDS.items() if kind.is_safe)


def apply_repairs(
    findings: Iterable[Finding],
    wanted: Container[str],
    repairs: Mapping[str, RepairFunction],
    refused: list[tuple[Finding, TaskyardError]],
) -> tuple[Repair, ...]:
    """Repair the findings of the `wanted` kinds; return what was done. Failed repairs are added to `refused`."""
    done: list[Repair] = []
    for finding in findings:
        if finding.name not in wanted:
            continue
        try:
            repair = repairs[finding.name](finding)
        except TaskyardError as error:
            refused.append((finding, error))
            continue
        if repair is not None:
            done.append(repair)
    return tuple(done)
