"""Interface of a task store. Implementations: `file_store`, `memory_store`, `postgres.task_store`."""

from __future__ import annotations

from typing import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from taskyard.tasks.graph import Edge
    from taskyard.tasks.model import Act, Change, Decision, Draft, Facts, Lease, LinkChange, Listing, Task

    Rule = Callable[[Facts], Decision]


class TaskStore(Protocol):
    """One list. Every method is a whole operation: atomic, and final when it returns.

    A store contains no rules about tasks. While it holds locks it runs no foreign code except the pure rule it
    was given, which may be called more than once. `taskyard.testing.check_task_store` states the whole contract
    as executable checks; every store must pass it.
    """

    @property
    def name(self) -> str:
        """The list's name."""
        ...

    def reserve(self) -> str:
        """Return a fresh id, never given out before or again, for a `create` that may be refused."""
        ...

    def create(self, draft: Draft, act: Act, *, task_id: str | None = None, lease: Lease | None = None) -> Task:
        """Create a task under a fresh or reserved id; with `lease` its owner holds it from the start.

        Raises:
            TaskNotFound: a dependency or the parent names no task.
            Cycle: its dependencies would wait for each other, or it would be a part of itself.
        """
        ...

    def get(self, task_id: str) -> Task:
        """Return a task with its lease.

        Raises:
            TaskNotFound: there is none.
            Damaged: its file cannot be read.
        """
        ...

    def list(self) -> Listing:
        """Return all tasks including trackers; tasks of dead holders are back in the pool."""
        ...

    def waiting_for(self, task_id: str) -> Sequence[str]:
        """Return the ids of tasks whose `blockedBy` names the task, ascending; its own `blocks` does not count."""
        ...

    def is_finished(self) -> bool:
        """Return whether no visible task is open; cheaper than `list`."""
        ...

    def update(
        self,
        task_id: str,
        rule: Rule,
        act: Act,
        *,
        with_blockers: bool = False,
        whole_list: bool = False,
        links: LinkChange | None = None,
    ) -> Task:
        """Let `rule` decide about a task and save its decision. An unchanged task is not written.

        Args:
            task_id: The task.
            rule: Called with the task as it was before `links`.
            act: Recorded in the log.
            with_blockers: The blockers do not change meanwhile.
            whole_list: No other call with this flag decides meanwhile, and the rule may read the whole list.
            links: Dependencies of the task to add and remove in the same step, on both sides.

        Raises:
            Cycle: tasks would wait for each other.
            TaskNotFound: the task, or one to link it to, does not exist.
        """
        ...

    def claim_next(self, order: Callable[[Sequence[Task]], Sequence[str]], rule: Rule, act: Act) -> Task | None:
        """Claim the first task, in the given order, that `rule` accepts; None if it refuses them all."""
        ...

    def link(self, edges: Sequence[Edge], act: Act) -> None:
        """Add dependencies (blocker, blocked): all or none.

        Raises:
            Cycle: tasks would wait for each other.
        """
        ...

    def unlink(self, edges: Sequence[Edge], act: Act) -> tuple[Edge, ...]:
        """Remove dependencies and return those that existed; the others are no error.

        Raises:
            TaskNotFound: there is no such task, nor a dependency on it.
        """
        ...

    def remove(
        self,
        task_ids: Sequence[str],
        act: Act,
        *,
        only_done: bool = False,
        check: Callable[[Facts], None] | None = None,
    ) -> tuple[Task, ...]:
        """Remove tasks from the list and from all dependencies: all or none. The log keeps them.

        `check` may refuse any of them; no other process changes them meanwhile.

        Raises:
            StillOpen: `only_done`, and some are not completed.
        """
        ...

    def restore(self, task_id: str, act: Act) -> Task:
        """Restore a removed task under its id, as it was, with the dependencies that are still valid."""
        ...

    def last_id(self) -> int:
        """Return the highest id ever given out, 0 if none. Read-only."""
        ...

    def adopt(self, tasks: Sequence[Task], act: Act, *, last: int = 0) -> None:
        """Fill an empty list with `tasks` as they are, with ids, both sides of dependencies, and times: all or none.

        The tasks are unclaimed; an unknown time becomes now. Neither their ids nor any id up to `last` is given out
        again.

        Raises:
            ListNotEmpty: there are tasks.
        """
        ...

    def changes(self, since: int = 0, *, task_id: str | None = None) -> Iterator[Change]:
        """Yield the event log from an entry id on, oldest first."""
        ...

    def position(self) -> int:
        """Return the id of the next change, or a smaller one."""
        ...

    def wait(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds for a change; return whether something may have changed."""
        ...

    def signal(self) -> None:
        """Wake all waiters in this process at once."""
        ...

    def listen(self, on_quarantine: Callable[[Task], None]) -> None:
        """Call `on_quarantine`, with no lock held, for every task quarantined after losing its lease too often."""
        ...

    def close(self) -> None:
        """Close what is open."""
        ...
