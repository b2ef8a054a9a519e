"""
Every error Taskyard raises on purpose.

* TaskyardError             exit 1
  x UsageError              exit 2   malformed: fails however often it is repeated
    + BadName, BadId, BadJobId, BadText, BadValue, BadWorkflow, BadPlan, MissingExtra
  x NotFound                exit 4
    + TaskNotFound, RecipientNotFound, TeamNotFound, ListNotFound, JobNotFound, KindNotFound,
      EngineNotFound, RemoteNotFound, OutputGone, EventsGone, NothingFree
  x Conflict                exit 5   well formed, wrong moment: look again
    + AlreadyClaimed, AlreadyResolved, StillOpen, Blocked, AgentBusy, BadTransition, Cycle,
      LeaseLost, HookRefused, AcceptanceFailed, Untrusted, PathsOverlap, AlreadyExists,
      NothingToRestore, ListNotEmpty, TeamHasLivingMembers, JobEnded, JobNotBegun, NoInput, BackgroundDisabled,
      TooDeep, TooManyCallers, DreamHeld
  x Busy                    exit 75  somebody holds the lock: try again
  x Damaged                 exit 1   a file cannot be read as what it should be
  x BadConfig               exit 1   another program's configuration cannot be changed safely
  x NotGenuine              exit 1   what looks like a notice is none of ours
  x StorageError            exit 1   the disk said no
  x CannotListen            exit 1   an address is taken, or not ours
  x MemberNotStarted        exit 1   a member of a team did not come
  x StoreAway               exit 75  the database cannot be reached now: try again
  x SchemaMismatch          exit 1   the database is of another version
  x HostAway                exit 75  the machine that a job runs on says nothing
  x OutcomeUnknown          exit 1   another machine began something, and nobody knows whether it ended it
  x RemoteAway              exit 75  a place that runs agents cannot be reached now
  x RemoteRefused           exit 1   it was reached, and will not
  x Cancelled               exit 130 the caller gave up while it ran

Each class carries its facts as attributes; the message is one sentence for people.
Front ends use `code`, `exit_code` and `facts()`; nobody matches on message text.
"""

from __future__ import annotations

from taskyard.errors.conflicts import (
    AcceptanceFailed,
    AgentBusy,
    AlreadyClaimed,
    AlreadyExists,
    AlreadyResolved,
    BadTransition,
    Blocked,
    Conflict,
    Cycle,
    HookRefused,
    JobEnded,
    JobNotBegun,
    LeaseLost,
    ListNotEmpty,
    NothingToRestore,
    PathsOverlap,
    StillOpen,
    TeamHasLivingMembers,
    Untrusted,
)
from taskyard.errors.general import (
    BadConfig,
    BadId,
    BadJobId,
    BadName,
    BadPlan,
    BadText,
    BadValue,
    BadWorkflow,
    Busy,
    Cancelled,
    CannotListen,
    Damaged,
    MemberNotStarted,
    MissingExtra,
    NotGenuine,
    StorageError,
    TaskyardError,
    UsageError,
    clipped,
    shown,
)
from taskyard.errors.job_conflicts import BackgroundDisabled, DreamHeld, NoInput, TooDeep, TooManyCallers
from taskyard.errors.missing import (
    EngineNotFound,
    EventsGone,
    JobNotFound,
    KindNotFound,
    ListNotFound,
    NotFound,
    NothingFree,
    OutputGone,
    RecipientNotFound,
    TaskNotFound,
    TeamNotFound,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.errors.elsewhere import (
        HostAway,
        OutcomeUnknown,
        RemoteAway,
        RemoteNotFound,
        RemoteRefused,
        SchemaMismatch,
        StoreAway,
    )

#: What only those meet who go elsewhere is loaded when somebody names it.
_ELSEWHERE = (
    "HostAway",
    "OutcomeUnknown",
    "RemoteAway",
    "RemoteNotFound",
    "RemoteRefused",
    "SchemaMismatch",
    "StoreAway",
)


def __getattr__(name: str) -> object:
    if name not in _ELSEWHERE:
        raise AttributeError(name)
    from taskyard.errors import elsewhere

    return getattr(elsewhere, name)


__all__ = [
    "AcceptanceFailed",
    "AgentBusy",
    "AlreadyClaimed",
    "AlreadyExists",
    "AlreadyResolved",
    "BackgroundDisabled",
    "BadConfig",
    "BadId",
    "BadJobId",
    "BadName",
    "BadPlan",
    "BadText",
    "BadTransition",
    "BadValue",
    "BadWorkflow",
    "Blocked",
    "Busy",
    "Cancelled",
    "CannotListen",
    "Conflict",
    "Cycle",
    "Damaged",
    "DreamHeld",
    "EngineNotFound",
    "EventsGone",
    "HookRefused",
    "HostAway",
    "JobEnded",
    "JobNotBegun",
    "JobNotFound",
    "KindNotFound",
    "LeaseLost",
    "ListNotEmpty",
    "ListNotFound",
    "MemberNotStarted",
    "MissingExtra",
    "NoInput",
    "NotFound",
    "NotGenuine",
    "NothingFree",
    "NothingToRestore",
    "OutcomeUnknown",
    "OutputGone",
    "PathsOverlap",
    "RecipientNotFound",
    "RemoteAway",
    "RemoteNotFound",
    "RemoteRefused",
    "SchemaMismatch",
    "StillOpen",
    "StorageError",
    "StoreAway",
    "TaskNotFound",
    "TaskyardError",
    "TeamHasLivingMembers",
    "TeamNotFound",
    "TooDeep",
    "TooManyCallers",
    "Untrusted",
    "UsageError",
    "clipped",
    "shown",
]
