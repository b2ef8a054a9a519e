"""
The composition root: `taskyard.open()` builds everything, once.

Nothing else makes stores, mailboxes or identities; where the list and its surroundings meet
(a new owner gets mail, hooks are asked, watchers are woken) they meet here.
"""

from __future__ import annotations

import os

from taskyard import config, paths
from taskyard.errors import BadValue, Damaged, TaskyardError
from taskyard.tasklist.list_folder import ListFolder
from taskyard.tasklist.service import TaskList

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from taskyard.hooks.book import HookBook
    from taskyard.hooks.watch import HookWatch
    from taskyard.identity import Identity
    from taskyard.tasklist.list_files import ListFiles
    from taskyard.tasklist.mailbox import Post
    from taskyard.tasklist.model import Lease, Task
    from taskyard.tasklist.outside import Evidence
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
        is_main: bool,
        report: Callable[[str], None],
    ) -> None:
        self.settings = settings
        self.home = home
        self._identity = identity
        self._store = store
        self._beside = beside
        self._via = via
        self._post: Post | None = None
        outside = Surroundings(self, identity, report)
        self.tasks = TaskList(store, settings=settings, outside=outside, agent=identity.agent, via=via, is_main=is_main)
        store.listen(outside.set_aside)

    @property
    def agent(self) -> str | None:
        """The name this yard acts under: as given, or with a number if another living instance has it."""
        return self._identity.agent

    @property
    def mail(self) -> Post:
        """The mailboxes of this list's team."""
        if self._post is None:
            from taskyard.tasklist.mailbox import Post

            self._post = Post(self.home, self.tasks.name)
        return self._post

    @property
    def teams(self) -> Teams:
        """The teams on this machine. Whoever leaves one, or whose team is removed, gives back its unfinished tasks."""
        from taskyard.tasklist.teams import Teams

        return Teams(self.home, settings=self.settings, give_back=self._give_back, me=self._identity.living)

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

    def close(self) -> None:
        """Let go of open files. Claims last as long as the process; `tasks.release` ends them sooner."""
        self._store.close()

    def __enter__(self) -> Yard:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Surroundings:
    """The outside of a list: hooks, acceptance commands, mail, identity."""

    def __init__(self, yard: Yard, identity: Identity, report: Callable[[str], None]) -> None:
        self._yard = yard
        self._identity = identity
        self._report = report
        self._hooks: HookWatch | None = None

    def lease(self, agent: str, *, seconds: float | None = None) -> Lease:
        """What this yard would hold a claim under."""
        return self._identity.lease(agent, seconds=seconds)

    def is_guarded(self, event: str) -> bool:
        """Whether any hook listens to `event`; cheap when none is configured."""
        return self._book().any_for(event)

    def _book(self) -> HookBook:
        if self._hooks is None:
            from taskyard.hooks.watch import HookWatch

            self._hooks = HookWatch(project_here(), report=lambda problem: self._report(problem.text))
        return self._hooks.book()

    def ask_hooks(self, event: str, task: Task, agent: str | None) -> None:
        """Run the hooks of `event`; one may refuse."""
        from taskyard.hooks import run

        payload: dict[str, object] = {
            "task_id": task.id,
            "task_subject": task.subject,
            "task_description": task.description,
        }
        if agent:
            payload |= {"teammate_name": agent, "team_name": self._yard.tasks.name}
        run(
            event,
            payload,
            book=self._book(),
            cwd=os.getcwd(),
            timeout=self._yard.settings.hook_timeout,
            report=lambda ended: self._report(ended.text) if ended.text else None,
        )

    def accept(self, spec: Mapping[str, object]) -> Evidence:
        """Run an acceptance command that a person has allowed."""
        from taskyard.acceptance import run_acceptance
        from taskyard.tasklist.outside import Evidence

        found = run_acceptance(dict(spec), default_cwd=project_here() or os.getcwd())
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
        from taskyard.errors import TeamNotFound

        try:
            lead = self._yard.teams.get(self._yard.tasks.name).lead
        except (TeamNotFound, Damaged):
            lead = None
        text = (
            f"Task #{task.id} was set aside: it lost {self._yard.settings.lease_losses} holders in a row."
            f" Look into it, then claim it or `taskyard task assign {task.id} AGENT`."
        )
        data = {"taskId": task.id, "subject": task.subject}
        self.tell(lead or "me", sender=None, kind="message", text=text, data=data)

    def changed(self) -> None:
        """Wake whoever watches this list in this process."""
        self._yard.tasks.store.signal()


