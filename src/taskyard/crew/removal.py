"""
A team's end by force: it always works, on members that are stuck, dead, damaged or not known at all.

Ended are members that are jobs of ours, with everything they started and the windows they live in, and a lead that is
`taskyard team up`. Others that joined (a program by its number, a person) are none of ours to end: they are out of the
team, and named.
"""

from __future__ import annotations

from taskyard.crew import leads
from taskyard.crew.ending import end_command, end_process, wake
from taskyard.crew.hiring import HOST
from taskyard.errors import Damaged, JobNotFound, TeamNotFound
from taskyard.names import folder_name
from taskyard.runtime.ending import read
from taskyard.runtime.folder import JobFolder
from taskyard.shapes import as_list, as_number, as_object, as_text
from taskyard.tasklist.team_record import Team
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from taskyard.app import Yard
    from taskyard.runtime.model import Job
    from taskyard.tasklist.liveness import Seen

#: Seconds a member has to end, in a team that is removed by force.
_GRACE = 2.0

#: The kind of job that a member is.
KIND = "in_process_teammate"


class Removed(NamedTuple):
    """What came of it."""

    team: Team
    released: tuple[str, ...]  #: tasks that are free again
    stopped: tuple[str, ...]  #: members that were ended, by name
    left: tuple[str, ...]  #: members that live on: none of ours to end
    partial: tuple[str, ...]  #: members of which something may be left


def remove_by_force(yard: Yard, team: str) -> Removed:
    """End everybody of ours, and the team with them.

    Raises:
        TeamNotFound, Conflict: there is no such team of ours.
    """
    found, members = _found(yard, team)
    jobs = {member_of(job): job for job in jobs_of_team(yard, team)}
    _wake(yard, jobs.values())  # whoever somebody has stopped can then end well
    held = _held(yard, team, {*jobs, *(member.name for member in found.members)})
    is_led_no_more = leads.end(yard.home, team)  # first: it would replace those that end
    jobs |= {member_of(job): job for job in jobs_of_team(yard, team)}
    gone = _stopped(yard, list(jobs.values()))
    stopped = [name for name, job in jobs.items() if _is_closed(yard, job) and job.id in gone]
    partial = [name for name in jobs if name not in stopped] + ([] if is_led_no_more else [found.lead or "lead"])
    try:
        yard.teams.remove(team, force=True)
    except TeamNotFound:
        pass  # its lead did that on its way out
    released = _given_back(yard, team, held, jobs)
    living = [seen.member.name for seen in members if seen.liveness not in ("dead", "unknown")]
    left = tuple(name for name in living if name not in jobs and name != found.lead)
    return Removed(found, released, tuple(stopped), left, tuple(partial))


def jobs_of_team(yard: Yard, team: str) -> Iterator[Job]:
    """The living jobs that are members of a team; what cannot be read is none."""
    wanted = folder_name("a team", team)
    for job in yard.jobs.list(report=_left_out):
        named = as_text((as_object(job.facts.get("identity")) or {}).get("teamName"))
        if job.type == KIND and named and folder_name("a team", named) == wanted:
            yield job


def _left_out(*_: object) -> None:
    """A job that cannot be read is nobody's member."""


def member_of(job: Job) -> str:
    """The name of the member that a job is."""
    return as_text((as_object(job.facts.get("identity")) or {}).get("agentName")) or job.id


def _wake(yard: Yard, jobs: Iterable[Job]) -> None:
    for job in jobs:
        wake(JobFolder(yard.home, _host(yard, job) or job.id))


def _stopped(yard: Yard, jobs: Sequence[Job]) -> set[str]:
    """Stop jobs, and those that are there for them to live in; which of them are over."""
    hosts = {host for job in jobs if (host := _host(yard, job))}
    alone = [job.id for job in jobs if not _host(yard, job)]
    if hosts or alone:
        yard.jobs.stop(*hosts, *alone, grace=_GRACE)
    for job_id in hosts:
        end_command(JobFolder(yard.home, job_id), grace=_GRACE)
    return {job.id for job in jobs if yard.jobs.get(job.id).is_final}


def _host(yard: Yard, job: Job) -> str:
    """The job of ours that a member lives inside of; "" if it has a process of its own, or lives in somebody else's."""
    if not job.is_inside or not job.parent:
        return ""
    try:
        around = yard.jobs.get(job.parent)
    except JobNotFound:
        return ""
    return around.id if f" {HOST} " in f"{around.command} " else ""


def _found(yard: Yard, team: str) -> tuple[Team, Sequence[Seen]]:
    """A team of ours and who is in it; nobody, if its record cannot be read."""
    try:
        found = yard.teams.get(team)
        if found.source != "taskyard":
            yard.teams.remove(team, force=True)  # which says why not
        return found, yard.teams.members(team)
    except Damaged:
        return Team(team), ()


def _is_closed(yard: Yard, job: Job) -> bool:
    """Have the program around a member's job end too: a window, or a terminal that a person gave it."""
    watcher = as_list((read(JobFolder(yard.home, job.id).record) or {}).get("watcher"))
    if not watcher or len(watcher) != 2:
        return True
    return end_process(as_number(watcher[0]), as_number(watcher[1]), patience=_GRACE, grace=_GRACE)


def _held(yard: Yard, team: str, names: set[str]) -> set[str]:
    """The unfinished tasks that members of these names have."""
    with yard.beside(team) as theirs:
        return {
            task.id
            for task in theirs.tasks.list()
            if task.owner is not None and task.owner in names and not task.is_done
        }


def _given_back(yard: Yard, team: str, held: set[str], names: Iterable[str]) -> tuple[str, ...]:
    """Put what members had in hand back into the pool; which of it is free now. A look settles their trackers."""
    with yard.beside(team) as theirs:
        for name in names:
            theirs.tasks.release_all(name)
        tasks = theirs.tasks.list(internal=True)
        return tuple(task.id for task in tasks if task.id in held and task.owner is None and not task.is_done)
