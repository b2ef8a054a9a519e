"""The list's past and its edges: looking back, taking away, bringing back, dependencies."""

from __future__ import annotations

from taskyard.clock import elapsed
from taskyard.errors import BadValue, HookRefused, StillOpen
from taskyard.names import check_id
from taskyard.tasklist.list_core import ListCore, checked_ids
from taskyard.tasklist.model import Change, Decision, Facts, Listing, Task
from taskyard.tasklist.rules import check_removal, merged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from taskyard.tasklist.formats.imported import Imported

#: With nothing unfinished only file events matter; this is how long one sleep for them lasts.
_LONG = 3600.0


class Keeping(ListCore):
    """Verbs that need no rule about the life of a task."""

    # -- looking -----------------------------------------------------------------------------

    def get(self, task_id: str) -> Task:
        """One task.

        Raises:
            TaskNotFound: there is none; names near ids, or that it can be restored.
            Damaged: its file cannot be read.
        """
        return self.store.get(check_id(task_id))

    def list(self, *, internal: bool = False) -> Listing:
        """Every task by ascending id; trackers only if asked for. `.damaged` names unreadable files."""
        found = self.store.list()
        if not internal:
            return found.visible
        from taskyard.tasklist import trackers

        return self.store.list() if trackers.settle(self.store, found) else found

    def log(self, task_id: str | None = None, *, since: int = 0) -> tuple[Change, ...]:
        """What happened, oldest first: to one task, or to the whole list from an entry's id on."""
        since = _entry("since", since)
        return tuple(self.store.changes(since, task_id=None if task_id is None else check_id(task_id)))

    def watch(self, *, since: int | None = None, timeout: float | None = None) -> Iterator[Change]:
        """Every change as it happens, by whomever, from now or from an entry's id on.

        Ends after `timeout` seconds without one; never, if not given. While something is unfinished
        it also looks by itself every few seconds, so that a dead holder's task comes back.
        """
        start = self.store.position() if since is None else _entry("since", since)
        return self._watching(start, None if timeout is None else _seconds("timeout", timeout))

    def _watching(self, position: int, timeout: float | None) -> Iterator[Change]:
        deadline = None if timeout is None else elapsed() + timeout
        unfinished = True
        while True:
            for is_told in (True, False):  # what woke us is told before anything else is looked at
                if not is_told:
                    unfinished = any(not task.is_done for task in self.store.list().visible)
                for change in self.store.changes(position):
                    position = change.id + 1
                    yield change
                    deadline = None if timeout is None else elapsed() + timeout
            pause = self.settings.poll_interval if unfinished else _LONG
            if deadline is not None:
                pause = min(pause, deadline - elapsed())
                if pause <= 0:
                    return
            self.store.wait(pause)

    def export(self, format: str = "json") -> str:
        """The list as text: json, markdown, csv, dot or mermaid."""
        from taskyard.tasklist.portable import export

        return export(self.list(), format, list_name=self.name)

    def import_(self, text: str, format: str = "json", *, agent: str | None = None) -> tuple[Task, ...]:
        """Add the tasks of an export (json, markdown, csv) that are not on the list yet; those added.

        Each goes the way of `create`: hooks are asked, its owner is told. `notes` say what had to be left out.

        Raises:
            UsageError: the text cannot be read; says where.
            Cycle: its tasks wait for each other. Nothing was added.
            HookRefused: a hook said no to one; `added` names those before it, which stay.
        """
        from taskyard.tasklist.portable import parse

        return self.add_all(parse(text, format, source=""), agent=agent)

    def add_all(self, imported: Sequence[Imported], *, agent: str | None = None) -> tuple[Task, ...]:
        """As `import_`, of tasks that were read already."""
        from taskyard.tasklist.import_plan import plan_import

        plan = plan_import(imported, self.list(), list_name=self.name)
        ids, parts = plan.known_ids(), plan.late_parts()
        added: dict[str, Task] = {}
        try:
            for item in plan.create:
                task = self._add(plan.draft(item, ids), self._act(agent, "import"))
                ids[item.key] = task.id
                added[task.id] = task._replace(notes=plan.notes(item))
                for part in parts.get(item.key, ()):
                    notes = added[ids[part]].notes
                    added[ids[part]] = self._set_parent(ids[part], task.id, agent)._replace(notes=notes)
        except HookRefused as refusal:
            raise refusal.after(added) from None
        finally:
            if added:
                self.outside.changed()
        return tuple(added.values())

    def _set_parent(self, task_id: str, parent: str, agent: str | None) -> Task:
        def rule(facts: Facts) -> Decision:
            extra = {"taskyard": {**facts.task.extra, "parent": parent}}
            return Decision(facts.task._replace(metadata=merged(facts.task.metadata, extra)), facts.lease)

        return self.store.update(task_id, rule, self._act(agent, "import"))

    def block(self, task_id: str, *, by: str | Iterable[str], agent: str | None = None) -> Task:
        """Let a task wait for others: all of them, or nothing changes.

        Raises:
            Cycle: they would wait for each other; names the path.
        """
        task_id = check_id(task_id)
        self.store.link([(blocker, task_id) for blocker in checked_ids(by)], self._act(agent, "block"))
        self.outside.changed()
        return self.store.get(task_id)

    def unblock(self, task_id: str, *, by: str | Iterable[str], agent: str | None = None) -> Task:
        """Let a task no longer wait for others; `notes` of the answer name those it did not wait for.

        Raises:
            TaskNotFound: there is no such task, and none is waited for under that id.
        """
        task_id = check_id(task_id)
        edges = [(blocker, task_id) for blocker in checked_ids(by)]
        there = self.store.unlink(edges, self._act(agent, "unblock"))
        self.outside.changed()
        idle = [f"#{blocker}" for blocker, blocked in edges if (blocker, blocked) not in there]
        task = self.store.get(task_id)
        if there and not idle:
            return task
        said = f"#{task_id} did not wait for {', '.join(idle) or 'anything'}."
        return task._replace(notes=(said if there else f"Nothing changed: {said}",))

    # -- taking away, and bringing back ------------------------------------------------------

    def delete(
        self, task_id: str, *, agent: str | None = None, note: str = "", force: bool = False, token: str | None = None
    ) -> Task:
        """Take a task off the list and out of everyone's dependencies. `restore` brings it back.

        Raises:
            AlreadyClaimed: somebody else holds it; its holder, the team's lead, or a person by `force` may.
            LeaseLost: the caller's claim is no longer the current one.
        """
        return self.delete_all([task_id], agent=agent, note=note, force=force, token=token)[0]

    def delete_all(
        self,
        task_ids: Iterable[str],
        *,
        agent: str | None = None,
        note: str = "",
        force: bool = False,
        token: str | None = None,
    ) -> tuple[Task, ...]:
        """Delete several tasks: all of them, or none."""
        by, ids = agent or self.agent, checked_ids(task_ids)
        callers = {one: self._caller(one, by, token=token, force=force, may_lead=True) for one in ids}

        def check(facts: Facts) -> None:
            check_removal(facts, callers[facts.task.id])

        return self._remove(ids, "delete", agent, note or ("forced" if force else ""), check=check)

    def archive(self, *task_ids: str, agent: str | None = None, force: bool = False) -> tuple[Task, ...]:
        """Put completed tasks away; without ids, all of them. `restore` brings each back.

        Raises:
            StillOpen: a task that was named is not completed; `force` puts it away all the same.
        """
        note = "forced" if force else ""
        if task_ids:
            return self._remove([check_id(i) for i in task_ids], "archive", agent, note, only_done=not force)
        ids = [task.id for task in self.list() if task.is_done]
        while True:
            try:
                return self._remove(ids, "archive", agent, note, only_done=True)
            except StillOpen as reopened:  # since we looked
                ids = [task_id for task_id in ids if task_id not in reopened.tasks]

    def reset(self, *, agent: str | None = None) -> tuple[Task, ...]:
        """Put the whole list away. Ids go on from where they were; `restore` brings each task back."""
        return self._remove([task.id for task in self.store.list()], "reset", agent, "")

    def restore(self, task_id: str, *, agent: str | None = None) -> Task:
        """Bring back a task that was deleted, archived, reset, or removed by another program."""
        task = self.store.restore(check_id(task_id), self._act(agent, "restore"))
        self.outside.changed()
        return task

    def _remove(
        self,
        ids: Sequence[str],
        cause: str,
        agent: str | None,
        note: str,
        *,
        only_done: bool = False,
        check: Callable[[Facts], None] | None = None,
    ) -> tuple[Task, ...]:
        if not ids:
            return ()
        gone = self.store.remove(ids, self._act(agent, cause, note=note), only_done=only_done, check=check)
        for task_id in ids:
            self._tokens.pop(task_id, None)
        self.outside.changed()
        return gone


def _entry(name: str, value: object) -> int:
    if type(value) is not int or value < 0:
        raise BadValue(name, value, "the id of an entry of the log: a whole number from 0")
    return value


def _seconds(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
        raise BadValue(name, value, "seconds, from 0")
    return value
