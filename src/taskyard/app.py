"""
The composition root: `taskyard.open()` builds everything, once.

Nothing else makes stores, mailboxes or identities; where the list and its surroundings meet
(a new owner gets mail, hooks are asked, watchers are woken) they meet here.
"""

from __future__ import annotations

import os

from taskyard import config, paths
from taskyard.places import chosen_store, folder_of, job_store, lists_of, mail_of, store_of, teams_of
from taskyard.surroundings import Surroundings, hook_files
from taskyard.tasklist.service import TaskList

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from taskyard.identity import Identity
    from taskyard.lists.protocol import Lists
    from taskyard.runtime.events import Events
    from taskyard.runtime.jobs import Jobs
    from taskyard.runtime.notices import Outbox
    from taskyard.tasklist.mail import Mail
    from taskyard.tasklist.store import TaskStore
    from taskyard.tasklist.teams import Teams


class Yard:
    """One list and what belongs to it: tasks, mail, teams."""

    def __init__(
        self,
        store: TaskStore,
        *,
        beside: Callable[[str], TaskStore],
        settings: config.Settings,
        home: str,
        identity: Identity,
        via: str,
        is_main: bool | None,
        report: Callable[[str], None],
        lists: Callable[[], Lists],
        sharing: Yard | None = None,
        tasks_dir: str | None = None,
        jobs_in: str | None = None,
        cwd: str | None = None,
    ) -> None:
        self.tasks_dir = tasks_dir  #: the folder with this list and others; None: it does not live in files
        self.settings = settings
        self._job_settings = settings if jobs_in is None else settings._replace(store=jobs_in)
        self.home = home
        self._identity = identity
        self._store = store
        self._beside = beside
        self._via = via
        self._is_main = is_main
        self._report = report
        self._is_guest = False
        self._post: Mail | None = None
        self._jobs: Jobs | None = None
        self._find_lists = lists
        self._lists: Lists | None = None
        self._sharing = sharing
        self._cwd = cwd
        self._outside = Surroundings(self, identity, report, is_main=is_main, cwd=cwd)
        self.tasks = TaskList(store, settings=settings, outside=self._outside, agent=identity.agent, via=via)
        store.listen(self._outside.set_aside)

    @property
    def agent(self) -> str | None:
        """The name this yard acts under: as given, or with a number if another living instance has it."""
        return self._identity.agent

    @property
    def lists(self) -> Lists:
        """All lists of the same place: their names, and what is on them."""
        if self._lists is None:
            self._lists = self._find_lists()
        return self._lists

    @property
    def mail(self) -> Mail:
        """The mailboxes of this list's team."""
        if self._post is None:
            self._post = mail_of(self.settings, self.home, self.tasks.name)
        return self._post

    @property
    def jobs(self) -> Jobs:
        """Background jobs: started under this yard's name, and steered from any process."""
        if self._jobs is None:
            from taskyard.relay import door

            living = self._identity.living
            instance = living.id if living is not None else ""
            self._jobs = door.jobs(
                self.home,
                self._job_settings,
                agent=self.agent,
                instance=instance,
                hook_files=hook_files,
                sharing=self._sharing.jobs if self._sharing is not None else None,
            )
        return self._jobs

    def notices(self, agent: str | None = None) -> Outbox:
        """What background jobs have to tell an agent: each once, also after a crash."""
        from taskyard.relay import door
        from taskyard.runtime.notice import PERSON

        return door.outbox(self.home, self._job_settings, agent or self.agent or PERSON, instance=self._identity.living)

    def events(self, since: int | None = None, *, follow: bool = False, job: str | None = None) -> Events:
        """What happens to background jobs: from the oldest event that is kept, or what came after the id `since`.

        Raises:
            EventsGone: some events after `since` are no longer kept.
            JobNotFound: there is no such job.
        """
        from taskyard.relay import door

        return door.events(self.home, self._job_settings, since, follow=follow, job=job)

    @property
    def teams(self) -> Teams:
        """All teams. Whoever leaves one, or whose team is removed, gives back its unfinished tasks."""
        return teams_of(self.settings, self.home, give_back=self._give_back, me=self._identity.living)

    def _give_back(self, team: str, member: str) -> tuple[str, ...]:
        """Put what a member that left had unfinished on the team's list back into the pool; the ids."""
        name = paths.list_name(team)
        if name == self.tasks.name:
            return tuple(task.id for task in self.tasks.release_all(member))
        store = self._beside(name)
        if store is self._store:
            return ()  # a store of the caller's own: it is this list and no other
        try:
            tasks = TaskList(store, settings=self.settings, agent=self.agent, via=self._via)
            return tuple(task.id for task in tasks.release_all(member))
        finally:
            store.close()

    def beside(self, list: str) -> Yard:
        """The same for another list of the same place: who acts, and how, stays.

        Raises:
            UsageError: no list can have such a name.
        """
        name = paths.list_name(list)
        other = Yard(
            self._beside(name),
            beside=self._beside,
            settings=self.settings,
            home=self.home,
            identity=self._identity,
            via=self._via,
            is_main=self._is_main,
            report=self._report,
            lists=lambda: self.lists,
            sharing=self,
            tasks_dir=self.tasks_dir,
            jobs_in=self._job_settings.store,
            cwd=self._cwd,
        )
        other._is_guest = True
        return other

    def work_in(self, folder: str) -> None:
        """Run hooks and acceptance commands in the checkout around `folder` from now on, as `open(cwd=…)` does."""
        self._cwd = os.path.abspath(folder)
        self._outside.work_in(self._cwd)

    def unless(self, cancel: threading.Event) -> Yard:
        """The same yard for one call whose caller may give up; see `TaskList.unless`."""
        import copy

        seen = copy.copy(self)
        seen._post = self.mail
        seen.tasks = self.tasks.unless(cancel)
        return seen

    def close(self) -> None:
        """Let go of open files. Claims last as long as the process; `tasks.release` ends them sooner."""
        self._store.close()
        if self._jobs is not None:
            self._jobs.close()
        if not self._is_guest:
            self._identity.leave()

    def __enter__(self) -> Yard:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open(
    *,
    tasks_dir: str | os.PathLike[str] | None = None,
    list: str | None = None,
    agent: str | None = None,
    store: TaskStore | str | None = None,
    foreign_writers: bool | None = None,
    via: str = "api",
    is_person: bool = False,
    is_main: bool | None = None,
    lease: float | None = None,
    sharing: Yard | None = None,
    report: Callable[[str], None] | None = None,
    cwd: str | os.PathLike[str] | None = None,
) -> Yard:
    """Open a task list.

    Args:
        tasks_dir: The folder of lists; if not given, and no other store is set up, Claude Code's.
        list: Which list; see `taskyard.paths.list_name` for what decides otherwise.
        agent: The name to act under; if not given, the in-process teammate's around this code, else `TASKYARD_AGENT`.
        store: Where the list lives: a store, "files", "memory:", or "postgresql://…" for several machines; if not
            given, files where `tasks_dir` is, else the setting `store`.
        foreign_writers: Whether other programs write here too, so that their locks must be taken;
            if not given: yes in Claude Code's folder, no elsewhere.
        via: The door changes come through, for the event log.
        is_person: Claims go by name and have no end, as those of a command line.
        is_main: Whether this is the main agent, who hears about verification; if not given: whoever
            names no agent, and the lead of the list's team, but nobody inside a job.
        lease: For whoever is not this process, such as a client behind a socket: claims last so many seconds unless
            renewed, and outlive this process; another yard of the same name is somebody else until this is closed.
        sharing: Another yard of this program: the server that starts its jobs starts those of this one too.
        report: Gets what people should know and no call returns, such as a failing hook's stderr.
        cwd: The folder the agent works in: hooks and acceptance commands run in the checkout around it. If not
            given, the current folder of this process.

    Raises:
        UsageError: a name or setting cannot be.
    """
    from taskyard.identity import Identity

    settings, home, folder = config.load(), paths.home(), folder_of(tasks_dir)
    jobs_in = job_store(store, settings)
    chosen = chosen_store(store, has_folder=tasks_dir is not None, settings=settings)
    if isinstance(chosen, str):
        settings = settings._replace(store=chosen)  # mail, teams and names are where the list is

    def of_list(name: str) -> TaskStore:
        return store_of(chosen, folder, name, settings, foreign_writers)

    own = of_list(paths.list_name(list))
    return Yard(
        own,
        beside=of_list,
        settings=settings,
        home=home,
        identity=Identity(home, _acting(agent), settings=settings, is_person=is_person, lease=lease),
        via=via,
        is_main=is_main,
        report=report if report is not None else _to_stderr,
        lists=lambda: lists_of(own if chosen == "memory:" else chosen, folder, settings),
        sharing=sharing,
        tasks_dir=folder if chosen == "files" else None,
        jobs_in=jobs_in,
        cwd=None if cwd is None else os.path.abspath(os.fspath(cwd)),
    )


def _acting(agent: str | None) -> str | None:
    """The name to act under: as given, else this code's own, if it has one.

    Raises:
        BadName: it cannot be a name.
    """
    from taskyard.identity import own_name
    from taskyard.names import check_name

    name = agent if agent is not None else own_name()
    return None if name is None else check_name("an agent", name)


def for_teammate(
    store: TaskStore,
    *,
    home: str,
    settings: config.Settings,
    report: Callable[[str], None],
    cwd: str | None = None,
) -> Yard:
    """The yard of the in-process teammate this code acts for, on a store that others of this program share.

    It is not closed: the store is whoever's made it, and the teammate's instance leaves by itself.
    """
    from taskyard.identity import Identity

    return Yard(
        store,
        beside=lambda _: store,
        settings=settings,
        home=home,
        identity=Identity(home, None, settings=settings),
        via="api",
        is_main=None,
        report=report,
        lists=lambda: lists_of(store, "", settings),
        cwd=cwd,
    )


def _to_stderr(text: str) -> None:
    import sys

    sys.stderr.write(text.rstrip() + "\n")
