"""Every error that Taskyard raises on purpose.

* TaskyardError             exit 1
  x UsageError              exit 2   malformed: fails however often it is repeated
    + BadName, BadId, BadJobId, BadText, BadValue, BadWorkflow, BadPlan, MissingExtra
  x NotFound                exit 4   the request names something that does not exist
    + TaskNotFound, RecipientNotFound, TeamNotFound, ListNotFound, JobNotFound, KindNotFound,
      EngineNotFound, RemoteNotFound, OutputGone, EventsGone, NothingFree
  x Conflict                exit 5   well formed, but the current state forbids it: read it again
    + AlreadyClaimed, AlreadyResolved, StillOpen, Blocked, AgentBusy, BadTransition, Cycle,
      LeaseLost, HookRefused, AcceptanceFailed, Untrusted, PathsOverlap, AlreadyExists,
      NothingToRestore, ListNotEmpty, TeamHasLivingMembers, JobEnded, JobNotBegun, NoInput,
      BackgroundDisabled, TooDeep, TooManyCallers, DreamHeld
  x Busy                    exit 75  another process holds the lock: retry
  x Damaged                 exit 1   a file cannot be parsed
  x BadConfig               exit 1   another program's configuration cannot be changed safely
  x NotGenuine              exit 1   a text that looks like a notice was not written by Taskyard
  x StorageError            exit 1   a file operation failed
  x CannotListen            exit 1   an address is in use, or not ours
  x MemberNotStarted        exit 1   a member of a team did not start
  x StoreAway               exit 75  the database cannot be reached now: retry
  x SchemaMismatch          exit 1   the database has another schema version
  x HostAway                exit 75  the host that runs a job does not respond
  x OutcomeUnknown          exit 1   another host began a request, and its outcome is unknown
  x RemoteAway              exit 75  a remote that runs agents cannot be reached now
  x RemoteRefused           exit 1   a remote refused the request
  x Cancelled               exit 130 the caller gave up while it ran

Each class carries its facts as attributes; the message is one sentence for people. Front ends use `code`,
`exit_code` and `facts()`; no code matches on message text.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import ClassVar


class TaskyardError(Exception):
    """Base of every deliberate error, so one `except` is enough at the edges."""

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1

    def __init__(self, fact: str = "", advice: str = "") -> None:
        """Set the message; `advice` is the next step at the command line, which other front ends replace."""
        super().__init__(f"{fact} {advice}" if advice else fact)
        self._fact = fact

    @property
    def fact(self) -> str:
        """The message without the advice."""
        return self._fact

    def facts(self) -> dict[str, object]:
        """Return the public attributes of the error by name."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}


class UsageError(TaskyardError):
    """The request is malformed and will fail however often it is repeated."""

    code = "usage"
    exit_code = 2


class MissingExtra(UsageError):
    """The request needs packages that are not installed."""

    code = "missing_extra"

    def __init__(self, what: str, extra: str, module: str = "") -> None:
        from taskyard.core.installation import extra_install_command

        missing = f" ({module} is missing)" if module else ""
        super().__init__(f"{what} needs more than the core{missing}: `{extra_install_command(extra)}`.")
        self.extra = extra
        self.module = module


class BadName(UsageError):
    """An invalid name of a list, team or agent."""

    code = "bad_name"

    def __init__(self, what: str, name: str, why: str) -> None:
        super().__init__(f"{quote_value(name)} is not a valid name for {what}: {why}.")
        self.name = truncate(name)
        self.why = why


class BadId(UsageError):
    """An invalid task id."""

    code = "bad_id"

    def __init__(self, task_id: object) -> None:
        super().__init__(
            f"{quote_value(task_id)} is not a task id: ids are whole numbers from 1 to 999,999,999 (at most nine"
            " digits), written without leading zeros."
        )
        self.task_id = truncate(str(task_id))


class BadJobId(UsageError):
    """An invalid job id."""

    code = "bad_job_id"

    def __init__(self, job_id: object) -> None:
        super().__init__(
            f"{quote_value(job_id)} is not a job id: those are a letter and eight of 0-9a-z, such as b3k9x0q2m."
        )
        self.job_id = truncate(str(job_id))


class BadText(UsageError):
    """Text that cannot be stored: empty, too long, or with characters no file can hold."""

    code = "bad_text"

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"The {field} {why}.")
        self.field = field
        self.why = why


