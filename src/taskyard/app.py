"""
The composition root: `taskyard.open()` builds everything, once.

Nothing else makes stores, mailboxes or identities; where the list and its surroundings meet
(a new owner gets mail, hooks are asked, watchers are woken) they meet here.
"""

from __future__ import annotations

import os

from taskyard import config, paths
from taskyard.errors import BadValue
from taskyard.tasklist.list_folder import ListFolder
from taskyard.tasklist.service import TaskList

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from taskyard.identity import Identity
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
        self._post: Post | None = None
        outside = Surroundings(self, identity, report)
        self.tasks = TaskList(store, settings=settings, outside=outside, agent=identity.agent, via=via, is_main=is_main)

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
        """The teams on this machine."""
        from taskyard.tasklist.teams import Teams

        return Teams(self.home, settings=self.settings)

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

    def lease(self, agent: str, *, seconds: float | None = None) -> Lease:
        """What this yard would hold a claim under."""
        return self._identity.lease(agent, seconds=seconds)

    def is_guarded(self, event: str) -> bool:
        """Whether any hook listens to `event`; cheap when none is configured."""
        from taskyard.hooks import load

        return load(_project(), report=lambda problem: self._report(str(problem))).any_for(event)

    def ask_hooks(self, event: str, task: Task, agent: str | None) -> None:
        """Run the hooks of `event`; one may refuse."""
        from taskyard.hooks import load, run

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
            book=load(_project()),
            cwd=os.getcwd(),
            timeout=self._yard.settings.hook_timeout,
            report=lambda ended: self._report(ended.text) if ended.text else None,
        )

    def accept(self, spec: Mapping[str, object]) -> Evidence:
        """Run an acceptance command that a person has allowed."""
        from taskyard.acceptance import run_acceptance
        from taskyard.tasklist.outside import Evidence

        found = run_acceptance(dict(spec), default_cwd=_project() or os.getcwd())
        return Evidence(found.command, found.exit_code, found.output, found.seconds, found.at)

    def tell(self, recipient: str, *, sender: str | None, kind: str, text: str, data: Mapping[str, object]) -> None:
        """Send mail about the list; a newly named owner gets a box."""
        mail = self._yard.mail
        mail.open_box(recipient)
        mail.send(sender or "taskyard", recipient, text, type=kind, data=data)

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
    folder = os.path.abspath(str(os.fspath(tasks_dir))) if tasks_dir is not None else paths.tasks_dir()
    listing = paths.list_name(list)
    chosen = _store(store, folder, listing, settings, foreign_writers)
    return Yard(
        chosen,
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
        from taskyard.tasklist.list_files import ListFiles

        if foreign is None:
            foreign = _is_claude(folder)
        return FileStore(ListFiles(ListFolder(folder, name), settings, foreign=foreign, alive=_alive))
    if store == "memory:":
        from taskyard.tasklist.memory_store import MemoryStore

        return MemoryStore(name)
    if isinstance(store, str):
        raise BadValue("store", store, '"files", "memory:" or a store')
    return store


def _alive(lock: str, host: str) -> bool | None:
    from taskyard.tasklist.instances import alive

    return alive(lock, host)


def _is_claude(folder: str) -> bool:
    """Whether Claude Code writes in `folder` too."""
    claude = os.path.realpath(os.path.join(paths.claude_folder(), "tasks"))
    return os.path.realpath(folder) == claude


def _project() -> str | None:
    try:
        return paths.project_root(os.getcwd())[0]
    except FileNotFoundError:
        return None  # the current folder was removed


def _to_stderr(text: str) -> None:
    import sys

    sys.stderr.write(text.rstrip() + "\n")
