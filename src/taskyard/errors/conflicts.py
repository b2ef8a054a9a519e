"""Well formed, at the wrong moment: look again."""

from __future__ import annotations

from taskyard.errors.general import TaskyardError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: More tasks than this are counted in a message, not named.
_MOST_NAMED = 20

#: So many ids are named in a sentence; `tasks` of the error has them all.
_SHOWN = 10


class Conflict(TaskyardError):
    """The request is well formed but the current state forbids it."""

    code = "conflict"
    exit_code = 5


class AlreadyExists(Conflict):
    """There is one of this name already."""

    code = "already_exists"

    def __init__(self, what: str, name: str, *, hint: str = "") -> None:
        """`hint`: a sentence on what to do next."""
        super().__init__(f"There is already {what} called {name!r}.{' ' + hint if hint else ''}")
        self.name = name


class NothingToRestore(AlreadyExists):
    """The task is on the list: it was not removed, or is back already."""

    def __init__(self, task_id: str, *, list_name: str) -> None:
        super().__init__("a task", f"#{task_id}")
        self._fact = f"Task #{task_id} is on list {list_name!r}: there is nothing to restore."
        self.args = (f"{self._fact} `taskyard task show {task_id}` shows it.",)
        self.task_id = task_id
        self.list = list_name


class ListNotEmpty(Conflict):
    """A list can be taken over only into an empty one. Nothing was changed."""

    code = "list_not_empty"

    def __init__(self, list_name: str, count: int) -> None:
        """`count`: how many tasks are there."""
        tasks = "1 task" if count == 1 else f"{count} tasks"
        super().__init__(
            f"List {list_name!r} has {tasks}: ids can be kept only on an empty list.",
            "Name another list, put these away (`taskyard task reset`), or import without keeping ids.",
        )
        self.list = list_name
        self.count = count


class TeamHasLivingMembers(Conflict):
    """A team is not dissolved under the feet of those who work in it."""

    code = "team_has_living_members"

    def __init__(self, team: str, members: Sequence[str]) -> None:
        super().__init__(
            f"Team {team!r} still has members that may live: {', '.join(members)}. Use --force to remove it."
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
        """`instance`: the living holder, where it has the caller's own name. `forcible`: a person may insist.

        `nameless`: the caller gave no name, and the claim is one that anybody with the name may act on.
        """
        who, ask = repr(owner), f"Ask {owner!r}"
        if nameless:
            ask = f"If that is you, add `--by {owner}`; if not, ask {owner!r}"
        if instance is not None:
            who = f"another living {owner!r} (instance {instance})"
            ask = "If that is you, give the claim's token; if not, work under another name"
        last = f"put it back into the pool with `taskyard task release {task_id} --force`"
        if forcible:
            last = "as a person, insist with --force"
        super().__init__(
            f"Task #{task_id} is already claimed by {who}.",
            f"{ask}, take another with `taskyard task next`, or {last}.",
        )
        self.task_id = task_id
        self.owner = owner
        self.instance = instance


class AlreadyResolved(Conflict):
    """The task is completed; there is nothing left to claim."""

    code = "already_resolved"

    def __init__(self, task_id: str) -> None:
        super().__init__(f"Task #{task_id} is already completed.", f"`taskyard task reopen {task_id}` opens it again.")
        self.task_id = task_id


class StillOpen(Conflict):
    """Tasks that are not completed are not put away without a word."""

    code = "still_open"

    def __init__(self, tasks: Sequence[str]) -> None:
        which = ", ".join(f"#{task}" for task in tasks[:_SHOWN]) + (", …" if len(tasks) > _SHOWN else "")
        how = f"{which} is not completed" if len(tasks) == 1 else f"{which} are not completed"
        super().__init__(f"{how}. Complete first what is to be archived, remove it, or insist with --force.")
        self.tasks = tuple(tasks)


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
        super().__init__(
            f"{agent!r} still has open work: {', '.join('#' + t for t in tasks)}.", "Complete or release that first."
        )
        self.agent = agent
        self.tasks = tuple(tasks)


class BadTransition(Conflict):
    """The task cannot go from its status to that one."""

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
    """A hook said no; nothing was saved but what an import had `added` before."""

    code = "hook_refused"

    def __init__(self, event: str, hook: str, exit_code: int | None, stderr: str, *, added: Sequence[str] = ()) -> None:
        said = stderr.strip() or "(the hook said nothing on stderr)"
        text = f"{event} hook feedback:\n[{hook}]: {said}"
        if added:
            more = f" and {len(added) - _MOST_NAMED} more" if len(added) > _MOST_NAMED else ""
            names = ", ".join("#" + task_id for task_id in added[:_MOST_NAMED])
            text += f"\nAdded before it, and still there: {names}{more}."
        super().__init__(text)
        self.event = event
        self.hook = hook
        self.hook_exit_code = exit_code
        self.stderr = stderr
        self.added = tuple(added)

    def after(self, added: Iterable[str]) -> HookRefused:
        """The same refusal, in the middle of an import that had added these tasks."""
        return HookRefused(self.event, self.hook, self.hook_exit_code, self.stderr, added=tuple(added))


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
    """A job that is over can no longer be steered."""

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
    """A job that waits for its turn has nothing yet that could be paused, resumed or typed into."""

    code = "job_not_begun"

    def __init__(self, job_id: str, waits_for: str) -> None:
        super().__init__(f"Job {job_id} has not begun: it waits for {waits_for}. Try again when it runs, or stop it.")
        self.job_id = job_id
        self.waits_for = waits_for
