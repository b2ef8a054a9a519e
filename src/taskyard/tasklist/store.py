"""Where tasks live. Implementations: `file_store`, `memory_store`, `postgres.store`."""

from __future__ import annotations

from typing import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from taskyard.tasklist.graph import Edge
    from taskyard.tasklist.model import Act, Change, Decision, Draft, Facts, Lease, Links, Listing, Task

    Rule = Callable[[Facts], Decision]


class TaskStore(Protocol):
    """One list. Every verb is a whole operation: atomic, and final when it returns.

    No rule about tasks lives here, and nothing of anyone's runs while a verb holds its locks but
    the pure rule it was given, which may be asked more than once. `taskyard.testing.check_task_store`
    states the whole contract as executable checks: a new store passes it or is not a store.
    """

    @property
    def name(self) -> str:
        """The list's name."""
        ...

    def reserve(self) -> str:
        """A fresh id, never given out before and never again, for a `create` that may be refused."""
        ...

    def create(self, draft: Draft, act: Act, *, task_id: str | None = None, lease: Lease | None = None) -> Task:
        """Put a new task on the list, under a fresh id or a reserved one; `lease`: its owner holds it from the first.

        Raises:
            TaskNotFound: a dependency or the parent names no task.
            Cycle: its dependencies would wait for each other, or it would be a part of itself.
        """
        ...

    def get(self, task_id: str) -> Task:
        """One task, with its lease.

        Raises:
            TaskNotFound: there is none.
            Damaged: its file cannot be read.
        """
        ...

    def list(self) -> Listing:
        """Everything on the list, trackers included; what a dead holder had is back in the pool."""
        ...

    def waiting_for(self, task_id: str) -> Sequence[str]:
        """Who waits for a task, by ascending id and by their own word; its own `blocks` does not count."""
        ...

    def is_finished(self) -> bool:
        """Whether nothing that people see is open; cheaper than looking at everything."""
        ...

    def update(
        self,
        task_id: str,
        rule: Rule,
        act: Act,
        *,
        with_blockers: bool = False,
        whole_list: bool = False,
        links: Links | None = None,
    ) -> Task:
        """Let `rule` decide about one task, and save what it says. No difference: nothing is written.

        `with_blockers`: the blockers do not change meanwhile. `whole_list`: nobody else with this
        flag decides meanwhile, and the rule may look at everything. `links`: dependencies of the task that come and
        go in the same step, on both sides; the rule is asked about the task as it was.

        Raises:
            Cycle: they would wait for each other.
            TaskNotFound: there is no such task, or none to tie it to.
        """
        ...

    def claim_next(self, order: Callable[[Sequence[Task]], Sequence[str]], rule: Rule, act: Act) -> Task | None:
        """The first task, in the order given, that `rule` accepts; None if it refuses them all."""
        ...

    def link(self, edges: Sequence[Edge], act: Act) -> None:
        """Make each (blocker, blocked) wait: all edges or none.

        Raises:
            Cycle: they would wait for each other.
        """
        ...

    def unlink(self, edges: Sequence[Edge], act: Act) -> tuple[Edge, ...]:
        """Take dependencies away and answer which were there; the others are no error.

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
        """Take tasks off the list, and out of everyone's dependencies: all or none. The log keeps them.

        `check` may refuse any of them; nobody changes them meanwhile.

        Raises:
            StillOpen: `only_done`, and some are not completed.
        """
        ...

    def restore(self, task_id: str, act: Act) -> Task:
        """Bring a removed task back under its id, as it was, with the dependencies that still make sense."""
        ...

    def changes(self, since: int = 0, *, task_id: str | None = None) -> Iterator[Change]:
        """The event log from an id on, oldest first."""
        ...

    def position(self) -> int:
        """The id the next change will have, or a smaller one."""
        ...

    def wait(self, timeout: float) -> bool:
        """Sleep until something may have changed, at most `timeout` seconds; whether something may have."""
        ...

    def signal(self) -> None:
        """Wake whoever waits in this process, at once."""
        ...

    def listen(self, on_aside: Callable[[Task], None]) -> None:
        """Call `on_aside` with every task that is set aside after losing its holders too often; no lock is held."""
        ...

    def close(self) -> None:
        """Let go of what is open."""
        ...
