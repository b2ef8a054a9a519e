"""The composition root: `taskyard.open()` builds the task list, jobs, mail and teams of one caller.

No other package creates stores, mailboxes or identities. The factory functions choose files or PostgreSQL by
the setting `store`; with files, no database driver is imported. `YardSideEffects` is what a change of a task
causes (hooks, acceptance commands, mail to a new owner, wake-ups); it is never called while a lock is held.
"""

from __future__ import annotations

import os

from taskyard import config
from taskyard.core.values import PERSON
from taskyard.errors import BadValue, Damaged, JobNotFound, TaskyardError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import Protocol

    from taskyard.agents.identity import Identity
    from taskyard.agents.mail import Mail
    from taskyard.agents.teams import Team, Teams, TeamStore
    from taskyard.config import Settings
    from taskyard.integrations.hooks import HookCache, HookSet
    from taskyard.jobs.events import Events
    from taskyard.jobs.jobs import Jobs
    from taskyard.jobs.notice_check import IssuedNotices
    from taskyard.jobs.notices import Outbox
    from taskyard.postgres.connection import Database
    from taskyard.postgres.relay.jobs import RemoteHostOutput
    from taskyard.storage.process_registry import Instance
    from taskyard.tasks.file_store import ListFiles
    from taskyard.tasks.lists import Lists
    from taskyard.tasks.model import Lease, Task
    from taskyard.tasks.side_effects import Evidence
    from taskyard.tasks.store import TaskStore
    from taskyard.tasks.task_list import TaskList


def open_store(
    store: TaskStore | str, folder: str, name: str, settings: config.Settings, foreign: bool | None
) -> TaskStore:
    """Return the store of a list: the given one, or one by name.

    Raises:
        BadValue: there is no such store.
        MissingExtra: it is a database, and its packages are not installed.
    """
    if store == "files":
        from taskyard.tasks.file_store import FileStore

        return FileStore(open_list_files(folder, name, settings, foreign))
    if store == "memory:":
        from taskyard.tasks.memory_store import MemoryStore

        return MemoryStore(name, lease_losses=settings.lease_losses)
    if isinstance(store, str):
        return _postgres_store(store, name, settings)
    return store


def _postgres_store(address: str, name: str, settings: config.Settings) -> TaskStore:
    from taskyard.config import is_database_url, parse_database_url

    if not is_database_url(address):
        # It may be an address with a password: do not show it.
        raise BadValue("store", "this name", '"files", "memory:" or "postgresql://…"')
    parse_database_url(address)  # refuses a bad one, and says which extra is missing, before the driver is imported
    from taskyard.postgres.connection import database
    from taskyard.postgres.heartbeat import process_heartbeat
    from taskyard.postgres.task_store import PostgresStore
    from taskyard.storage.process_registry import is_own_lock

    where = database(address, patience=settings.database_patience)

    def keep_alive(lease: Lease) -> None:
        if is_own_lock(lease.lock):  # the lease of a job is renewed by its own host's relay
            process_heartbeat(where).keep(lease.instance, silence=settings.holder_silence)

    return PostgresStore(where, name, settings, alive=_is_alive, keep_alive=keep_alive)


def open_mail(settings: config.Settings, home: str, team: str, *, instance: Instance | None = None) -> Mail:
    """Return the mail of a team in the configured store; `instance` takes it."""
    if settings.store != "files" and (found := _database_or_none(settings)) is not None:
        from taskyard.postgres.mail import PostgresMail

        return PostgresMail(found, home, team, instance=instance, silence=settings.holder_silence)
    from taskyard.agents.mailbox import FileMail

    return FileMail(home, team, instance=instance)


def open_teams(
    settings: config.Settings,
    home: str,
    *,
    give_back: Callable[[str, str], tuple[str, ...]] | None = None,
    me: Instance | None = None,
) -> Teams:
    """Return all teams in the configured store; see `Teams`."""
    from taskyard.agents.teams import Teams

    book: TeamStore | None = None
    if settings.store != "files" and (found := _database_or_none(settings)) is not None:
        from taskyard.postgres.mail import PostgresTeamStore

        book = PostgresTeamStore(found, silence=settings.holder_silence)
    return Teams(home, settings=settings, give_back=give_back, me=me, book=book)


