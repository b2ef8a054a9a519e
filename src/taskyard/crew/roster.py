"""Who is in a team, put together: the kernel's word, the job that a member is, the task it has in hand."""

from __future__ import annotations

from taskyard.crew.removal import jobs_of_team, member_of
from taskyard.names import folder_name
from taskyard.tasklist.model import TaskStatus
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.app import Yard
    from taskyard.runtime.model import Job
    from taskyard.tasklist.model import Task
    from taskyard.tasklist.team_record import Member


class Place(NamedTuple):
    """A member, and what is known of it now."""

    member: Member
    liveness: str
    job: Job | None
    task: Task | None


def roster(yard: Yard, team: str) -> tuple[Place, ...]:
    """Everybody in a team.

    Raises:
        TeamNotFound: there is none.
    """
    jobs = {folder_name("an agent", member_of(job)): job for job in jobs_of_team(yard, team)}
    with yard.beside(team) as theirs:
        tasks = theirs.tasks.list()
    busy = {task.owner: task for task in reversed(tasks) if task.owner and task.status is TaskStatus.IN_PROGRESS}
    return tuple(
        Place(
            seen.member,
            seen.liveness,
            jobs.get(folder_name("an agent", seen.member.name)),
            busy.get(seen.member.name),
        )
        for seen in yard.teams.members(team)
    )
