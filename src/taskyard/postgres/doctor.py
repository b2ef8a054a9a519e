"""Diagnose and repair a task list in a database: damage by other programs, connection, clock skew.

Every repair is an ordinary change of the list: decided on its current state, logged with cause `repaired`.
"""

from __future__ import annotations

from taskyard.core.system import now_ms
from taskyard.errors import SchemaMismatch, StorageError, StoreAway, TaskyardError
from taskyard.postgres.connection import database
from taskyard.postgres.lists import PostgresLists
from taskyard.tasks.doctor import apply_repairs, checks, select_repairs, sort_findings
from taskyard.tasks.doctor.finding import Finding, Repair
from taskyard.tasks.doctor.repairs import clear_quarantine, drop_dangling_links, past_tense, sync_blocks
from taskyard.tasks.model import Act, Decision

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Self

    from taskyard.config import Settings
    from taskyard.tasks.doctor import RepairFunction
    from taskyard.tasks.model import Facts, Task
    from taskyard.tasks.store import TaskStore

#: Allowed clock difference in milliseconds before displayed times look wrong.
_MAX_SKEW_MS = 2_000


class PostgresDoctor:
    """Checks one list in a database, and Taskyard's own state on this host."""

    def __init__(
        self,
        address: str,
        store: TaskStore,
        settings: Settings,
        home: str,
        *,
        by: str | None = None,
        beyond: Callable[[], Iterable[Finding]] = tuple,
        repairs: Mapping[str, RepairFunction] | None = None,
    ) -> None:
        """`beyond` finds problems outside both (hooks, settings, Claude Code's teams); `repairs` repair them."""
        self._database = database(address, patience=settings.database_patience)
        self._lists = PostgresLists(address, settings)
        self._store = store
        self._home = home
        self._by = by
        self._extra_checks = beyond
        self._extra_repairs = repairs or {}
        self.refused: list[tuple[Finding, TaskyardError]] = []  #: repairs the last `repair` could not do, and why

    @property
    def folder(self) -> str:
        """Where the list is, for people."""
        return f"list {self._store.name} in {self._database.where}"

    def examine(self) -> tuple[Finding, ...]:
        """Return all findings; nothing is changed."""
        return sort_findings([*self._findings(), *checks.check_home(self._home), *self._extra_checks()])

    def _findings(self) -> Iterator[Finding]:
        where = self._database.where
        try:
            yield from self._clock_findings()
            yield from self._list_findings()
        except SchemaMismatch as error:
            yield Finding("other-schema", where, str(error), "`taskyard db upgrade`, or the version that made them")
        except (StoreAway, StorageError) as error:
            yield Finding("unreachable", where, str(error), "`taskyard db status` shows more")

    def _clock_findings(self) -> Iterator[Finding]:
        began = now_ms()
        server = int(self._database.ask("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)")[0][0])
        ended = now_ms()
        if not began - _MAX_SKEW_MS <= server <= ended + _MAX_SKEW_MS:
            skew = (began + ended) / 2 - server
            behind = "behind" if skew < 0 else "ahead of"
            why = f"This machine's clock is {abs(skew) / 1000:.0f} s {behind} the database's."
            fix = "set it: leases end by the database's clock, but what is shown as `ago` is wrong by that much"
            yield Finding("clock-skew", self._database.where, why, fix)

    def _list_findings(self) -> Iterator[Finding]:
        listing = self._lists.look(self._store.name)
        for damaged in listing.damaged:
            fix = f"fix its row in taskyard.task, or see `taskyard task log {damaged.file}` for how it was"
            yield Finding("damaged-task", self._place(damaged.file), f"{damaged.why}.", fix, damaged.file)
        tasks = {task.id: task for task in listing}
        there = {*tasks, *(damaged.file for damaged in listing.damaged)}
        yield from checks.check_cycles(tasks, self._place)
        yield from checks.check_half_edges(tasks, self._place)
        yield from checks.check_dangling(tasks, there.__contains__, self._place)
        yield from checks.check_quarantined(tasks, self._place)
        yield from self._dead_holders(tasks)
        yield from self._low_mark()

    def _dead_holders(self, tasks: Mapping[str, Task]) -> Iterator[Finding]:
        rows = self._database.ask("SELECT unnest(dead_in(id)) FROM list WHERE name = %s", [self._store.name])
        for task in (tasks[str(number)] for (number,) in rows if str(number) in tasks):
            why = f"#{task.id} is held by {task.owner}, which has not responded for too long."
            yield Finding("dead-holder", self._place(task.id), why, "puts it back into the pool", task.id)

    def _low_mark(self) -> Iterator[Finding]:
        rows = self._database.ask(
            "SELECT l.last_id, max(t.id) FROM list l JOIN task t ON t.list = l.id WHERE l.name = %s"
            " GROUP BY l.id HAVING max(t.id) > l.last_id",
            [self._store.name],
        )
        for last, highest in rows:
            why = f"The highest id that was given out is {highest}; the list says {last}."
            yield Finding("low-mark", self.folder, why, f"writes {highest}")

    def _place(self, task_id: str) -> str:
        return f"#{task_id} of {self.folder}"

    def repair(self, names: Iterable[str] = ()) -> tuple[Repair, ...]:
        """Apply the repairs that lose no data; with `names`, those kinds instead. Return what was done.

        Raises:
            BadValue: no finding has such a name, or it cannot be repaired.
        """
        wanted, self.refused = select_repairs(names), []
        repairs = self._repairs()
        return apply_repairs(self.examine(), wanted & repairs.keys(), repairs, self.refused)

    def _repairs(self) -> Mapping[str, RepairFunction]:
        from taskyard.tasks.doctor.repairs import restrict_permissions

        return {
            "half-edge": lambda found: self._adjust(found, lambda facts: sync_blocks(facts.task, facts.everything())),
            "dangling-blocker": lambda found: self._adjust(
                found, lambda facts: drop_dangling_links(facts.task, facts.look)
            ),
            "held-task": lambda found: self._adjust(found, lambda facts: clear_quarantine(facts.task)),
            "dead-holder": self._release,
            "low-mark": self._raise_mark,
            "open-permissions": restrict_permissions,
            **self._extra_repairs,
        }

    def _adjust(self, finding: Finding, rule: Callable[[Facts], Task]) -> Repair | None:
        act = Act(self._by, "repaired", "doctor", finding.name)
        before = self._store.position()
        self._store.update(str(finding.task_id), lambda facts: Decision(rule(facts), facts.lease), act, whole_list=True)
        if not any(change.act == act for change in self._store.changes(before, task_id=finding.task_id)):
            return None  # another process was faster
        return Repair(finding.name, finding.file, past_tense(finding.fix))

    def _release(self, finding: Finding) -> Repair | None:
        """Requeue the task of a dead holder, as any read of it does."""
        self._store.get(str(finding.task_id))
        return Repair(finding.name, finding.file, f"put #{finding.task_id} back into the pool")

    def _raise_mark(self, finding: Finding) -> Repair | None:
        self._database.ask(
            "UPDATE list l SET last_id = greatest(l.last_id, (SELECT max(t.id) FROM task t WHERE t.list = l.id))"
            " WHERE l.name = %s",
            [self._store.name],
        )
        return Repair(finding.name, finding.file, finding.fix.replace("writes", "wrote"))

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
