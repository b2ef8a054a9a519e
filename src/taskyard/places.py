"""Where lists live: the folder of all of them, one list's files, the store over them; and mail and teams with them."""

from __future__ import annotations

import os

from taskyard import config, paths
from taskyard.errors import BadValue
from taskyard.tasklist.list_folder import ListFolder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from taskyard.database.pool import Database
    from taskyard.instances import Instance
    from taskyard.lists.protocol import Lists
    from taskyard.tasklist.list_files import ListFiles
    from taskyard.tasklist.mail import Mail
    from taskyard.tasklist.model import Lease
    from taskyard.tasklist.store import TaskStore
    from taskyard.tasklist.team_book import TeamBook
    from taskyard.tasklist.teams import Teams


def store_of(
    store: TaskStore | str, folder: str, name: str, settings: config.Settings, foreign: bool | None
) -> TaskStore:
    """The store of a list: a given one, or one of a name.

    Raises:
        BadValue: there is no such store.
        MissingExtra: it is a database, and the packages for that are not there.
    """
    if store == "files":
        from taskyard.tasklist.file_store import FileStore

        return FileStore(files_of(folder, name, settings, foreign))
    if store == "memory:":
        from taskyard.tasklist.memory_store import MemoryStore

        return MemoryStore(name, lease_losses=settings.lease_losses)
    if isinstance(store, str):
        return _in_database(store, name, settings)
    return store


def _in_database(address: str, name: str, settings: config.Settings) -> TaskStore:
    from taskyard.database.address import is_address

    if not is_address(address):
        # It may be an address after all, with a password in it: not to be shown.
        raise BadValue("store", "this name", '"files", "memory:" or "postgresql://…"')
    from taskyard.database.pool import database
    from taskyard.heart import heart
    from taskyard.instances import is_own
    from taskyard.tasklist.postgres.store import PostgresStore

    where = database(address, patience=settings.database_patience)

    def believe(lease: Lease) -> None:
        if is_own(lease.lock):  # a job's is kept by its own machine's relay
            heart(where).keep(lease.instance, silence=settings.holder_silence)

    return PostgresStore(where, name, settings, alive=_alive, believe=believe)


def mail_of(settings: config.Settings, home: str, team: str, *, instance: Instance | None = None) -> Mail:
    """The mail of a team, where the store is; `instance`: who takes it."""
    if settings.store != "files" and (found := _database(settings)) is not None:
        from taskyard.tasklist.postgres.post import PostgresPost

        return PostgresPost(found, home, team, instance=instance, silence=settings.holder_silence)
    from taskyard.tasklist.mailbox import Post

    return Post(home, team, instance=instance)


def teams_of(
    settings: config.Settings,
    home: str,
    *,
    give_back: Callable[[str, str], tuple[str, ...]] | None = None,
    me: Instance | None = None,
) -> Teams:
    """All teams, where the store is; see `Teams`."""
    from taskyard.tasklist.teams import Teams

    book: TeamBook | None = None
    if settings.store != "files" and (found := _database(settings)) is not None:
        from taskyard.tasklist.postgres.teams import TeamRows

        book = TeamRows(found, silence=settings.holder_silence)
    return Teams(home, settings=settings, give_back=give_back, me=me, book=book)


def list_heard(settings: config.Settings, name: str, wake: Callable[[], object]) -> AbstractContextManager[object]:
    """Have `wake` called, by another thread, when a list may have changed whose changes show in no folder.

    Raises:
        StoreAway: the database cannot be asked where that is told.
    """
    if settings.store != "files" and (found := _database(settings)) is not None:
        [(number,)] = found.ask("SELECT list_named(%s)", [name])
        return found.ear.sound(f"list_{number}").rings(wake)
    from contextlib import nullcontext

    return nullcontext()


def _database(settings: config.Settings) -> Database | None:
    """The database that is set up as the store, if one is."""
    from taskyard.database.address import is_address

    if not is_address(settings.store):
        return None
    from taskyard.database.pool import database

    return database(settings.store, patience=settings.database_patience)


def chosen_store(store: TaskStore | str | None, *, has_folder: bool, settings: config.Settings) -> TaskStore | str:
    """Which store is meant: a given one, files where a folder was named for them, else what is set up."""
    if store is not None:
        return store
    return "files" if has_folder else settings.store


def lists_of(store: TaskStore | str, folder: str, settings: config.Settings) -> Lists:
    """All lists of the place where a store keeps its own.

    Raises:
        BadValue, MissingExtra: as `store_of`.
    """
    if store == "files":
        from taskyard.lists.in_folder import ListsInFolder

        return ListsInFolder(folder)
    if not isinstance(store, str) or store == "memory:":
        from taskyard.lists.on_its_own import ListOnItsOwn

        return ListOnItsOwn(store_of(store, folder, "memory", settings, None))
    from taskyard.lists.in_database import ListsInDatabase

    return ListsInDatabase(store, settings)


def lists_here(tasks_dir: str | os.PathLike[str] | None = None) -> Lists:
    """All lists that `open` would find, for those who only look: files where a folder is named, else what is set up."""
    settings = config.load()
    chosen = chosen_store(None, has_folder=tasks_dir is not None, settings=settings)
    return lists_of(chosen, folder_of(tasks_dir), settings)


def folder_for_others(tasks_dir: str | os.PathLike[str] | None, settings: config.Settings) -> str | None:
    """The folder of lists that another process is to be told of; None: it finds the lists by its settings."""
    if tasks_dir is None and settings.store != "files":
        return None
    return os.path.abspath(folder_of(tasks_dir))


def job_store(store: TaskStore | str | None, settings: config.Settings) -> str:
    """Where jobs, notices and events are told of: where this machine's are, unless a database is named for the list."""
    return store if isinstance(store, str) and store not in ("files", "memory:") else settings.store


def files_of(folder: str, name: str, settings: config.Settings, foreign: bool | None = None) -> ListFiles:
    """A list's files, with other programs' locks taken where those write; see `open`."""
    from taskyard.tasklist.list_files import ListFiles

    is_shared = _is_claude(folder) if foreign is None else foreign
    return ListFiles(ListFolder(folder, name), settings, foreign=is_shared, alive=_alive)


def folder_of(tasks_dir: str | os.PathLike[str] | None) -> str:
    """The folder of lists, as `open` understands it."""
    return os.path.abspath(str(os.fspath(tasks_dir))) if tasks_dir is not None else paths.tasks_dir()


def _alive(lease: Lease) -> bool | None:
    global _ask
    if _ask is None:
        from taskyard.instances import alive

        _ask = alive
    return _ask(lease.lock, lease.host, lease.place)


#: The kernel's word on a holder, once somebody asks: many a list has no holders.
_ask: Callable[[str, str, str], bool | None] | None = None


def _is_claude(folder: str) -> bool:
    """Whether Claude Code writes in `folder` too."""
    claude = os.path.realpath(os.path.join(paths.claude_folder(), "tasks"))
    return os.path.realpath(folder) == claude
