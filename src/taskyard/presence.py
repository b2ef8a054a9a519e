"""
Who is alive wherever the store is shared: on this machine by the kernel's word, on any by a heartbeat.

With a database as the store, a name that somebody living has is taken on every machine: a second living "writer" is
"writer-2" wherever it is. The name is free again when its instance leaves, or is no longer believed to live. In files
there is nothing to it (`instances`).
"""

from __future__ import annotations

from taskyard import instances
from taskyard.living_names import free_name, new_id, wanted_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskyard.config import Settings
    from taskyard.database.pool import Database
    from taskyard.instances import Instance


def enter(home: str, agent: str | None, settings: Settings) -> Instance:
    """Be alive as `agent` (else `$TASKYARD_AGENT`, else "me") until `leave` or death; see `instances.enter`.

    Raises:
        BadName: `agent` cannot be a name.
        Busy: the instances folder stayed locked.
        StoreAway: the database cannot be asked who lives.
    """
    if settings.store == "files":
        return instances.enter(home, agent)
    return _shared(home, wanted_name(agent), settings)


def enter_unnamed(home: str, settings: Settings) -> Instance:
    """Be alive without a name: for a process that acts on an agent's behalf."""
    if settings.store == "files":
        return instances.enter_unnamed(home)
    return _shared(home, "", settings)


def _shared(home: str, agent: str, settings: Settings) -> Instance:
    from taskyard.database.address import is_address

    if not is_address(settings.store):
        return instances.enter(home, agent) if agent else instances.enter_unnamed(home)
    from taskyard.database.pool import database
    from taskyard.heart import heart

    where, instance = database(settings.store, patience=settings.database_patience), new_id()
    beating = heart(where)
    beating.keep(instance, silence=settings.holder_silence)
    name = _taken_name(where, agent, instance, (record.name for record in instances.living(home))) if agent else ""
    return instances.enter_as(home, agent, name, instance, farewell=lambda: beating.let_go(instance))


def _taken_name(where: Database, agent: str, instance: str, here: Iterable[str]) -> str:
    """A name that from now on is `instance`'s: `agent`, or with the lowest number that nobody living has."""
    from taskyard.names import folder_name

    local = list(here)
    while True:
        rows = where.ask(
            "SELECT l.name FROM living l JOIN instance i ON i.id = l.instance WHERE i.until >= clock_timestamp()"
        )
        name = free_name(agent, [*local, *(row[0] for row in rows)])
        if where.ask("SELECT take_name(%s, %s, %s)", [folder_name("an agent", name), name, instance])[0][0]:
            return name
