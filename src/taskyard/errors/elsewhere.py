"""What goes wrong between here and somewhere else: a database, a place that runs agents."""

from __future__ import annotations

from taskyard.errors.general import StorageError, TaskyardError, clipped, shown
from taskyard.errors.missing import NotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class StoreAway(TaskyardError):
    """The database that the list lives in cannot be reached now. Nothing of the request was saved, or all of it."""

    code = "disconnected"
    exit_code = 75

    def __init__(self, where: str, why: str, *, seconds: float = 0.0) -> None:
        """`where`: without a password. `seconds`: how long it was tried."""
        tried = f" for {seconds:.0f} s" if seconds >= 1 else ""
        super().__init__(
            f"The database {clipped(where, 120)} cannot be reached{tried}: {clipped(why, 300)}.",
            "Try again when it is back; `taskyard db status` tells.",
        )
        self.where = clipped(where, 120)
        self.why = clipped(why, 300)
        self.retryable = True


class Repeated(StorageError):
    """The database has already what it is to have once: the request arrived before, and its answer was lost.

    No caller of ours meets it: whoever sent the request looks up what came of it.
    """


class SchemaMismatch(TaskyardError):
    """The database holds tables of another version of Taskyard. Nothing was changed."""

    code = "schema_mismatch"

    def __init__(self, where: str, *, found: int, known: int) -> None:
        if found > known:
            text = f"{clipped(where, 120)} has schema {found}; this Taskyard knows {known}"
            advice = "It is older than the one that upgraded the database: install that version or a newer one."
        else:
            what = f"has schema {found}, and this Taskyard needs {known}" if found else "has no tables of Taskyard yet"
            text, advice = f"{clipped(where, 120)} {what}", "`taskyard db upgrade` makes it fit."
        super().__init__(f"The database {text}.", advice)
        self.where = clipped(where, 120)
        self.found = found
        self.known = known


class RemoteNotFound(NotFound):
    """No place of this name is configured for agents to run at."""

    code = "remote_not_found"

    def __init__(self, remote: str, *, nearest: Sequence[str] = ()) -> None:
        hint = f"Nearest: {', '.join(nearest)}." if nearest else "Name one in config.toml: see `taskyard remote check`."
        super().__init__(f"No remote {shown(remote)}.", hint)
        self.remote = clipped(remote)
        self.nearest = tuple(nearest)


class RemoteAway(TaskyardError):
    """A place that runs agents cannot be reached now."""

    code = "remote_away"
    exit_code = 75

    def __init__(self, remote: str, why: str) -> None:
        super().__init__(f"{clipped(remote)} cannot be reached: {clipped(why, 300)}.")
        self.remote = clipped(remote)
        self.why = clipped(why, 300)
        self.retryable = True


class RemoteRefused(TaskyardError):
    """A place that runs agents was reached, and will not do what it was asked for."""

    code = "remote_refused"

    def __init__(self, remote: str, why: str, advice: str = "") -> None:
        super().__init__(f"{clipped(remote)} will not: {clipped(why, 300)}.", advice)
        self.remote = clipped(remote)
        self.why = clipped(why, 300)


class HostAway(TaskyardError):
    """The machine that a job runs on says nothing: it is off, cut off, or nothing of Taskyard runs there now."""

    code = "host_away"
    exit_code = 75

    def __init__(self, host: str, job_id: str, *, seconds: float, is_withdrawn: bool = True) -> None:
        """`seconds`: since something was heard of it. `is_withdrawn`: it will not do later what was asked for."""
        done = "Nothing was done." if is_withdrawn else "It may still do what was asked for."
        super().__init__(
            f"Job {job_id} is on {shown(host)}, of which nothing was heard for {seconds:.0f} s. {done}",
            "`taskyard relay` over there answers, if the machine and its way to the database are up.",
        )
        self.host = clipped(host)
        self.job_id = job_id
        self.seconds = round(seconds)
        self.retryable = is_withdrawn


class OutcomeUnknown(TaskyardError):
    """Another machine took up a request and did not come to its end: whether it was carried out cannot be said."""

    code = "outcome_unknown"

    def __init__(self, host: str, job_id: str, verb: str) -> None:
        super().__init__(
            f"{shown(host)} began to {verb} job {job_id} and was cut off: whether it was done is not known.",
            f"See for yourself before you ask again: `taskyard logs {job_id}`.",
        )
        self.host = clipped(host)
        self.job_id = job_id
        self.verb = verb
