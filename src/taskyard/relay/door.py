"""
Jobs, notices and events for a caller, by the setting `store`: over files alone, or shared with other machines.

Nothing of the database is loaded where the store is files, nor before something is asked of it.
"""

from __future__ import annotations

from taskyard.errors import JobNotFound
from taskyard.runtime.notice import PERSON

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from taskyard.config import Settings
    from taskyard.database.pool import Database
    from taskyard.instances import Instance
    from taskyard.relay.far_output import FarOutput
    from taskyard.runtime.events import Events
    from taskyard.runtime.jobs import Jobs
    from taskyard.runtime.notices import Outbox
    from taskyard.runtime.verify import Issued


def is_shared(settings: Settings) -> bool:
    """Whether jobs, notices and events are shared with other machines."""
    if settings.store == "files":
        return False
    from taskyard.database.address import is_address

    return is_address(settings.store)


def database_of(settings: Settings) -> Database:
    """The database that is meant.

    Raises:
        BadValue: no such address can be.
        MissingExtra: the packages for PostgreSQL are not there.
    """
    from taskyard.database.pool import database

    return database(settings.store, patience=settings.database_patience)


def jobs(
    home: str,
    settings: Settings,
    *,
    agent: str | None = None,
    instance: str = "",
    hook_files: Callable[[str], Sequence[str]] | None = None,
    alone: bool = False,
    sharing: Jobs | None = None,
) -> Jobs:
    """The jobs that a caller sees; the arguments are those of `Jobs`."""
    if not is_shared(settings):
        from taskyard.runtime.jobs import Jobs

        return Jobs(
            home,
            agent=agent,
            instance=instance,
            settings=settings,
            hook_files=hook_files,
            alone=alone,
            sharing=sharing,
        )
    from taskyard.relay.host import host_of
    from taskyard.relay.shared_jobs import SharedJobs

    return SharedJobs(
        host_of(home, settings),
        lambda: database_of(settings),
        settings=settings,
        agent=agent,
        instance=instance,
        hook_files=hook_files,
        alone=alone,
        sharing=sharing,
    )


def output(home: str, settings: Settings, job_id: str) -> FarOutput:
    """What a job of another machine printed, where jobs are shared.

    Raises:
        JobNotFound: no machine knows it.
    """
    from taskyard.relay.far_output import FarOutput
    from taskyard.relay.shared_jobs import SharedJobs

    shared = jobs(home, settings)
    assert isinstance(shared, SharedJobs)
    far = shared.find(job_id)
    if far is None:
        raise JobNotFound(job_id)  # it began here this very moment
    return FarOutput(shared.far, far)


def outbox(
    home: str, settings: Settings, recipient: str | None = PERSON, *, instance: Instance | None = None
) -> Outbox:
    """What waits for a receiver; the arguments are those of `Outbox`."""
    if not is_shared(settings):
        from taskyard.runtime.notices import Outbox

        return Outbox(home, recipient, instance=instance)
    from taskyard.relay.host import host_of
    from taskyard.relay.shared_outbox import SharedOutbox

    host, database = host_of(home, settings), database_of(settings)
    return SharedOutbox(host, database, recipient, instance=instance, silence=settings.holder_silence)


def events(
    home: str, settings: Settings, since: int | None = None, *, follow: bool = False, job: str | None = None
) -> Events:
    """The stream of events; the arguments are those of `Events`. What happened here so far is in it."""
    if not is_shared(settings):
        from taskyard.runtime.events import Events

        return Events(home, since, follow=follow, job=job, debounce=settings.debounce)
    from taskyard.relay.forwarding import Forwarding
    from taskyard.relay.host import host_of
    from taskyard.relay.shared_events import SharedEvents

    database = database_of(settings)
    Forwarding(host_of(home, settings), database).push([job] if job is not None else [])
    return SharedEvents(database, since, follow=follow, job=job)


def issued(home: str, settings: Settings, *, agent: str | None = None) -> Issued:
    """The notices that were issued, for whoever checks what looks like one."""
    from taskyard.runtime.verify import IssuedHere

    if not is_shared(settings):
        return IssuedHere(home)
    from taskyard.relay.host import host_of
    from taskyard.relay.issued import IssuedAnywhere

    return IssuedAnywhere(host_of(home, settings), database_of(settings), agent)


def hold(home: str, settings: Settings) -> None:
    """Hand no more notices to agents until `release`, on any machine."""
    from taskyard.runtime import holding

    holding.put_on(home)
    if is_shared(settings):
        sql = "INSERT INTO hold VALUES (true, clock_timestamp()) ON CONFLICT DO NOTHING"
        database_of(settings).ask(sql)


def release(home: str, settings: Settings) -> bool:
    """Let notices go again; False if nothing held them."""
    from taskyard.runtime import holding

    was = holding.release(home)
    if is_shared(settings):
        rows = database_of(settings).ask("DELETE FROM hold RETURNING pg_notify('notices', '')")
        was = was or bool(rows)
    return was
