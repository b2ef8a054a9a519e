"""What every verb of the list shares: who acts, under which claim, and who is told."""

from __future__ import annotations

from taskyard.clock import iso, now_ms
from taskyard.config import Settings
from taskyard.errors import UsageError
from taskyard.names import check_id, check_name
from taskyard.tasklist import rules
from taskyard.tasklist.model import Act, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TypedDict

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
        acceptance: str | Mapping[str, object]


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
        is_main: bool = True,
    ) -> None:
        self.store = store
        self.settings = settings if settings is not None else Settings()
        self.outside: Outside = outside if outside is not None else _nobody()
        self.agent = agent
        self._via = via
        self._is_main = is_main
        self._tokens: dict[str, str] = {}

    @property
    def name(self) -> str:
        """The list's name."""
        return self.store.name

    def _act(self, agent: str | None, cause: str, *, force: bool = False, note: str = "") -> Act:
        return Act(agent or self.agent, cause, self._via, "forced" if force else note)

    def _somebody(self, agent: str | None) -> str:
        name = agent or self.agent
        if not name:
            raise UsageError("Who claims it? Give an agent's name (`agent=`, `--by`, or TASKYARD_AGENT).")
        return check_name("an agent", name)

    def _caller(
        self,
        task_id: str | None,
        agent: str | None,
        *,
        token: str | None = None,
        force: bool = False,
        seconds: float | None = None,
    ) -> rules.Caller:
        if token is None and task_id is not None and agent in (None, self.agent):
            token = self._tokens.get(task_id)
        lease = self.outside.lease(check_name("an agent", agent), seconds=seconds) if agent else None
        return rules.Caller(agent, token, lease, force)

    def _claimed(self, task: Task, notes: tuple[str, ...] = ()) -> Task:
        if task.lease is not None:
            self._tokens[task.id] = task.lease.token
        self.outside.changed()
        return task._replace(notes=notes) if notes else task

    def _metadata(
        self, metadata: Mapping[str, object] | None, extras: Extras, known: Mapping[str, object]
    ) -> dict[str, object]:
        from taskyard.tasklist.extras import check_extras
        from taskyard.tasklist.task_file import check_metadata

        found = check_metadata(dict(metadata)) if metadata else {}
        if given := check_extras(**extras):
            ours = found.get("taskyard")
            found["taskyard"] = {**known, **(ours if isinstance(ours, dict) else {}), **given}
        return found

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


def _nobody() -> Outside:
    from taskyard.tasklist.outside import Nobody

    return Nobody()


def checked_ids(ids: str | Iterable[str]) -> tuple[str, ...]:
    """One id or several, each checked, none twice."""
    given = [ids] if isinstance(ids, str) else ids
    return tuple(dict.fromkeys(check_id(task_id) for task_id in given))