def subscribe_list(settings: config.Settings, name: str, wake: Callable[[], object]) -> AbstractContextManager[object]:
    """Call `wake`, from another thread, when a list in a database may have changed.

    Raises:
        StoreAway: the database is unavailable, so the channel is unknown.
    """
    if settings.store != "files" and (found := _database_or_none(settings)) is not None:
        [(number,)] = found.ask("SELECT list_named(%s)", [name])
        return found.listener.subscription(f"list_{number}").callback(wake)
    from contextlib import nullcontext

    return nullcontext()


def _database_or_none(settings: config.Settings) -> Database | None:
    """Return the database configured as the store, if any."""
    from taskyard.config import is_database_url

    if not is_database_url(settings.store):
        return None
    from taskyard.postgres.connection import database

    return database(settings.store, patience=settings.database_patience)


def choose_store(store: TaskStore | str | None, *, has_folder: bool, settings: config.Settings) -> TaskStore | str:
    """Return the store to use: the given one, files if a folder was given, else the setting."""
    if store is not None:
        return store
    return "files" if has_folder else settings.store


def register(settings: Settings, home: str, agent: str | None) -> Instance:
    """Register this process as alive until it leaves or exits, under an agent's name; without a name if None."""
    from taskyard.postgres import heartbeat

    return heartbeat.register_unnamed(home, settings) if agent is None else heartbeat.register(home, agent, settings)


def open_lists(store: TaskStore | str, folder: str, settings: config.Settings) -> Lists:
    """Return all lists in the same place as a store.

    Raises:
        BadValue, MissingExtra: as `open_store`.
    """
    if store == "files":
        from taskyard.tasks.lists import ListsInFolder

        return ListsInFolder(folder)
    if not isinstance(store, str) or store == "memory:":
        from taskyard.tasks.lists import SingleList

        return SingleList(open_store(store, folder, "memory", settings, None))
    from taskyard.postgres.lists import PostgresLists

    return PostgresLists(store, settings)


def default_lists(tasks_dir: str | os.PathLike[str] | None = None) -> Lists:
    """Return all lists that `open` would find, for reading: files if a folder is given, else the setting."""
    settings = config.load_settings()
    chosen = choose_store(None, has_folder=tasks_dir is not None, settings=settings)
    return open_lists(chosen, config.resolve_tasks_dir(tasks_dir), settings)


def job_store(store: TaskStore | str | None, settings: config.Settings) -> str:
    """Return the store of jobs, notices and events: the setting, unless a database is given for the list."""
    return store if isinstance(store, str) and store not in ("files", "memory:") else settings.store


def open_list_files(folder: str, name: str, settings: config.Settings, foreign: bool | None = None) -> ListFiles:
    """Return a list's files, taking other programs' locks where those write too; see `open`."""
    from taskyard.tasks.file_store import ListFiles
    from taskyard.tasks.list_folder import ListFolder

    is_shared = _is_claude(folder) if foreign is None else foreign
    return ListFiles(ListFolder(folder, name), settings, foreign=is_shared, alive=_is_alive)


def _is_alive(lease: Lease) -> bool | None:
    global _alive_check
    if _alive_check is None:
        from taskyard.storage.process_registry import is_holder_alive

        _alive_check = is_holder_alive
    return _alive_check(lease.lock, lease.host, lease.place)


#: `process_registry.is_holder_alive`, imported at first use: many lists have no holders.
_alive_check: Callable[[str, str, str], bool | None] | None = None


def _is_claude(folder: str) -> bool:
    """Return whether Claude Code writes in `folder` too."""
    claude = os.path.realpath(os.path.join(config.claude_folder(), "tasks"))
    return os.path.realpath(folder) == claude


def is_replicated(settings: Settings) -> bool:
    """Return whether jobs, notices and events are shared with other hosts."""
    if settings.store == "files":
        return False
    from taskyard.config import is_database_url

    return is_database_url(settings.store)