class BadValue(UsageError):
    """A value that its field or setting does not accept."""

    code = "bad_value"

    def __init__(self, field: str, value: object, expected: str, *, found: str = "") -> None:
        """Set the message; `found` ("is empty") replaces the value where that would explain little."""
        super().__init__(f"{field} {found or f'cannot be {quote_value(value)}'}: expected {expected}.")
        self.field = field
        self.expected = expected


class BadWorkflow(UsageError):
    """An invalid workflow: a key, a value, or the order of its steps."""

    code = "bad_workflow"

    def __init__(self, file: str, why: str, *, line: int = 0) -> None:
        place = f"{truncate(file, 160) or 'The workflow'}{f', line {line}' if line else ''}"
        super().__init__(f"{place}: {why}{'' if why.endswith('?') else '.'}")
        self.file = truncate(file, 160) or None
        self.line = line or None
        self.why = why


class BadPlan(UsageError):
    """An invalid team plan: a key, a value, or the dependencies of its tasks."""

    code = "bad_plan"

    def __init__(self, file: str, why: str, *, line: int = 0) -> None:
        place = f"{truncate(file, 160) or 'The plan'}{f', line {line}' if line else ''}"
        super().__init__(f"{place}: {why if why.endswith('?') else why.removesuffix('.') + '.'}")
        self.file = truncate(file, 160) or None
        self.line = line or None
        self.why = why


class Busy(TaskyardError):
    """Another process held the lock for the whole timeout."""

    code = "busy"
    exit_code = 75

    def __init__(self, what: str, holder: str, waited: float) -> None:
        super().__init__(f"{what} is locked by {holder}; gave up after {waited:.1f} s. Nothing was written: try again.")
        self.what = what
        self.holder = holder
        self.waited = waited
        self.retryable = True


class Damaged(TaskyardError):
    """A file cannot be parsed."""

    code = "damaged"

    def __init__(self, file: str, why: str) -> None:
        super().__init__(f"{file} cannot be read: {why}.", "`taskyard doctor` explains what can be done.")
        self.file = file
        self.why = why


class BadConfig(TaskyardError):
    """Another program's configuration file cannot be changed safely, so it was left unchanged."""

    code = "bad_config"

    def __init__(self, file: str, why: str, *, advice: str = "") -> None:
        more = advice or "Fix it, or add what `taskyard install --print` shows by hand."
        super().__init__(f"{file} was left as it is: {truncate(why, 160)}. {more}")
        self.file = truncate(file, 160)
        self.why = truncate(why, 160)


class NotGenuine(TaskyardError):
    """A text that looks like a notice was not written, word for word, by Taskyard."""

    code = "not_genuine"

    def __init__(self, why: str) -> None:
        super().__init__(f"This is not a genuine notice: {why}.")
        self.why = why


class StorageError(TaskyardError):
    """A file operation failed: disk full, read-only, not a folder, no permission."""

    code = "storage"

    def __init__(self, path: str, why: str, *, advice: str = "", about: str = "", tasks: Sequence[str] = ()) -> None:
        """Describe the failed operation.

        Args:
            path: The file or folder.
            why: What is wrong, without a full stop.
            advice: What to do about it, as a sentence.
            about: What that means for the work at hand, as a sentence.
            tasks: The ids of the tasks that were being written.
        """
        named = f"{_format_task_ids(tasks)} could not be written ({path}): {why}." if tasks else f"{path}: {why}."
        super().__init__(" ".join(part for part in (named, about, advice) if part))
        self.path = path
        self.why = why
        self.advice = advice
        self.tasks = tuple(tasks)

    def writing(self, tasks: Sequence[str], about: str) -> StorageError:
        """Return the same error as met while writing `tasks`; one that names tasks already is returned as is."""
        return self if self.tasks else StorageError(self.path, self.why, advice=self.advice, about=about, tasks=tasks)


class CannotListen(TaskyardError):
    """No server can listen on an address: it is in use, or not ours."""

    code = "cannot_listen"

    def __init__(self, address: str, why: str, advice: str) -> None:
        super().__init__(f"Nothing can listen on {quote_value(address)}: {why}. {advice}")
        self.address = address
        self.why = why


