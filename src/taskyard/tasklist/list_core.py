"""What every verb of the list shares: who acts, under which claim, and who is told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from taskyard.clock import iso, now_ms
from taskyard.config import Settings
from taskyard.errors import BadValue, Cancelled, UsageError
from taskyard.names import check_id, check_name
from taskyard.shapes import as_object
from taskyard.tasklist import rules
from taskyard.tasklist.model import Act, Draft, Task, TaskStatus
from taskyard.typed import cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from typing import Self, TypedDict

    from taskyard.tasklist.model import Lease
    from taskyard.tasklist.outside import Outside
    from taskyard.tasklist.store import TaskStore

    class Extras(TypedDict, total=False):
        """Optional fields, kept under `metadata.taskyard`."""

        priority: int
        labels: Iterable[str]
        due: str
        parent: str
        external: Mapping[str, str]
        requires: Iterable[str]
        paths: Iterable[str]
        acceptance: Mapping[str, object]


#: What hooks are asked about a task that comes in as done.
_BOTH = ("TaskCreated", "TaskCompleted")

#: A year, in seconds: a claim meant to last longer should have no end.
LONGEST_LEASE = 31_536_000


class ListCore:
    """A store, the outside, and the agent on whose behalf things happen."""

    def __init__(
        self,
        store: TaskStore,
        *,
        settings: Settings | None = None,
        outside: Outside | None = None,
        agent: str | None = None,
        via: str = "api",
    ) -> None:
        self.store = store
        self.settings = settings if settings is not None else Settings()
        self.outside: Outside = outside if outside is not None else _nobody()
        self.agent = agent
        self._via = via
        self.cancel: threading.Event | None = None
        self._tokens: dict[str, tuple[str, str]] = {}  # by task: who claimed, under which token

    @property
    def name(self) -> str:
        """The list's name."""
        return self.store.name

    def unless(self, cancel: threading.Event) -> Self:
        """The same list for one who may give up: once `cancel` is set, hooks and checks end and nothing is saved."""
        import copy

        seen = copy.copy(self)
        seen.cancel = cancel
        return seen

    def refuse_cancelled(self) -> None:
        """Save nothing for somebody who has given up."""
        if self.cancel is not None and self.cancel.is_set():
            raise Cancelled("The change")

    def _act(self, agent: str | None, cause: str, *, force: bool = False, note: str = "") -> Act:
        return Act(agent or self.agent, cause, self._via, "forced" if force else note)

    def _somebody(self, agent: str | None) -> str:
        name = agent or self.agent
        if not name:
            raise UsageError("Who claims it? Give an agent's name (`agent=`, `--by`, or TASKYARD_AGENT).")
        return name

    def _caller(
        self,
        task_id: str | None,
        agent: str | None,
        *,
        token: str | None = None,
        force: bool = False,
        seconds: float | None = None,
        claims: bool = False,
        may_lead: bool = False,
    ) -> rules.Caller:
        """Who asks: with the token of the claim they believe to hold, and a lease to claim under."""
        if agent is not None and agent is not self.agent:
            check_name("an agent", agent)
        if token is None and task_id in self._tokens:
            holder, remembered = self._tokens[task_id]
            token = remembered if agent in (None, holder) else None
        if seconds is not None:
            seconds = _check_seconds(seconds)
        if not agent:
            return rules.Caller(None, token, None, now_ms(), force)
        lease = self.outside.lease(agent, seconds=seconds) if claims else None
        instance = lease.instance if lease is not None else self.outside.instance(agent)
        leads = may_lead and self.outside.leads(agent)
        return rules.Caller(agent, token, lease, now_ms(), force, instance, leads)

    def _remember(self, task: Task) -> None:
        """Keep the token of a claim: later writes of its holder are fenced by it."""
        if task.lease is not None:
            self._tokens[task.id] = (task.lease.owner, task.lease.token)

    def _claimed(self, task: Task, notes: tuple[str, ...] = ()) -> Task:
        self._remember(task)
        self.outside.changed()
        return task._replace(notes=notes) if notes else task

    def _metadata(self, metadata: Mapping[str, object] | None, extras: Extras) -> dict[str, object]:
        found = checked_metadata(metadata, is_new=True)
        if extras:
            from taskyard.tasklist.extras import check_named

            if given := check_named(cast("Mapping[str, object]", extras)):
                found["taskyard"] = {**(as_object(found.get("taskyard")) or {}), **given}
        return found

    def _clearing(self, fields: str | Iterable[str], given: Extras) -> Self:
        """The same list through a store whose updates also take `fields` away; those just `given` stay."""
        if not fields:
            return self
        import copy

        from taskyard.tasklist.clearing import Clearing
        from taskyard.tasklist.extras import check_clear

        seen = copy.copy(self)
        gone = [name for name in check_clear(fields) if name not in given]
        seen.store = cast("TaskStore", Clearing(self.store, gone))  # the rest of a store by __getattr__
        return seen

    def _add(self, draft: Draft, act: Act, lease: Lease | None = None) -> Task:
        """Put a draft on the list if the hooks agree, and tell its owner; one that is done already tells nobody.

        Raises:
            HookRefused: one of them said no; the id is spent.
        """
        task_id = None
        if any(self.outside.is_guarded(event) for event in _events(draft)):
            task_id = self.store.reserve()
            self._ask_hooks(Task(task_id, *draft), act)
        self.refuse_cancelled()
        task = self.store.create(draft, act, task_id=task_id, lease=lease)
        if not task.is_done:
            self._tell_owner(task, None, act.by)
        return task

    def _ask_hooks(self, task: Task, act: Act) -> None:
        """Ask the hooks about a task that comes in."""
        for event in _events(task):
            if self.outside.is_guarded(event):
                self.outside.ask_hooks(event, task, act.by, cancel=self.cancel)

    def _tell_owner(self, task: Task, before: str | None, by: str | None) -> None:
        if task.owner is None or task.owner in (before, by):
            return  # nobody gets mail about their own act
        data = {
            "taskId": task.id,
            "subject": task.subject,
            "description": task.description,
            "assignedBy": by or "",
            "timestamp": iso(now_ms()),
        }
        self.outside.tell(task.owner, sender=by, kind="task_assignment", text="", data=data)


