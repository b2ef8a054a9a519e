"""
What a task on the shared list is.

Records are named tuples: immutable, cheap to make by the thousand, and free of imports that
the command line would have to pay for.
"""

from __future__ import annotations

from enum import StrEnum

from taskyard.typed import NamedTuple, cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


class TaskStatus(StrEnum):
    """The life of a task, in the order people read a board."""

    PENDING = "pending"  #: nobody works on it yet
    IN_PROGRESS = "in_progress"  #: its owner works on it now
    COMPLETED = "completed"  #: done


class Lease(NamedTuple):
    """Which instance holds a claim, and until when."""

    owner: str  #: the name everyone sees
    instance: str  #: the one process, job or person behind the name
    token: str  #: proves that a write comes from this very claim
    kind: str  #: "process" (ends at the kernel's word), "time" (renewed by calls), "manual" (no end)
    since: int  #: epoch ms of the claim
    expires: int | None = None  #: epoch ms, for kind "time"
    span: int = 0  #: ms that a sign of life adds, for kind "time"
    host: str = ""  #: the machine and boot the holder lives on, for kind "process"
    lock: str = ""  #: the file whose kernel lock says that the holder lives
    place: str = ""  #: the folder that file is in, so that nobody takes another one for it


class Task(NamedTuple):
    """One unit of work on the shared list.

    The fields up to `updated_at` are the file's. Those after it belong to the answer that
    brought the record: they are never stored.
    """

    id: str
    subject: str
    description: str = ""
    active_form: str | None = None
    owner: str | None = None
    status: TaskStatus = TaskStatus.PENDING
    blocks: tuple[str, ...] = ()
    blocked_by: tuple[str, ...] = ()
    metadata: Mapping[str, object] = {}
    created_at: int | None = None
    updated_at: int | None = None
    lease: Lease | None = None  #: who holds it now, where that is known
    ready: tuple[str, ...] = ()  #: after completing: the tasks this made ready
    notes: tuple[str, ...] = ()  #: what the answer adds for the reader: warnings, the nudge

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do."""
        return self.status is TaskStatus.COMPLETED

    @property
    def is_assigned(self) -> bool:
        """Whether it has an owner who has neither claimed nor started it."""
        return self.owner is not None and self.lease is None and self.status is TaskStatus.PENDING

    @property
    def is_internal(self) -> bool:
        """Whether this is a tracker, hidden from people and never worked on."""
        return bool(self.metadata.get("_internal"))

    @property
    def extra(self) -> Mapping[str, object]:
        """What Taskyard keeps beyond Claude Code's fields (`metadata.taskyard`)."""
        found = self.metadata.get("taskyard")
        return cast("dict[str, object]", found) if isinstance(found, dict) else {}

    @property
    def is_held(self) -> bool:
        """Whether it was set aside after losing three holders; `claim_next` skips it."""
        return bool(self.extra.get("held"))


#: How many of a task's fields are stored.
_STORED = Task._fields.index("lease")


def stored(task: Task) -> tuple[object, ...]:
    """What of a task is kept, for those who compare."""
    return task[:_STORED]


class Draft(NamedTuple):
    """A task to be: checked, without an id."""

    subject: str
    description: str = ""
    active_form: str | None = None
    owner: str | None = None
    status: TaskStatus = TaskStatus.PENDING
    blocks: tuple[str, ...] = ()
    blocked_by: tuple[str, ...] = ()
    metadata: Mapping[str, object] = {}


class Act(NamedTuple):
    """Who changes the list, and why: what the event log keeps of every change."""

    by: str | None  #: the agent or person, where known
    cause: str  #: the verb: "create", "claim", "complete", …, "external", "lease_lost"
    via: str = "api"  #: the door it came through: "api", "cli", "mcp", "hook", "watch"
    note: str = ""  #: a reason in words, where one was given


def loss_of(lease: Lease, losses: int) -> Act:
    """What the log says when a holder is gone and its task goes back; `losses` with this one."""
    return Act(lease.owner, "lease_lost", "watch", f"its holder {lease.instance} is gone (loss {losses})")


class Change(NamedTuple):
    """One entry of a list's event log: what became of which tasks."""

    id: int  #: its place in the log; larger is later
    at: int  #: epoch ms
    act: Act
    tasks: Mapping[str, Task | None]  #: each task as it was afterwards; None = gone
    aborted: bool = False  #: the writer died before it took effect


class DamagedFile(NamedTuple):
    """A file in a list's folder that cannot be read as a task."""

    file: str
    why: str


class Listing(tuple[Task, ...]):
    """The tasks of a list by ascending id; `damaged` names the files that could not be read."""

    damaged: tuple[DamagedFile, ...]
    _visible: Listing | None

    def __new__(cls, tasks: Iterable[Task] = (), damaged: Iterable[DamagedFile] = ()) -> Listing:
        """Tasks in the order given."""
        listing = super().__new__(cls, tasks)
        listing.damaged = tuple(damaged)
        listing._visible = None
        return listing

    @property
    def visible(self) -> Listing:
        """Without trackers; worked out once, since a list that did not change is answered again and again."""
        if self._visible is None:
            hidden = any(task.is_internal for task in self)
            self._visible = Listing((t for t in self if not t.is_internal), self.damaged) if hidden else self
        return self._visible


class Links(NamedTuple):
    """Dependencies of one task that an update adds and takes away, each as (blocker, blocked)."""

    new: tuple[tuple[str, str], ...] = ()
    gone: tuple[tuple[str, str], ...] = ()


class Facts(NamedTuple):
    """All that a rule may know when it decides about one task."""

    task: Task
    lease: Lease | None  #: the lease record, if its holder still counts as living
    look: Callable[[str], Task | None]  #: another task by id, as it is under the lock
    everything: Callable[[], Sequence[Task]]  #: all tasks; only with the list lock


class Decision(NamedTuple):
    """What a rule answers: the task as it shall be, and the lease that goes with it."""

    task: Task
    lease: Lease | None