class MemberNotStarted(TaskyardError):
    """A member of a team did not start: it timed out or exited early. Nothing of it is left."""

    code = "member_not_started"

    def __init__(self, member: str, team: str, why: str) -> None:
        super().__init__(f"{truncate(member, 60)} did not join team {truncate(team, 60)}: {truncate(why, 500)}.")
        self.member = truncate(member, 60)
        self.team = truncate(team, 60)
        self.why = truncate(why, 500)


class Cancelled(TaskyardError):
    """The caller gave up while a command ran; it was terminated and nothing was saved."""

    code = "cancelled"
    exit_code = 130

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} was ended because the caller gave up. Nothing was saved.")
        self.what = what


def _format_task_ids(ids: Sequence[str]) -> str:
    """Return `Task #2`, or `Tasks #1, #2, #3 and 7 more`."""
    named, rest = ", ".join(f"#{task_id}" for task_id in ids[:3]), len(ids) - 3
    return f"Task{'s' if len(ids) > 1 else ''} {named}" + (f" and {rest} more" if rest > 0 else "")


def truncate(value: str, most: int = 60) -> str:
    """Return `value`, cut to at most `most` characters for a message."""
    return value if len(value) <= most else value[: most - 1] + "…"


def quote_value(value: object) -> str:
    """Return `value` for a message: quoted, short, control characters escaped."""
    return ascii(truncate(value)) if isinstance(value, str) and not value.isprintable() else repr(truncate(str(value)))


class NotFound(TaskyardError):
    """The request names something that does not exist."""

    code = "not_found"
    exit_code = 4


class TaskNotFound(NotFound):
    """The list has no task with this id."""

    def __init__(self, task_id: str, *, list_name: str, nearest: Sequence[str] = (), restorable: bool = False) -> None:
        hint = f"It was removed; `taskyard task restore {task_id}` brings it back." if restorable else ""
        if nearest and not hint:
            hint = f"Nearest: {', '.join('#' + near for near in nearest)}."
        super().__init__(f"No task #{task_id} on list {list_name!r}.", hint)
        self.task_id = task_id
        self.list = list_name
        self.nearest = tuple(nearest)
        self.restorable = restorable


class ListNotFound(NotFound):
    """The tasks folder has no list of this name."""

    def __init__(self, list_name: str, *, nearest: Sequence[str] = ()) -> None:
        hint = f"Nearest: {', '.join(nearest)}." if nearest else "`taskyard lists` names those there are."
        super().__init__(f"No list {list_name!r}.", hint)
        self.list = list_name
        self.nearest = tuple(nearest)


class RecipientNotFound(NotFound):
    """No recipient of this name can get mail here."""

    code = "recipient_not_found"

    def __init__(self, recipient: str, *, team: str, nearest: Sequence[str] = ()) -> None:
        hint = f"Nearest: {', '.join(nearest)}." if nearest else ""
        super().__init__(f"No recipient {quote_value(recipient)} in team {team!r}.", hint)
        self.recipient = truncate(recipient)
        self.team = team
        self.nearest = tuple(nearest)


class TeamNotFound(NotFound):
    """There is no team of this name."""

    code = "team_not_found"

    def __init__(self, team: str, *, nearest: Sequence[str] = ()) -> None:
        hint = f"Nearest: {', '.join(nearest)}." if nearest else "`taskyard team list` names those there are."
        super().__init__(f"No team {quote_value(team)}. {hint}")
        self.team = truncate(team)
        self.nearest = tuple(nearest)


class JobNotFound(NotFound):
    """No job with this id was ever started here."""

    code = "job_not_found"

    def __init__(self, job_id: str, *, nearest: Sequence[str] = ()) -> None:
        hint = f"Nearest: {', '.join(nearest)}." if nearest else "See `taskyard ps --all`."
        super().__init__(f"No job {job_id}.", hint)
        self.job_id = job_id
        self.nearest = tuple(nearest)


class KindNotFound(NotFound):
    """No job kind of this type is known here."""

    code = "kind_not_found"

    def __init__(self, kind: str, *, nearest: Sequence[str] = ()) -> None:
        hint = f" Nearest: {', '.join(nearest)}." if nearest else ""
        super().__init__(
            f"No kind of job is called {quote_value(kind)} here: is the package that has it installed?{hint}"
        )
        self.kind = kind
        self.nearest = tuple(nearest)


