"""
The doctor of a list in a database: what other programs may have written there, and what is between here and there.

Every repair is an ordinary change of the list: decided on what is there then, in the event log, cause `repaired`.
"""

from __future__ import annotations

from taskyard.clock import now_ms
from taskyard.database.pool import database
from taskyard.errors import SchemaMismatch, StorageError, StoreAway, TaskyardError
from taskyard.lists.in_database import ListsInDatabase
from taskyard.tasklist.doctor import Finding, Repair, check_home, check_tasks, in_order, repairable, treated
from taskyard.tasklist.doctor.adjusting import mirrored, offered, past, tied_to_what_is_there
from taskyard.tasklist.model import Act, Decision

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Self

    from taskyard.config import Settings
    from taskyard.tasklist.doctor import Treatment
    from taskyard.tasklist.model import Facts, Task
    from taskyard.tasklist.store import TaskStore

#: Milliseconds two clocks may differ before people wonder at the times they see.
_SKEW = 2_000


class SharedDoctor:
    """Looks after one list in a database, and Taskyard's own state on this machine."""

    def __init__(
        self,
        address: str,
        store: TaskStore,
        settings: Settings,
        home: str,
        *,
        by: str | None = None,
        beyond: Callable[[], Iterable[Finding]] = tuple,
        treatments: Mapping[str, Treatment] | None = None,
    ) -> None:
        """`beyond` finds what is wrong outside both: hooks, settings, Claude Code's teams; `treatments` repair it."""
        self._database = database(address, patience=settings.database_patience)
        self._lists = ListsInDatabase(address, settings)
        self._store = store
        self._home = home
        self._by = by
        self._beyond = beyond
        self._beyond_treatments = treatments or {}
        self.refused: list[tuple[Finding, TaskyardError]] = []  #: repairs the last `repair` could not do, and why

    @property
    def folder(self) -> str:
        """The list's place, for people."""
        return f"list {self._store.name} in {self._database.where}"

    def examine(self) -> tuple[Finding, ...]:
        """Everything found; nothing is changed."""
        return in_order([*self._findings(), *check_home.check_home(self._home), *self._beyond()])

    def _findings(self) -> Iterator[Finding]:
        where = self._database.where
        try:
            yield from self._clock_findings()
            yield from self._list_findings()
        except SchemaMismatch as error:
            yield Finding("other-schema", where, str(error), "`taskyard db upgrade`, or the version that made them")
        except (StoreAway, StorageError) as error:
            yield Finding("unreachable", where, str(error), "`taskyard db status` tells more")

    def _clock_findings(self) -> Iterator[Finding]:
        began = now_ms()
        server = int(self._database.ask("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)")[0][0])
        ended = now_ms()
        if not began - _SKEW <= server <= ended + _SKEW:
            skew = (began + ended) / 2 - server
            behind = "behind" if skew < 0 else "ahead of"
            why = f"This machine's clock is {abs(skew) / 1000:.0f} s {behind} the database's."
            fix = "set it: leases end by the database's clock, but what is shown as `ago` is wrong by that much"
            yield Finding("clock-skew", self._database.where, why, fix)

    def _list_findings(self) -> Iterator[Finding]:
        listing = self._lists.look(self._store.name)
        for damaged in listing.damaged:
            fix = f"mend its row in taskyard.task, or see `taskyard task log {damaged.file}` for how it was"
            yield Finding("damaged-task", self._place(damaged.file), f"{damaged.why}.", fix, damaged.file)
        tasks = {task.id: task for task in listing}
        there = {*tasks, *(damaged.file for damaged in listing.damaged)}
        yield from check_tasks.check_cycles(tasks, self._place)
        yield from check_tasks.check_half_edges(tasks, self._place)
        yield from check_tasks.check_gone(tasks, there.__contains__, self._place)
        yield from check_tasks.check_set_aside(tasks, self._place)
        yield from self._dead_holders(tasks)
        yield from self._low_mark()

    def _dead_holders(self, tasks: Mapping[str, Task]) -> Iterator[Finding]:
        rows = self._database.ask("SELECT unnest(dead_in(id)) FROM list WHERE name = %s", [self._store.name])
        for task in (tasks[str(number)] for (number,) in rows if str(number) in tasks):
            why = f"#{task.id} is held by {task.owner}, of whom nothing was heard for too long."
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
        """Repair what can lose nothing; with `names`, those kinds instead. What was done.

        Raises:
            BadValue: there is no finding of such a name, or nothing can repair it.
        """
        wanted, self.refused = repairable(names), []
        treatments = self._treatments()
        return treated(self.examine(), wanted & treatments.keys(), treatments, self.refused)

    def _treatments(self) -> Mapping[str, Treatment]:
        from taskyard.tasklist.doctor.repair_folder import close_to_others

        return {
            "half-edge": lambda found: self._adjusted(found, lambda facts: mirrored(facts.task, facts.everything())),
            "dangling-blocker": lambda found: self._adjusted(
                found, lambda facts: tied_to_what_is_there(facts.task, facts.look)
            ),
            "held-task": lambda found: self._adjusted(found, lambda facts: offered(facts.task)),
            "dead-holder": self._release,
            "low-mark": self._raise_mark,
            "open-permissions": close_to_others,
            **self._beyond_treatments,
        }

    def _adjusted(self, finding: Finding, rule: Callable[[Facts], Task]) -> Repair | None:
        act = Act(self._by, "repaired", "doctor", finding.name)
        before = self._store.position()
        self._store.update(str(finding.task_id), lambda facts: Decision(rule(facts), facts.lease), act, whole_list=True)
        if not any(change.act == act for change in self._store.changes(before, task_id=finding.task_id)):
            return None  # somebody else was quicker
        return Repair(finding.name, finding.file, past(finding.fix))

    def _release(self, finding: Finding) -> Repair | None:
        """Put a task of a dead holder back into the pool: what any look at it does."""
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
        """Let go of what is open."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