def open_database(settings: Settings) -> Database:
    """Return the configured database.

    Raises:
        BadValue: the address is invalid.
        MissingExtra: the packages for PostgreSQL are not installed.
    """
    from taskyard.postgres.connection import database

    return database(settings.store, patience=settings.database_patience)


def open_jobs(
    home: str,
    settings: Settings,
    *,
    agent: str | None = None,
    instance: str = "",
    hook_files: Callable[[str], Sequence[str]] | None = None,
    alone: bool = False,
    sharing: Jobs | None = None,
) -> Jobs:
    """Return the jobs a caller sees; the arguments are those of `Jobs`."""
    if not is_replicated(settings):
        from taskyard.jobs.jobs import Jobs

        return Jobs(
            home,
            agent=agent,
            instance=instance,
            settings=settings,
            hook_files=hook_files,
            alone=alone,
            sharing=sharing,
        )
    from taskyard.postgres.relay.jobs import ReplicatedJobs
    from taskyard.postgres.relay.records import ensure_host

    return ReplicatedJobs(
        ensure_host(home, settings),
        lambda: open_database(settings),
        settings=settings,
        agent=agent,
        instance=instance,
        hook_files=hook_files,
        alone=alone,
        sharing=sharing,
    )


def open_remote_output(home: str, settings: Settings, job_id: str) -> RemoteHostOutput:
    """Return the output of a job on another host, where jobs are shared.

    Raises:
        JobNotFound: no host knows it.
    """
    from taskyard.postgres.relay.jobs import RemoteHostOutput, ReplicatedJobs

    shared = open_jobs(home, settings)
    assert isinstance(shared, ReplicatedJobs)
    far = shared.find(job_id)
    if far is None:
        raise JobNotFound(job_id)  # it started here at this moment
    return RemoteHostOutput(shared.far, far)


def open_outbox(
    home: str, settings: Settings, recipient: str | None = PERSON, *, instance: Instance | None = None
) -> Outbox:
    """Return the notices waiting for a recipient; the arguments are those of `Outbox`."""
    if not is_replicated(settings):
        from taskyard.jobs.notices import Outbox

        return Outbox(home, recipient, instance=instance)
    from taskyard.postgres.relay.notices import ReplicatedOutbox
    from taskyard.postgres.relay.records import ensure_host

    host, database = ensure_host(home, settings), open_database(settings)
    return ReplicatedOutbox(host, database, recipient, instance=instance, silence=settings.holder_silence)


def open_events(
    home: str, settings: Settings, since: int | None = None, *, follow: bool = False, job: str | None = None
) -> Events:
    """Return the event stream, including all events here so far; the arguments are those of `Events`."""
    if not is_replicated(settings):
        from taskyard.jobs.events import Events

        return Events(home, since, follow=follow, job=job, debounce=settings.debounce)
    from taskyard.postgres.relay.notices import ReplicatedEvents
    from taskyard.postgres.relay.records import ensure_host
    from taskyard.postgres.relay.uploader import Uploader

    database = open_database(settings)
    Uploader(ensure_host(home, settings), database).push([job] if job is not None else [])
    return ReplicatedEvents(database, since, follow=follow, job=job)


def open_issued(home: str, settings: Settings, *, agent: str | None = None) -> IssuedNotices:
    """Return the issued notices, for verification."""
    from taskyard.jobs.notice_check import LocalNotices

    if not is_replicated(settings):
        return LocalNotices(home)
    from taskyard.postgres.relay.notices import ReplicatedNotices
    from taskyard.postgres.relay.records import ensure_host

    return ReplicatedNotices(ensure_host(home, settings), open_database(settings), agent)


def pause_delivery(home: str, settings: Settings) -> None:
    """Pause delivery of notices to agents until `resume_delivery`, on every host."""
    from taskyard.jobs import notices

    notices.pause_delivery(home)
    if is_replicated(settings):
        sql = "INSERT INTO hold VALUES (true, clock_timestamp()) ON CONFLICT DO NOTHING"
        open_database(settings).ask(sql)