class EngineNotFound(NotFound):
    """No agent engine of this name is installed here."""

    code = "engine_not_found"

    def __init__(self, engine: str, *, nearest: Sequence[str] = ()) -> None:
        hint = f" Nearest: {', '.join(nearest)}." if nearest else ""
        super().__init__(f"No engine is called {quote_value(engine)} here; `taskyard engines` lists them.{hint}")
        self.engine = truncate(engine)
        self.nearest = tuple(nearest)


class OutputGone(NotFound):
    """The job has ended and `taskyard gc` removed its output; its exit status is still known."""

    code = "output_gone"

    def __init__(self, job_id: str, *, status: str, cause: str, exit_code: int | None) -> None:
        how = f"exit code {exit_code}" if exit_code is not None else cause
        super().__init__(f"The output of job {job_id} was taken by `taskyard gc`. The job is {status} ({how}).")
        self.job_id = job_id
        self.status = status
        self.cause = cause
        self.job_exit_code = exit_code


class EventsGone(NotFound):
    """The event stream no longer has, or does not have yet, the event to resume after."""

    code = "events_gone"

    def __init__(self, since: int, *, first: int, last: int) -> None:
        """Set the message; `first` and `last` are the ends of the stored stream."""
        if since < first:
            why = f"Some events after {since} are no longer kept: what is left begins at {first}."
        else:
            why = f"There is no event {since}: the stream ends at {last}. It may have been begun anew."
        super().__init__(f"{why} Go on with --since {first}, or without --since.")
        self.since = since
        self.first = first
        self.last = last


class NothingFree(NotFound):
    """No task can be claimed by this agent now."""

    code = "nothing_free"

    def __init__(self, agent: str, *, list_name: str, open: int, taken: int) -> None:
        if not open:
            why = "everything on the list is done"
        else:
            waiting = open - taken
            parts = [f"{taken} taken" if taken else "", f"{waiting} blocked or not for you" if waiting else ""]
            why = f"{open} open, of which {' and '.join(part for part in parts if part)}"
        super().__init__(f"Nothing is free for {quote_value(agent)} on list {list_name!r}: {why}.")
        self.agent = truncate(agent)
        self.list = list_name
        self.open = open
        self.taken = taken


#: Above this number, tasks are counted in a message, not named.
_MAX_ADDED_IDS = 20

#: Ids named in a sentence; `tasks` of the error has them all.
_MAX_OPEN_IDS = 10


class Conflict(TaskyardError):
    """The request is well formed but the current state forbids it."""

    code = "conflict"
    exit_code = 5


class AlreadyExists(Conflict):
    """The name exists already."""

    code = "already_exists"

    def __init__(self, what: str, name: str, *, hint: str = "") -> None:
        """Set the message; `hint` is a sentence on what to do next."""
        super().__init__(f"There is already {what} called {name!r}.{' ' + hint if hint else ''}")
        self.name = name


class NothingToRestore(AlreadyExists):
    """The task is on the list: it was not removed, or is restored already."""

    def __init__(self, task_id: str, *, list_name: str) -> None:
        super().__init__("a task", f"#{task_id}")
        self._fact = f"Task #{task_id} is on list {list_name!r}: there is nothing to restore."
        self.args = (f"{self._fact} `taskyard task show {task_id}` shows it.",)
        self.task_id = task_id
        self.list = list_name


class ListNotEmpty(Conflict):
    """A list can be imported with its ids only into an empty one. Nothing was changed."""

    code = "list_not_empty"

    def __init__(self, list_name: str, count: int) -> None:
        """Set the message; `count` is the number of tasks on the list."""
        tasks = "1 task" if count == 1 else f"{count} tasks"
        super().__init__(
            f"List {list_name!r} has {tasks}: ids can be kept only on an empty list.",
            "Name another list, put these away (`taskyard task reset`), or import without keeping ids.",
        )
        self.list = list_name
        self.count = count


class TeamHasLivingMembers(Conflict):
    """A team with live members is not removed."""

    code = "team_has_living_members"

    def __init__(self, team: str, members: Sequence[str]) -> None:
        super().__init__(
            f"Team {team!r} still has members that may be running: {', '.join(members)}. Use --force to remove it."
        )
        self.team = team
        self.members = tuple(members)