def open(
    *,
    tasks_dir: str | os.PathLike[str] | None = None,
    list: str | None = None,
    agent: str | None = None,
    store: TaskStore | str | None = None,
    foreign_writers: bool | None = None,
    via: str = "api",
    is_person: bool = False,
    is_main: bool = True,
    report: Callable[[str], None] | None = None,
) -> Yard:
    """Open a task list.

    Args:
        tasks_dir: The folder of lists; Claude Code's if not given.
        list: Which list; see `taskyard.paths.list_name` for what decides otherwise.
        agent: The name to act under; `TASKYARD_AGENT` if not given.
        store: Where the list lives: a store, or "memory:"; files if not given.
        foreign_writers: Whether other programs write here too, so that their locks must be taken;
            if not given: yes in Claude Code's folder, no elsewhere.
        via: The door changes come through, for the event log.
        is_person: Claims go by name and have no end, as those of a command line.
        is_main: Whether this is the main agent, who hears about verification.
        report: Gets what people should know and no call returns, such as a failing hook's stderr.

    Raises:
        UsageError: a name or setting cannot be.
    """
    from taskyard.identity import Identity
    from taskyard.names import check_name

    settings = config.load()
    home = paths.home()
    name = agent if agent is not None else os.environ.get("TASKYARD_AGENT")
    if name is not None:
        check_name("an agent", name)
    folder = folder_of(tasks_dir)

    def of_list(name: str) -> TaskStore:
        return _store(store, folder, name, settings, foreign_writers)

    return Yard(
        of_list(paths.list_name(list)),
        beside=of_list,
        settings=settings,
        home=home,
        identity=Identity(home, name, is_person=is_person),
        via=via,
        is_main=is_main,
        report=report if report is not None else _to_stderr,
    )


def _store(
    store: TaskStore | str | None, folder: str, name: str, settings: config.Settings, foreign: bool | None
) -> TaskStore:
    if store is None or store == "files":
        from taskyard.tasklist.file_store import FileStore

        return FileStore(files_of(folder, name, settings, foreign))
    if store == "memory:":
        from taskyard.tasklist.memory_store import MemoryStore

        return MemoryStore(name, lease_losses=settings.lease_losses)
    if isinstance(store, str):
        raise BadValue("store", store, '"files", "memory:" or a store')
    return store


def files_of(folder: str, name: str, settings: config.Settings, foreign: bool | None = None) -> ListFiles:
    """A list's files, with other programs' locks taken where those write; see `open`."""
    from taskyard.tasklist.list_files import ListFiles

    is_shared = _is_claude(folder) if foreign is None else foreign
    return ListFiles(ListFolder(folder, name), settings, foreign=is_shared, alive=_alive)


def folder_of(tasks_dir: str | os.PathLike[str] | None) -> str:
    """The folder of lists, as `open` understands it."""
    return os.path.abspath(str(os.fspath(tasks_dir))) if tasks_dir is not None else paths.tasks_dir()


def _alive(lock: str, host: str) -> bool | None:
    global _ask
    if _ask is None:
        from taskyard.tasklist.instances import alive

        _ask = alive
    return _ask(lock, host)


#: The kernel's word on a holder, once somebody asks: many a list has no holders.
_ask: Callable[[str, str], bool | None] | None = None


def _is_claude(folder: str) -> bool:
    """Whether Claude Code writes in `folder` too."""
    claude = os.path.realpath(os.path.join(paths.claude_folder(), "tasks"))
    return os.path.realpath(folder) == claude


def project_here() -> str | None:
    """The project of the folder this process works in."""
    try:
        return paths.project_root(os.getcwd())[0]
    except FileNotFoundError:
        return None  # the current folder was removed


def _to_stderr(text: str) -> None:
    import sys

    sys.stderr.write(text.rstrip() + "\n")
