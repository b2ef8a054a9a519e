"""Remove a team by force, whatever the state of its members, and list who is in a team.

Stopped are members that are jobs of ours, with everything they started and their tmux windows, and a lead
that is `taskyard team up` (recorded by PID in `leads/`, so that it is found even if it hangs). Others that
joined (a program by its PID, a person) are not ours to stop: they are removed from the team, and named in the
result.
"""

from __future__ import annotations

import json
import os

from taskyard.agents.lead.members import HOST_COMMAND, continue_job, end_command, end_process
from taskyard.agents.teams import Team
from taskyard.core import files
from taskyard.core.system import process_start, this_host
from taskyard.core.values import NamedTuple, as_list, as_number, as_object, as_text, folder_name
from taskyard.errors import Damaged, JobNotFound, TeamNotFound
from taskyard.jobs.exit_record import read_json
from taskyard.jobs.job_dir import JobPaths
from taskyard.tasks.model import TaskStatus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from taskyard.agents.teams import Member, MemberStatus
    from taskyard.jobs.model import Job
    from taskyard.tasks.model import Task
    from taskyard.yard import Yard


#: Seconds a lead has to stop its members after SIGTERM, before SIGKILL.
_LEAD_GRACE = 5.0


def record_lead(home: str, team: str) -> None:
    """Record that this process leads `team`."""
    files.make_private_folder(f"{home}/leads")
    record = {"pid": os.getpid(), "start": process_start(), "host": this_host()}
    files.replace(_lead_path(home, team), json.dumps(record).encode("ascii"))


def forget_lead(home: str, team: str) -> None:
    """Remove the record if this process wrote it."""
    if _read_lead(home, team) == (os.getpid(), process_start()):
        os.unlink(_lead_path(home, team))


def end_lead(home: str, team: str) -> bool:
    """Terminate the process that leads `team`, if there is one; False if it could not be terminated."""
    pid, start = _read_lead(home, team)
    if not pid:
        return True
    is_gone = pid == os.getpid() or end_process(pid, start, grace=_LEAD_GRACE)
    if is_gone and pid != os.getpid():
        try:
            os.unlink(_lead_path(home, team))
        except FileNotFoundError:
            pass  # it did so itself
    return is_gone


def _read_lead(home: str, team: str) -> tuple[int, int]:
    record = read_json(_lead_path(home, team)) or {}
    if record.get("host") != this_host():
        return 0, 0
    return as_number(record.get("pid")), as_number(record.get("start"))


def _lead_path(home: str, team: str) -> str:
    return f"{home}/leads/{folder_name('a team', team)}.json"


#: Seconds a member has to exit when its team is removed by force.
_REMOVAL_GRACE = 2.0

#: Job type of members.
KIND = "in_process_teammate"


class TeamRemoval(NamedTuple):
    """Result of a forced removal."""

    team: Team
    released: tuple[str, ...]  #: tasks returned to the pool
    stopped: tuple[str, ...]  #: names of members that were stopped
    left: tuple[str, ...]  #: members that still run: not ours to stop
    partial: tuple[str, ...]  #: members of which something may be left


def remove_by_force(yard: Yard, team: str) -> TeamRemoval:
    """Stop all our members, and remove the team.

    Raises:
        TeamNotFound, Conflict: there is no such team of ours.
    """
    found, members = _find_team(yard, team)
    jobs = {member_name(job): job for job in jobs_of_team(yard, team)}
    _continue_jobs(yard, jobs.values())  # members stopped by a signal can then exit cleanly
    held = _owned_tasks(yard, team, {*jobs, *(member.name for member in found.members)})
    is_led_no_more = end_lead(yard.home, team)  # first: it would replace members that end
    jobs |= {member_name(job): job for job in jobs_of_team(yard, team)}
    gone = _stop_jobs(yard, list(jobs.values()))
    stopped = [name for name, job in jobs.items() if _close_viewer(yard, job) and job.id in gone]
    partial = [name for name in jobs if name not in stopped] + ([] if is_led_no_more else [found.lead or "lead"])
    try:
        yard.teams.remove(team, force=True)
    except TeamNotFound:
        pass  # its lead removed it on exit
    released = _release_tasks(yard, team, held, jobs)
    living = [seen.member.name for seen in members if seen.liveness not in ("dead", "unknown")]
    left = tuple(name for name in living if name not in jobs and name != found.lead)
    return TeamRemoval(found, released, tuple(stopped), left, tuple(partial))