class AlreadyClaimed(Conflict):
    """Another agent owns the task."""

    code = "already_claimed"

    def __init__(
        self,
        task_id: str,
        owner: str,
        *,
        instance: str | None = None,
        forcible: bool = False,
        nameless: bool = False,
    ) -> None:
        """Set the message and the advice.

        Args:
            task_id: The task.
            owner: Name of the agent that owns it.
            instance: The live holder, if it has the caller's own name.
            forcible: A user may override it with `--force`.
            nameless: The caller gave no name, and any caller with the owner's name may act on the claim.
        """
        who, ask = repr(owner), f"Ask {owner!r}"
        if nameless:
            ask = f"If that is you, add `--by {owner}`; if not, ask {owner!r}"
        if instance is not None:
            who = f"another live agent {owner!r} (instance {instance})"
            ask = "If that is you, give the claim's token; if not, work under another name"
        last = f"put it back into the pool with `taskyard task release {task_id} --force`"
        if forcible:
            last = "as a user, override it with --force"
        super().__init__(
            f"Task #{task_id} is already claimed by {who}.",
            f"{ask}, take another with `taskyard task next`, or {last}.",
        )
        self.task_id = task_id
        self.owner = owner
        self.instance = instance


class AlreadyResolved(Conflict):
    """The task is completed and cannot be claimed."""

    code = "already_resolved"

    def __init__(self, task_id: str) -> None:
        super().__init__(f"Task #{task_id} is already completed.", f"`taskyard task reopen {task_id}` opens it again.")
        self.task_id = task_id


class StillOpen(Conflict):
    """Tasks that are not completed are archived only with `--force`."""

    code = "still_open"

    def __init__(self, tasks: Sequence[str]) -> None:
        which = ", ".join(f"#{task}" for task in tasks[:_MAX_OPEN_IDS]) + (", …" if len(tasks) > _MAX_OPEN_IDS else "")
        how = f"{which} is not completed" if len(tasks) == 1 else f"{which} are not completed"
        super().__init__(f"{how}. Complete first what is to be archived, remove it, or use --force.")
        self.tasks = tuple(tasks)


class Blocked(Conflict):
    """The task waits for others that are still open."""

    code = "blocked"

    def __init__(self, task_id: str, blockers: Sequence[str]) -> None:
        super().__init__(f"Task #{task_id} is blocked by {', '.join('#' + b for b in blockers)}: complete those first.")
        self.task_id = task_id
        self.blockers = tuple(blockers)


class AgentBusy(Conflict):
    """The agent already owns unfinished tasks."""

    code = "agent_busy"

    def __init__(self, agent: str, tasks: Sequence[str]) -> None:
        super().__init__(
            f"{agent!r} still has open work: {', '.join('#' + t for t in tasks)}.", "Complete or release that first."
        )
        self.agent = agent
        self.tasks = tuple(tasks)


class BadTransition(Conflict):
    """The task cannot change from its status to that one."""

    code = "bad_transition"

    def __init__(self, task_id: str, was: str, wanted: str) -> None:
        hint = f"`taskyard task reopen {task_id}` makes it pending first." if was == "completed" else ""
        super().__init__(f"Task #{task_id} is {was}; it cannot become {wanted} from there.", hint)
        self.task_id = task_id
        self.was = was
        self.wanted = wanted


class Cycle(Conflict):
    """Tasks would wait for each other for ever, or each be a part of the other."""

    code = "cycle"

    def __init__(self, path: Sequence[str]) -> None:
        super().__init__(
            f"That would be a cycle: {' → '.join('#' + step for step in path)}. Leave one of these dependencies out."
        )
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
    """A hook refused; nothing was saved except what an import had `added` before."""

    code = "hook_refused"

    def __init__(self, event: str, hook: str, exit_code: int | None, stderr: str, *, added: Sequence[str] = ()) -> None:
        said = stderr.strip() or "(the hook wrote nothing to stderr)"
        text = f"{event} hook feedback:\n[{hook}]: {said}"
        if added:
            more = f" and {len(added) - _MAX_ADDED_IDS} more" if len(added) > _MAX_ADDED_IDS else ""
            names = ", ".join("#" + task_id for task_id in added[:_MAX_ADDED_IDS])
            text += f"\nAdded before it, and still there: {names}{more}."
        super().__init__(text)
        self.event = event
        self.hook = hook
        self.hook_exit_code = exit_code
        self.stderr = stderr
        self.added = tuple(added)

    def after(self, added: Iterable[str]) -> HookRefused:
        """Return the same refusal within an import that had added these tasks."""
        return HookRefused(self.event, self.hook, self.hook_exit_code, self.stderr, added=tuple(added))


