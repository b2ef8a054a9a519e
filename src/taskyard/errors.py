"""
Every error Taskyard raises on purpose.

* TaskyardError             exit 1
  x UsageError              exit 2   malformed: fails however often it is repeated
    + BadName, BadId, BadText, BadValue
  x NotFound                exit 4
    + TaskNotFound, RecipientNotFound, TeamNotFound, ListNotFound
  x Conflict                exit 5   well formed, wrong moment: look again
    + AlreadyClaimed, AlreadyResolved, Blocked, AgentBusy, BadTransition, Cycle,
      LeaseLost, HookRefused, AcceptanceFailed, Untrusted, PathsOverlap, AlreadyExists,
      TeamHasLivingMembers
  x Busy                    exit 75  somebody holds the lock: try again
  x Damaged                 exit 1   a file cannot be read as what it should be
  x StorageError            exit 1   the disk said no
  x Cancelled               exit 130 the caller gave up while it ran

Each class carries its facts as attributes; the message is one sentence for people.
Front ends use `code`, `exit_code` and `facts()`; nobody matches on message text.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import ClassVar


class TaskyardError(Exception):
    """Base of every deliberate error, so one `except` is enough at the edges."""

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1

    def facts(self) -> dict[str, object]:
        """What the error knows, by name: the attributes set by its class."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}


class UsageError(TaskyardError):
    """The request is malformed and will fail however often it is repeated."""

    code = "usage"
    exit_code = 2


class BadName(UsageError):
    """A list, team or agent name that cannot be one."""

    code = "bad_name"

    def __init__(self, what: str, name: str, why: str) -> None:
        super().__init__(f"{shown(name)} is no name for {what}: {why}.")
        self.name = clipped(name)
        self.why = why


class BadId(UsageError):
    """A task id that no task can have."""

    code = "bad_id"

    def __init__(self, task_id: object) -> None:
        super().__init__(
            f"{shown(task_id)} is no task id: ids are whole numbers from 1, written without leading zeros."
        )
        self.task_id = clipped(str(task_id))


class BadText(UsageError):
    """Text that cannot be stored: empty, too long, or with characters no file can hold."""

    code = "bad_text"

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"The {field} {why}.")
        self.field = field
        self.why = why


class BadValue(UsageError):
    """A value outside what its field or setting accepts."""

    code = "bad_value"

    def __init__(self, field: str, value: object, expected: str) -> None:
        super().__init__(f"{field} cannot be {shown(value)}: expected {expected}.")
        self.field = field
        self.expected = expected


class NotFound(TaskyardError):
    """The thing named by the request does not exist."""

    code = "not_found"
    exit_code = 4


class TaskNotFound(NotFound):
    """No task with this id is on the list."""

    def __init__(self, task_id: str, *, list_name: str, nearest: Sequence[str] = (), restorable: bool = False) -> None:
        hint = f" It was removed; `taskyard task restore {task_id}` brings it back." if restorable else ""
        if nearest and not hint:
            hint = f" Nearest: {', '.join('#' + near for near in nearest)}."
        super().__init__(f"No task #{task_id} on list {list_name!r}.{hint}")
        self.task_id = task_id
        self.list = list_name
        self.nearest = tuple(nearest)
        self.restorable = restorable


class ListNotFound(NotFound):
    """No list of this name in the tasks folder."""

    def __init__(self, list_name: str, *, nearest: Sequence[str] = ()) -> None:
        hint = f" Nearest: {', '.join(nearest)}." if nearest else ""
        super().__init__(f"No list {list_name!r}.{hint}")
        self.list = list_name
        self.nearest = tuple(nearest)


class RecipientNotFound(NotFound):
    """Nobody of this name can get mail here."""

    code = "recipient_not_found"

    def __init__(self, recipient: str, *, team: str, nearest: Sequence[str] = ()) -> None:
        hint = f" Nearest: {', '.join(nearest)}." if nearest else ""
        super().__init__(f"Nobody called {shown(recipient)} in team {team!r}.{hint}")
        self.recipient = clipped(recipient)
        self.team = team
        self.nearest = tuple(nearest)


class TeamNotFound(NotFound):
    """No team of this name."""

    code = "team_not_found"

    def __init__(self, team: str, *, nearest: Sequence[str] = ()) -> None:
        hint = f" Nearest: {', '.join(nearest)}." if nearest else ""
        super().__init__(f"No team {shown(team)}.{hint}")
        self.team = clipped(team)
        self.nearest = tuple(nearest)


class Conflict(TaskyardError):
    """The request is well formed but the current state forbids it."""

    code = "conflict"
    exit_code = 5


class AlreadyExists(Conflict):
    """There is one of this name already."""

    code = "already_exists"

    def __init__(self, what: str, name: str) -> None:
        super().__init__(f"There is already {what} called {name!r}.")
        self.name = name


class TeamHasLivingMembers(Conflict):
    """A team is not dissolved under the feet of those who work in it."""

    code = "team_has_living_members"

    def __init__(self, team: str, members: Sequence[str]) -> None:
        super().__init__(f"Team {team!r} still has living members: {', '.join(members)}. Use --force to remove it.")
        self.team = team
        self.members = tuple(members)