def _events(task: Task | Draft) -> tuple[str, ...]:
    return _BOTH if task.status is TaskStatus.COMPLETED else _BOTH[:1]


def _nobody() -> Outside:
    from taskyard.tasklist.outside import Nobody

    return Nobody()


def checked_metadata(metadata: Mapping[str, object] | None, *, is_new: bool = False) -> dict[str, object]:
    """A copy of `metadata` that can be stored; of none, an empty one. What is ours in it is checked like fields are.

    A None for `taskyard` takes all of ours away; a new task has nothing to take away.
    """
    given: object = dict(metadata) if isinstance(metadata, Mapping) else metadata
    if given is None:
        return {}
    from taskyard.tasklist.task_file import check_metadata

    found = check_metadata(given)
    if found.get("taskyard") is not None:
        from taskyard.tasklist.extras import check_ours

        found["taskyard"] = check_ours(found["taskyard"], is_new=is_new)
    elif is_new:
        found.pop("taskyard", None)
    return found


def _check_seconds(seconds: object) -> float:
    if isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and 0 < seconds <= LONGEST_LEASE:
        return float(seconds)
    raise BadValue("lease", seconds, f"seconds, above 0 and at most {LONGEST_LEASE:,}")


def checked_ids(ids: str | Iterable[str]) -> tuple[str, ...]:
    """One id or several, each checked, none twice."""
    if not ids:
        return ()
    return tuple(dict.fromkeys(check_id(task_id) for task_id in several("The ids", ids)))


def several(field: str, given: str | Iterable[str]) -> Iterable[str]:
    """One text, or each of several; callers without a type checker may give anything."""
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadValue(field, given, "one text or several")
    return given