def jobs_of_team(yard: Yard, team: str) -> Iterator[Job]:
    """Yield the running jobs that are members of a team; unreadable ones are skipped."""
    wanted = folder_name("a team", team)
    for job in yard.jobs.list(report=_ignore):
        named = as_text((as_object(job.facts.get("identity")) or {}).get("teamName"))
        if job.type == KIND and named and folder_name("a team", named) == wanted:
            yield job


def _ignore(*_: object) -> None:
    """Ignore a job that cannot be read: it is not a member."""


def member_name(job: Job) -> str:
    """Return the name of the member that a job runs."""
    return as_text((as_object(job.facts.get("identity")) or {}).get("agentName")) or job.id


def _continue_jobs(yard: Yard, jobs: Iterable[Job]) -> None:
    for job in jobs:
        continue_job(JobPaths(yard.home, _host(yard, job) or job.id))


def _stop_jobs(yard: Yard, jobs: Sequence[Job]) -> set[str]:
    """Stop jobs and the processes that host them; return the ids of those that ended."""
    hosts = {host for job in jobs if (host := _host(yard, job))}
    alone = [job.id for job in jobs if not _host(yard, job)]
    if hosts or alone:
        yard.jobs.stop(*hosts, *alone, grace=_REMOVAL_GRACE)
    for job_id in hosts:
        end_command(JobPaths(yard.home, job_id), grace=_REMOVAL_GRACE)
    return {job.id for job in jobs if yard.jobs.get(job.id).is_final}


def _host(yard: Yard, job: Job) -> str:
    """Return the id of our host job around a member; "" if it has its own process, or runs in another program."""
    if not job.is_inside or not job.parent:
        return ""
    try:
        around = yard.jobs.get(job.parent)
    except JobNotFound:
        return ""
    return around.id if f" {HOST_COMMAND} " in f"{around.command} " else ""


def _find_team(yard: Yard, team: str) -> tuple[Team, Sequence[MemberStatus]]:
    """Return a team of ours and its members; no members if its record cannot be read."""
    try:
        found = yard.teams.get(team)
        if found.source != "taskyard":
            yard.teams.remove(team, force=True)  # raises with the reason
        return found, yard.teams.members(team)
    except Damaged:
        return Team(team), ()


def _close_viewer(yard: Yard, job: Job) -> bool:
    """Terminate the program around a member's job too: a tmux window, or the user's terminal."""
    watcher = as_list((read_json(JobPaths(yard.home, job.id).record) or {}).get("watcher"))
    if not watcher or len(watcher) != 2:
        return True
    return end_process(as_number(watcher[0]), as_number(watcher[1]), patience=_REMOVAL_GRACE, grace=_REMOVAL_GRACE)


def _owned_tasks(yard: Yard, team: str, names: set[str]) -> set[str]:
    """Return the ids of unfinished tasks owned by members of these names."""
    with yard.beside(team) as theirs:
        return {
            task.id
            for task in theirs.tasks.list()
            if task.owner is not None and task.owner in names and not task.is_done
        }


def _release_tasks(yard: Yard, team: str, held: set[str], names: Iterable[str]) -> tuple[str, ...]:
    """Return the members' tasks to the pool; return the ids now free. Listing also completes their trackers."""
    with yard.beside(team) as theirs:
        for name in names:
            theirs.tasks.release_all(name)
        tasks = theirs.tasks.list(internal=True)
        return tuple(task.id for task in tasks if task.id in held and task.owner is None and not task.is_done)


class RosterEntry(NamedTuple):
    """A member with its liveness, job and current task."""

    member: Member
    liveness: str
    job: Job | None
    task: Task | None


def roster(yard: Yard, team: str) -> tuple[RosterEntry, ...]:
    """Return all members of a team.

    Raises:
        TeamNotFound: there is none.
    """
    jobs = {folder_name("an agent", member_name(job)): job for job in jobs_of_team(yard, team)}
    with yard.beside(team) as theirs:
        tasks = theirs.tasks.list()
    busy = {task.owner: task for task in reversed(tasks) if task.owner and task.status is TaskStatus.IN_PROGRESS}
    return tuple(
        RosterEntry(
            seen.member,
            seen.liveness,
            jobs.get(folder_name("an agent", seen.member.name)),
            busy.get(seen.member.name),
        )
        for seen in yard.teams.members(team)
    )