class AcceptanceFailed(Conflict):
    """The task's acceptance command failed, so the task is not completed."""

    code = "acceptance_failed"

    def __init__(self, task_id: str, command: str, exit_code: int | None, output: str) -> None:
        how = "ran out of time" if exit_code is None else f"ended with exit code {exit_code}"
        super().__init__(f"Task #{task_id} is not done: its acceptance command `{command}` {how}.\n{output}".rstrip())
        self.task_id = task_id
        self.command = command
        self.command_exit_code = exit_code
        self.output = output


class Untrusted(Conflict):
    """A command from an untrusted source has not been approved by a user."""

    code = "untrusted"

    def __init__(self, what: str, command: str, how: str) -> None:
        super().__init__(f"{what} `{command}` is not trusted yet.", f"Read it, then run `{how}`.")
        self.what = what
        self.command = command
        self.how = how


class PathsOverlap(Conflict):
    """Another open claim works on the same paths."""

    code = "paths_overlap"

    def __init__(self, task_id: str, other: str, owner: str, paths: Sequence[str]) -> None:
        super().__init__(
            f"Task #{task_id} shares {', '.join(paths)} with #{other}, which {owner!r} works on. Agree with {owner!r}"
            " first, or take another task."
        )
        self.task_id = task_id
        self.other = other
        self.owner = owner
        self.paths = tuple(paths)


class JobEnded(Conflict):
    """A job that has ended cannot be controlled."""

    code = "job_ended"

    def __init__(self, job_id: str, status: str, continued_as: str | None = None) -> None:
        if continued_as is None:
            super().__init__(f"Job {job_id} has ended already ({status}).", "Start it again with `taskyard run`.")
        else:
            super().__init__(
                f"Job {job_id} has ended already ({status}). Job {continued_as} continues its work.",
                f"Use {continued_as}.",
            )
        self.job_id = job_id
        self.status = status
        self.continued_as = continued_as


class JobNotBegun(Conflict):
    """A queued job cannot be paused, resumed or sent input yet."""

    code = "job_not_begun"

    def __init__(self, job_id: str, waits_for: str) -> None:
        super().__init__(f"Job {job_id} has not begun: it waits for {waits_for}. Try again when it runs, or stop it.")
        self.job_id = job_id
        self.waits_for = waits_for


class NoInput(Conflict):
    """A job without stdin, or that does not read it, cannot be sent input."""

    code = "no_input"

    def __init__(self, job_id: str, why: str, advice: str) -> None:
        super().__init__(f"Job {job_id} {why}.", advice)
        self.job_id = job_id
        self.why = why


class BackgroundDisabled(Conflict):
    """Background jobs are disabled here."""

    code = "background_disabled"

    def __init__(self, setting: str) -> None:
        super().__init__(
            f"Background jobs are switched off here ({setting}).", "Run it in the foreground, or unset that."
        )
        self.setting = setting


class TooDeep(Conflict):
    """Nested jobs exceed the depth limit: a sign of runaway recursion."""

    code = "too_deep"

    def __init__(self, parent: str, limit: int) -> None:
        super().__init__(
            f"Job {parent} may start no other: jobs may be {limit} deep (setting job_depth). "
            "Do the work within this job, or ask its starter."
        )
        self.parent = parent
        self.limit = limit


class TooManyCallers(Conflict):
    """A server has reached its maximum number of clients."""

    code = "too_many_callers"

    def __init__(self, limit: int) -> None:
        super().__init__(f"{limit} agents are connected, and all hold claims (setting mcp_callers). Try again later.")
        self.limit = limit
        self.retryable = True


class DreamHeld(Conflict):
    """A dream may not run now."""

    code = "dream_held"

    def __init__(
        self, held_by: Sequence[str], why: str, *, opens_at: int | None = None, forcible: bool = False
    ) -> None:
        """Set the message; `opens_at` is epoch ms, if only time has to pass."""
        super().__init__(f"No dream now: {why}.", "Use --force to run it anyway." if forcible else "")
        self.held_by = tuple(held_by)
        self.opens_at = opens_at