def resume_delivery(home: str, settings: Settings) -> bool:
    """Resume delivery of notices; False if it was not paused."""
    from taskyard.jobs import notices

    was = notices.resume_delivery(home)
    if is_replicated(settings):
        rows = open_database(settings).ask("DELETE FROM hold RETURNING pg_notify('notices', '')")
        was = was or bool(rows)
    return was


if TYPE_CHECKING:

    class _Yard(Protocol):
        """The part of a yard used here."""

        settings: Settings
        tasks: TaskList

        @property
        def mail(self) -> Mail: ...

        @property
        def teams(self) -> Teams: ...


class YardSideEffects:
    """The side effects of one yard's list."""

    def __init__(
        self,
        yard: _Yard,
        identity: Identity,
        report: Callable[[str], None],
        *,
        is_main: bool | None = None,
        cwd: str | None = None,
    ) -> None:
        """Create the side effects of `yard`.

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
        self._hooks: HookCache | None = None

    def work_in(self, cwd: str) -> None:
        """Run hooks and acceptance commands in the checkout around `cwd` from now on."""
        self._cwd = cwd
        self._hooks = None

    def lease(self, agent: str, *, seconds: float | None = None) -> Lease:
        """Return the lease for a claim made through this yard."""
        return self._identity.lease(agent, seconds=seconds)

    def instance(self, agent: str) -> str:
        """Return the instance that acts when `agent` does here."""
        return self._identity.instance(agent)

    def is_main(self, agent: str | None) -> bool:
        """Return whether `agent` is a main agent: outside a job, and the team's lead or not a member."""
        if self._is_main is not None:
            return self._is_main
        if self._identity.is_job:
            return False
        team = self._team() if agent is not None else None
        if team is None or agent is None:
            return True
        return team.member(agent) is None or self.leads(agent)

    def leads(self, agent: str | None) -> bool:
        """Return whether `agent` is the lead of the list's team."""
        team = self._team() if agent is not None else None
        if team is None or agent is None:
            return False
        member = team.member(agent)
        return team.lead == (member.name if member is not None else agent)

    def _team(self) -> Team | None:
        """Return the team of this list, if there is one."""
        try:
            return self._yard.teams.find(self._yard.tasks.name)
        except Damaged:
            return None

    def is_guarded(self, event: str) -> bool:
        """Return whether `event` has a hook; cheap when none is configured."""
        return self._book().any_for(event)

    def _book(self) -> HookSet:
        if self._hooks is None:
            from taskyard.integrations.hooks import hook_cache

            self._hooks = hook_cache(
                config.project(self._cwd).root if self._cwd is not None else current_project_root()
            )
        return self._hooks.book(lambda problem: self._report(problem.text))

    def ask_hooks(self, event: str, task: Task, agent: str | None, *, cancel: threading.Event | None = None) -> None:
        """Run the hooks of `event`; one may refuse."""
        from taskyard.integrations.hooks import run_event

        payload: dict[str, object] = {
            "task_id": task.id,
            "task_subject": task.subject,
            "task_description": task.description,
        }
        team = self._team() if agent else None
        if agent and team is not None and team.member(agent) is not None:
            payload |= {"teammate_name": agent, "team_name": team.name}
        run_event(
            event,
            payload,
            book=self._book(),
            cwd=self._cwd or os.getcwd(),
            timeout=self._yard.settings.hook_timeout,
            report=lambda ended: self._report(ended.text) if ended.text else None,
            cancel=cancel,
        )

    def accept(self, spec: Mapping[str, object], *, cancel: threading.Event | None = None) -> Evidence:
        """Run an acceptance command that the user has allowed."""
        from taskyard.integrations.acceptance import run_acceptance
        from taskyard.tasks.side_effects import Evidence

        found = run_acceptance(dict(spec), folder=self._cwd or os.getcwd(), cancel=cancel)
        return Evidence(found.command, found.exit_code, found.output, found.seconds, found.at)

    def tell(self, recipient: str, *, sender: str | None, kind: str, text: str, data: Mapping[str, object]) -> None:
        """Send mail about the list; a new owner gets a mailbox.

        The change has already happened: mail that cannot be sent is reported, and undoes nothing.
        """
        try:
            self._yard.mail.inform(sender or "taskyard", recipient, text, type=kind, data=data)
        except TaskyardError as error:
            self._report(f"No mail to {recipient!r} about task #{data.get('taskId')}: {error}")

    def quarantine(self, task: Task) -> None:
        """Notify the lead of the list's team, or the user, that a task lost its holders too often."""
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
        """Wake all watchers of this list in this process."""
        self._yard.tasks.store.signal()


