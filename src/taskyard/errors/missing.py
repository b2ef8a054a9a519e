"""What is named and not there."""

from __future__ import annotations

from taskyard.errors.general import TaskyardError, clipped, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class NotFound(TaskyardError):
    """The thing named by the request does not exist."""

    code = "not_found"
    exit_code = 4


class TaskNotFound(NotFound):
    """No task with this id is on the list."""

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
    """No list of this name in the tasks folder."""

    def __init__(self, list_name: str, *, nearest: Sequence[str] = ()) -> None:
        hint = f"Nearest: {', '.join(nearest)}." if nearest else "`taskyard lists` names those there are."
        super().__init__(f"No list {list_name!r}.", hint)
        self.list = list_name
        self.nearest = tuple(nearest)


class RecipientNotFound(NotFound):
    """Nobody of this name can get mail here."""

    code = "recipient_not_found"

    def __init__(self, recipient: str, *, team: str, nearest: Sequence[str] = ()) -> None:
        hint = f"Nearest: {', '.join(nearest)}." if nearest else ""
        super().__init__(f"Nobody called {shown(recipient)} in team {team!r}.", hint)
        self.recipient = clipped(recipient)
        self.team = team
        self.nearest = tuple(nearest)


class TeamNotFound(NotFound):
    """No team of this name."""

    code = "team_not_found"

    def __init__(self, team: str, *, nearest: Sequence[str] = ()) -> None:
        hint = f"Nearest: {', '.join(nearest)}." if nearest else "`taskyard team list` names those there are."
        super().__init__(f"No team {shown(team)}. {hint}")
        self.team = clipped(team)
        self.nearest = tuple(nearest)


class JobNotFound(NotFound):
    """No job of this id was ever started here."""

    code = "job_not_found"

    def __init__(self, job_id: str, *, nearest: Sequence[str] = ()) -> None:
        hint = f"Nearest: {', '.join(nearest)}." if nearest else "See `taskyard ps --all`."
        super().__init__(f"No job {job_id}.", hint)
        self.job_id = job_id
        self.nearest = tuple(nearest)


class KindNotFound(NotFound):
    """No kind of job of this type is known here."""

    code = "kind_not_found"

    def __init__(self, kind: str, *, nearest: Sequence[str] = ()) -> None:
        hint = f" Nearest: {', '.join(nearest)}." if nearest else ""
        super().__init__(f"No kind of job is called {shown(kind)} here: is the package that has it installed?{hint}")
        self.kind = kind
        self.nearest = tuple(nearest)


class EngineNotFound(NotFound):
    """No engine of this name drives agents here."""

    code = "engine_not_found"

    def __init__(self, engine: str, *, nearest: Sequence[str] = ()) -> None:
        hint = f" Nearest: {', '.join(nearest)}." if nearest else ""
        super().__init__(f"No engine is called {shown(engine)} here; `taskyard engines` lists them.{hint}")
        self.engine = clipped(engine)
        self.nearest = tuple(nearest)


class OutputGone(NotFound):
    """The job is over and `taskyard gc` took what it had printed; how it ended is still known."""

    code = "output_gone"

    def __init__(self, job_id: str, *, status: str, cause: str, exit_code: int | None) -> None:
        how = f"exit code {exit_code}" if exit_code is not None else cause
        super().__init__(f"The output of job {job_id} was taken by `taskyard gc`. The job is {status} ({how}).")
        self.job_id = job_id
        self.status = status
        self.cause = cause
        self.job_exit_code = exit_code


class EventsGone(NotFound):
    """Where reading was to go on, the stream of events has nothing any more, or nothing yet."""

    code = "events_gone"

    def __init__(self, since: int, *, first: int, last: int) -> None:
        """`first` and `last`: where what is kept begins and ends."""
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
        super().__init__(f"Nothing is free for {shown(agent)} on list {list_name!r}: {why}.")
        self.agent = clipped(agent)
        self.list = list_name
        self.open = open
        self.taken = taken
