"""
What the list needs of the world around it: hooks, acceptance commands, mail, teams, identity.

`app` builds one for each yard. Nothing here is called while a lock is held.
"""

from __future__ import annotations

import os

from taskyard import paths
from taskyard.errors import Damaged, TaskyardError, TeamNotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping
    from typing import Protocol

    from taskyard.config import Settings
    from taskyard.hooks.book import HookBook
    from taskyard.hooks.watch import HookWatch
    from taskyard.identity import Identity
    from taskyard.tasklist.mail import Mail
    from taskyard.tasklist.model import Lease, Task
    from taskyard.tasklist.outside import Evidence
    from taskyard.tasklist.service import TaskList
    from taskyard.tasklist.team_record import Team
    from taskyard.tasklist.teams import Teams

    class _Yard(Protocol):
        """What of a yard is used here."""

        settings: Settings
        tasks: TaskList

        @property
        def mail(self) -> Mail: ...

        @property
        def teams(self) -> Teams: ...


class Surroundings:
    """The outside of one yard's list."""

    def __init__(
        self,
        yard: _Yard,
        identity: Identity,
        report: Callable[[str], None],
        *,
        is_main: bool | None = None,
        cwd: str | None = None,
    ) -> None:
        """Make the surroundings of `yard`.

        Args:
            yard: The list and what belongs to it.
            identity: The agent that acts here.
            report: Called with text for people.
            is_main: Whether the main agent acts here; if not given, the list's team decides.
            cwd: The folder the agent works in: hooks and acceptance commands run in its checkout. If not given,
                the current folder of this process.
        """
        self._yard = yard
        self._identity = identity
        self._report = report
        self._is_main = is_main
        self._cwd = cwd
        self._hooks: HookWatch | None = None

    def work_in(self, cwd: str) -> None:
        """Run hooks and acceptance commands in the checkout around `cwd` from now on."""
        self._cwd = cwd
        self._hooks = None

    def lease(self, agent: str, *, seconds: float | None = None) -> Lease:
        """What this yard would hold a claim under."""
        return self._identity.lease(agent, seconds=seconds)

    def instance(self, agent: str) -> str:
        """Which instance acts when `agent` does here."""
        return self._identity.instance(agent)

    def is_main(self, agent: str | None) -> bool:
        """Whether `agent` is a main agent: not inside a job, and no member of the list's team but its lead."""
        if self._is_main is not None:
            return self._is_main
        if self._identity.is_job:
            return False
        team = self._team() if agent is not None else None
        if team is None or agent is None:
            return True
        return team.member(agent) is None or self.leads(agent)

    def leads(self, agent: str | None) -> bool:
        """Whether `agent` is the lead of the list's team."""
        team = self._team() if agent is not None else None
        if team is None or agent is None:
            return False
        member = team.member(agent)
        return team.lead == (member.name if member is not None else agent)

    def _team(self) -> Team | None:
        """The team whose list this is, if there is one."""
        try:
            return self._yard.teams.get(self._yard.tasks.name)
        except (TeamNotFound, Damaged):
            return None

    def is_guarded(self, event: str) -> bool:
        """Whether any hook listens to `event`; cheap when none is configured."""
        return self._book().any_for(event)

    def _book(self) -> HookBook:
        if self._hooks is None:
            from taskyard.hooks.watch import hooks_of

            self._hooks = hooks_of(paths.project(self._cwd).root if self._cwd is not None else project_here())
        return self._hooks.book(lambda problem: self._report(problem.text))

    def ask_hooks(self, event: str, task: Task, agent: str | None, *, cancel: threading.Event | None = None) -> None:
        """Run the hooks of `event`; one may refuse."""
        from taskyard.hooks import run

        payload: dict[str, object] = {
            "task_id": task.id,
            "task_subject": task.subject,
            "task_description": task.description,
        }
        team = self._team() if agent else None
        if agent and team is not None and team.member(agent) is not None:
            payload |= {"teammate_name": agent, "team_name": team.name}
        run(
            event,
            payload,
            book=self._book(),
            cwd=self._cwd or os.getcwd(),
            timeout=self._yard.settings.hook_timeout,
            report=lambda ended: self._report(ended.text) if ended.text else None,
            cancel=cancel,
        )

    def accept(self, spec: Mapping[str, object], *, cancel: threading.Event | None = None) -> Evidence:
        """Run an acceptance command that a person has allowed."""
        from taskyard.acceptance import run_acceptance
        from taskyard.tasklist.outside import Evidence

        found = run_acceptance(dict(spec), folder=self._cwd or os.getcwd(), cancel=cancel)
        return Evidence(found.command, found.exit_code, found.output, found.seconds, found.at)

    def tell(self, recipient: str, *, sender: str | None, kind: str, text: str, data: Mapping[str, object]) -> None:
        """Send mail about the list; a newly named owner gets a box.

        What it tells of has happened: mail that cannot be sent is reported, and undoes nothing.
        """
        try:
            self._yard.mail.inform(sender or "taskyard", recipient, text, type=kind, data=data)
        except TaskyardError as error:
            self._report(f"No mail to {recipient!r} about task #{data.get('taskId')}: {error}")

    def set_aside(self, task: Task) -> None:
        """Tell the lead of the list's team, or the person, that a task lost its holders too often."""
        from shlex import quote

        team = self._team()
        where = f"--list {quote(self._yard.tasks.name)}"
        text = (
            f"Task #{task.id} was set aside: it lost {self._yard.settings.lease_losses} holders in a row."
            f" Look into it, then claim it or `taskyard task assign {task.id} AGENT {where}`."
        )
        data = {"taskId": task.id, "subject": task.subject}
        self.tell((team.lead if team is not None else None) or "me", sender=None, kind="message", text=text, data=data)

    def changed(self) -> None:
        """Wake whoever watches this list in this process."""
        self._yard.tasks.store.signal()


def project_here() -> str | None:
    """The project of the folder this process works in."""
    try:
        return paths.project(os.getcwd()).root
    except FileNotFoundError:
        return None  # the current folder was removed


def hook_files(folder: str) -> list[str]:
    """The files that may name hooks for what happens in `folder`."""
    from taskyard.hooks.book import places

    return places(paths.project(folder).root)