def current_project_root() -> str | None:
    """Return the project root of the current folder."""
    try:
        return config.project(os.getcwd()).root
    except FileNotFoundError:
        return None  # the current folder was removed


def hook_files(folder: str) -> list[str]:
    """Return the files that may define hooks for events in `folder`."""
    from taskyard.integrations.hooks import settings_paths

    return settings_paths(config.project(folder).root)


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
        self.tasks_dir = tasks_dir  #: the folder with this list and others; None: it is not stored in files
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
        self._open_lists = lists
        self._lists: Lists | None = None
        self._sharing = sharing
        self._cwd = cwd
        self._outside = YardSideEffects(self, identity, report, is_main=is_main, cwd=cwd)
        from taskyard.tasks.task_list import TaskList

        self.tasks = TaskList(store, settings=settings, outside=self._outside, agent=identity.agent, via=via)
        store.listen(self._outside.quarantine)

    @property
    def agent(self) -> str | None:
        """The name this yard acts under: as given, or with a number if another live instance has it."""
        return self._identity.agent

    @property
    def lists(self) -> Lists:
        """All lists in the same place: their names and tasks."""
        if self._lists is None:
            self._lists = self._open_lists()
        return self._lists

    @property
    def mail(self) -> Mail:
        """The mailboxes of this list's team."""
        if self._post is None:
            self._post = open_mail(self.settings, self.home, self.tasks.name)
        return self._post

    @property
    def jobs(self) -> Jobs:
        """Background jobs: started under this yard's name, and controlled from any process."""
        if self._jobs is None:
            living = self._identity.living
            instance = living.id if living is not None else ""
            self._jobs = open_jobs(
                self.home,
                self._job_settings,
                agent=self.agent,
                instance=instance,
                hook_files=hook_files,
                sharing=self._sharing.jobs if self._sharing is not None else None,
            )
        return self._jobs

    def notices(self, agent: str | None = None) -> Outbox:
        """Return the job notices of an agent: each delivered once, also after a crash."""
        from taskyard.core.values import PERSON

        return open_outbox(self.home, self._job_settings, agent or self.agent or PERSON, instance=self._identity.living)

    def events(self, since: int | None = None, *, follow: bool = False, job: str | None = None) -> Events:
        """Return the events of background jobs: from the oldest one kept, or those after the id `since`.

        Raises:
            EventsGone: some events after `since` were deleted.
            JobNotFound: there is no such job.
        """
        return open_events(self.home, self._job_settings, since, follow=follow, job=job)

    @property
    def teams(self) -> Teams:
        """All teams. The unfinished tasks of a member that leaves, or whose team is removed, are requeued."""
        return open_teams(self.settings, self.home, give_back=self._give_back, me=self._identity.living)

    def list_changes(self, wake: Callable[[], object]) -> AbstractContextManager[object]:
        """Call `wake`, from another thread, when the list may have changed; only for lists in a database."""
        return subscribe_list(self.settings, self.tasks.name, wake)

    def _give_back(self, team: str, member: str) -> tuple[str, ...]:
        """Requeue the unfinished tasks of a former member on the team's list; return their ids."""
        name = config.list_name(team)
        if name == self.tasks.name:
            return tuple(task.id for task in self.tasks.release_all(member))
        store = self._beside(name)
        if store is self._store:
            return ()  # the caller's own store contains only this list
        try:
            from taskyard.tasks.task_list import TaskList

            tasks = TaskList(store, settings=self.settings, agent=self.agent, via=self._via)
            return tuple(task.id for task in tasks.release_all(member))
        finally:
            store.close()

    def beside(self, list: str) -> Yard:
        """Return a yard for another list in the same place, with the same identity and options.

        Raises:
            UsageError: no list can have such a name.
        """
        name = config.list_name(list)
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
        """Return this yard for one call that `cancel` may interrupt; see `TaskList.unless`."""
        import copy

        seen = copy.copy(self)
        seen._post = self.mail
        seen.tasks = self.tasks.unless(cancel)
        return seen

    def close(self) -> None:
        """Close open files. Claims last as long as the process; `tasks.release` ends them sooner."""
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
        tasks_dir: The folder of lists; if not given, and no other store is configured, Claude Code's.
        list: The name of the list; for the default see `taskyard.config.list_name`.
        agent: The name to act under; if not given, that of the in-process teammate running this code, else
            `TASKYARD_AGENT`.
        store: Where the list is stored: a store, "files", "memory:", or "postgresql://…" for several hosts; if
            not given, files if `tasks_dir` is given, else the setting `store`.
        foreign_writers: Whether other programs write here too, so that their locks must be taken; if not given:
            yes in Claude Code's folder, no elsewhere.
        via: The interface changes come through, for the event log.
        is_person: Claims are by name and do not expire, as those of a command line.
        is_main: Whether this is the main agent, which is notified about verification; if not given: a caller
            that names no agent, and the lead of the list's team, but never inside a job.
        lease: Seconds that claims last unless renewed, for a client other than this process, such as one behind
            a socket; they outlive this process. Another yard of the same name is a different holder until this
            one is closed.
        sharing: Another yard of this program, whose job server also starts the jobs of this one.
        report: Called with text for people that no call returns, such as a failing hook's stderr.
        cwd: The folder the agent works in: hooks and acceptance commands run in the checkout around it. If not
            given, the current folder of this process.

    Raises:
        UsageError: a name or setting is invalid.
    """
    from taskyard.agents.identity import Identity

    settings, home, folder = config.load_settings(), config.home(), config.resolve_tasks_dir(tasks_dir)
    jobs_in = job_store(store, settings)
    chosen = choose_store(store, has_folder=tasks_dir is not None, settings=settings)
    if isinstance(chosen, str):
        settings = settings._replace(store=chosen)  # mail, teams and names are stored with the list

    def of_list(name: str) -> TaskStore:
        return open_store(chosen, folder, name, settings, foreign_writers)

    own = of_list(config.list_name(list))
    return Yard(
        own,
        beside=of_list,
        settings=settings,
        home=home,
        identity=Identity(
            home, _acting_name(agent), register=register, settings=settings, is_person=is_person, lease=lease
        ),
        via=via,
        is_main=is_main,
        report=report if report is not None else _to_stderr,
        lists=lambda: open_lists(own if chosen == "memory:" else chosen, folder, settings),
        sharing=sharing,
        tasks_dir=folder if chosen == "files" else None,
        jobs_in=jobs_in,
        cwd=None if cwd is None else os.path.abspath(os.fspath(cwd)),
    )


def _acting_name(agent: str | None) -> str | None:
    """Return the name to act under: as given, else that of the running teammate, if any.

    Raises:
        BadName: it cannot be a name.
    """
    from taskyard.agents.identity import default_agent
    from taskyard.core.values import check_name

    name = agent if agent is not None else default_agent()
    return None if name is None else check_name("an agent", name)


def open_teammate_yard(
    store: TaskStore,
    *,
    home: str,
    settings: config.Settings,
    report: Callable[[str], None],
    cwd: str | None = None,
) -> Yard:
    """Return the yard of the in-process teammate running this code, on a store shared within this program.

    It is not closed: the store belongs to its creator, and the teammate's instance leaves by itself.
    """
    from taskyard.agents.identity import Identity

    return Yard(
        store,
        beside=lambda _: store,
        settings=settings,
        home=home,
        identity=Identity(home, None, register=register, settings=settings),
        via="api",
        is_main=None,
        report=report,
        lists=lambda: open_lists(store, "", settings),
        cwd=cwd,
    )


def _to_stderr(text: str) -> None:
    import sys

    sys.stderr.write(text.rstrip() + "\n")