class StoreAway(TaskyardError):
    """The list's database cannot be reached now. The request was saved completely or not at all."""

    code = "disconnected"
    exit_code = 75

    def __init__(self, where: str, why: str, *, seconds: float = 0.0) -> None:
        """Set the message; `where` has no password, `seconds` is how long it was tried."""
        tried = f" for {seconds:.0f} s" if seconds >= 1 else ""
        super().__init__(
            f"The database {truncate(where, 120)} cannot be reached{tried}: {truncate(why, 300)}.",
            "Try again when it is back; `taskyard db status` shows its state.",
        )
        self.where = truncate(where, 120)
        self.why = truncate(why, 300)
        self.retryable = True


class Repeated(StorageError):
    """The database has a record that may exist only once: the request arrived before, and its reply was lost.

    No caller outside the store meets it: the sender of the request looks up its result.
    """


class SchemaMismatch(TaskyardError):
    """The database has the tables of another Taskyard version. Nothing was changed."""

    code = "schema_mismatch"

    def __init__(self, where: str, *, found: int, known: int) -> None:
        if found > known:
            text = f"{truncate(where, 120)} has schema {found}; this Taskyard knows {known}"
            advice = "It is older than the one that upgraded the database: install that version or a newer one."
        else:
            what = f"has schema {found}, and this Taskyard needs {known}" if found else "has no tables of Taskyard yet"
            text, advice = f"{truncate(where, 120)} {what}", "`taskyard db upgrade` makes it fit."
        super().__init__(f"The database {text}.", advice)
        self.where = truncate(where, 120)
        self.found = found
        self.known = known


class RemoteNotFound(NotFound):
    """No remote of this name is configured to run agents."""

    code = "remote_not_found"

    def __init__(self, remote: str, *, nearest: Sequence[str] = ()) -> None:
        hint = f"Nearest: {', '.join(nearest)}." if nearest else "Name one in config.toml: see `taskyard remote check`."
        super().__init__(f"No remote {quote_value(remote)}.", hint)
        self.remote = truncate(remote)
        self.nearest = tuple(nearest)


class RemoteAway(TaskyardError):
    """A remote that runs agents cannot be reached now."""

    code = "remote_away"
    exit_code = 75

    def __init__(self, remote: str, why: str) -> None:
        super().__init__(f"{truncate(remote)} cannot be reached: {truncate(why, 300)}.")
        self.remote = truncate(remote)
        self.why = truncate(why, 300)
        self.retryable = True


class RemoteRefused(TaskyardError):
    """A remote that runs agents refused the request."""

    code = "remote_refused"

    def __init__(self, remote: str, why: str, advice: str = "") -> None:
        super().__init__(f"{truncate(remote)} will not: {truncate(why, 300)}.", advice)
        self.remote = truncate(remote)
        self.why = truncate(why, 300)


class HostAway(TaskyardError):
    """The host that runs a job does not respond: it is down, disconnected, or runs no Taskyard now."""

    code = "host_away"
    exit_code = 75

    def __init__(self, host: str, job_id: str, *, seconds: float, is_withdrawn: bool = True) -> None:
        """Set the message.

        Args:
            host: The host's name.
            job_id: The job.
            seconds: Since the host last responded.
            is_withdrawn: The request will not be carried out later.
        """
        done = "Nothing was done." if is_withdrawn else "It may still do what was asked for."
        super().__init__(
            f"Job {job_id} is on {quote_value(host)}, which has not responded for {seconds:.0f} s. {done}",
            "`taskyard relay` over there answers, if the machine and its way to the database are up.",
        )
        self.host = truncate(host)
        self.job_id = job_id
        self.seconds = round(seconds)
        self.retryable = is_withdrawn


class OutcomeUnknown(TaskyardError):
    """Another host started a request and did not finish it: whether it was carried out is unknown."""

    code = "outcome_unknown"

    def __init__(self, host: str, job_id: str, verb: str) -> None:
        super().__init__(
            f"{quote_value(host)} began to {verb} job {job_id} and was cut off: whether it was done is not known.",
            f"See for yourself before you ask again: `taskyard logs {job_id}`.",
        )
        self.host = truncate(host)
        self.job_id = job_id
        self.verb = verb


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
]
