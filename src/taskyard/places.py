"""Where lists live: the folder of all of them, one list's files, the store over them."""

from __future__ import annotations

import os

from taskyard import config, paths
from taskyard.errors import BadValue
from taskyard.tasklist.list_folder import ListFolder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.tasklist.list_files import ListFiles
    from taskyard.tasklist.model import Lease
    from taskyard.tasklist.store import TaskStore


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


def chosen_store(store: TaskStore | str | None, *, has_folder: bool, settings: config.Settings) -> TaskStore | str:
    """Which store is meant: a given one, files where a folder was named for them, else what is set up."""
    if store is not None:
        return store
    return "files" if has_folder else settings.store


def with_store(settings: config.Settings, store: TaskStore | str | None) -> config.Settings:
    """Settings for whoever opens a list: in a database that is named for it, jobs, notices and events are, too."""
    if not isinstance(store, str) or store in ("files", "memory:"):
        return settings
    return settings._replace(store=store)


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