class AlreadyClaimed(Conflict):
    """Another agent owns the task."""

    code = "already_claimed"

    def __init__(self, task_id: str, owner: str) -> None:
        super().__init__(f"Task #{task_id} is already claimed by {owner!r}.")
        self.task_id = task_id
        self.owner = owner


class AlreadyResolved(Conflict):
    """The task is completed; there is nothing left to claim."""

    code = "already_resolved"

    def __init__(self, task_id: str) -> None:
        super().__init__(f"Task #{task_id} is already completed.")
        self.task_id = task_id


class Blocked(Conflict):
    """The task waits for others that are still open."""

    code = "blocked"

    def __init__(self, task_id: str, blockers: Sequence[str]) -> None:
        super().__init__(f"Task #{task_id} is blocked by {', '.join('#' + b for b in blockers)}: complete those first.")
        self.task_id = task_id
        self.blockers = tuple(blockers)


class AgentBusy(Conflict):
    """The agent still owns open work."""

    code = "agent_busy"

    def __init__(self, agent: str, tasks: Sequence[str]) -> None:
        super().__init__(f"{agent!r} still has open work: {', '.join('#' + t for t in tasks)}.")
        self.agent = agent
        self.tasks = tuple(tasks)


class BadTransition(Conflict):
    """The task cannot go from its status to that one."""

    code = "bad_transition"

    def __init__(self, task_id: str, was: str, wanted: str) -> None:
        super().__init__(f"Task #{task_id} is {was}; it cannot become {wanted} from there.")
        self.task_id = task_id
        self.was = was
        self.wanted = wanted


class Cycle(Conflict):
    """The dependency would make tasks wait for each other for ever."""

    code = "cycle"

    def __init__(self, path: Sequence[str]) -> None:
        super().__init__(f"That would be a cycle: {' → '.join('#' + step for step in path)}.")
        self.path = tuple(path)


class LeaseLost(Conflict):
    """The caller's claim is no longer the current one."""

    code = "lease_lost"

    def __init__(self, task_id: str, owner: str | None) -> None:
        now = f"it now belongs to {owner!r}" if owner else "it went back to the pool"
        super().__init__(f"Your claim on task #{task_id} was lost: {now}. Nothing was written.")
        self.task_id = task_id
        self.owner = owner


class HookRefused(Conflict):
    """A hook said no; nothing was saved."""

    code = "hook_refused"

    def __init__(self, event: str, hook: str, exit_code: int | None, stderr: str) -> None:
        said = stderr.strip() or "(the hook said nothing on stderr)"
        super().__init__(f"{event} hook feedback:\n[{hook}]: {said}")
        self.event = event
        self.hook = hook
        self.hook_exit_code = exit_code
        self.stderr = stderr


class AcceptanceFailed(Conflict):
    """The task's acceptance command failed, so the task is not done."""

    code = "acceptance_failed"

    def __init__(self, task_id: str, command: str, exit_code: int | None, output: str) -> None:
        how = "ran out of time" if exit_code is None else f"ended with exit code {exit_code}"
        super().__init__(f"Task #{task_id} is not done: its acceptance command `{command}` {how}.\n{output}".rstrip())
        self.task_id = task_id
        self.command = command
        self.command_exit_code = exit_code
        self.output = output


class Untrusted(Conflict):
    """A command somebody else wrote has not been approved by a person."""

    code = "untrusted"

    def __init__(self, what: str, command: str, how: str) -> None:
        super().__init__(f"{what} `{command}` is not trusted yet. Read it, then run `{how}`.")
        self.what = what
        self.command = command
        self.how = how


class PathsOverlap(Conflict):
    """Another open claim works on the same paths."""

    code = "paths_overlap"

    def __init__(self, task_id: str, other: str, owner: str, paths: Sequence[str]) -> None:
        super().__init__(f"Task #{task_id} shares {', '.join(paths)} with #{other}, which {owner!r} works on.")
        self.task_id = task_id
        self.other = other
        self.owner = owner
        self.paths = tuple(paths)


class Busy(TaskyardError):
    """Somebody else held the lock for as long as we were willing to wait."""

    code = "busy"
    exit_code = 75

    def __init__(self, what: str, holder: str, waited: float) -> None:
        super().__init__(f"{what} is locked by {holder}; gave up after {waited:.1f} s. Nothing was written: try again.")
        self.what = what
        self.holder = holder
        self.waited = waited
        self.retryable = True


class Damaged(TaskyardError):
    """A file cannot be read as what it should be."""

    code = "damaged"

    def __init__(self, file: str, why: str) -> None:
        super().__init__(f"{file} cannot be read: {why}. `taskyard doctor` explains what can be done.")
        self.file = file
        self.why = why


class StorageError(TaskyardError):
    """The disk refused: full, read-only, not a folder, not ours."""

    code = "storage"

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}.")
        self.path = path
        self.why = why


class Cancelled(TaskyardError):
    """The caller gave up while something ran; it was ended and nothing was saved."""

    code = "cancelled"
    exit_code = 130

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} was ended because the caller gave up. Nothing was saved.")
        self.what = what


def clipped(value: str, most: int = 60) -> str:
    """`value`, short enough to stand in a message."""
    return value if len(value) <= most else value[: most - 1] + "…"


def shown(value: object) -> str:
    """`value` as a message may show it: quoted, short, control characters escaped."""
    return ascii(clipped(value)) if isinstance(value, str) and not value.isprintable() else repr(clipped(str(value)))
