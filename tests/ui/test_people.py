"""Who is at work."""

from __future__ import annotations

import pytest

from taskyard.agents.teams import Member, MemberStatus
from taskyard.core.text import TASK_GLYPHS
from taskyard.jobs.model import Job, JobStatus
from taskyard.ui.snapshot import AgentView, agent_views
from taskyard.ui.tasks import TaskView

NOW = 1_000_000


def doing(task_id: str, owner: str, active: str = "") -> TaskView:
    return TaskView(task_id, f"Task {task_id}", "doing", *TASK_GLYPHS["doing"], owner=owner, since=5, doing=active)


def mate(name: str, team: str = "release", **facts: object) -> Job:
    told = {"identity": {"agentName": name, "teamName": team}, **facts}
    return Job(f"t0000000{name[0]}", "in_process_teammate", JobStatus.RUNNING, name, start_time=1, facts=told)


def shown(*given: object, members: tuple[MemberStatus, ...] = ()) -> dict[str, AgentView]:
    tasks = [one for one in given if isinstance(one, TaskView)]
    jobs = [one for one in given if isinstance(one, Job)]
    return {person.name: person for person in agent_views(tasks, jobs, members, team="release", now=NOW)}


@pytest.mark.req("U-01")
def test_a_teammate_works_or_idles_as_its_job_says() -> None:
    found = shown(mate("ada", isIdle=True), mate("bob", isIdle=False), mate("cy", "another team"))

    assert {name: (person.glyph, person.state) for name, person in found.items()} == {
        "bob": ("▶", "working"),
        "ada": ("…", "idle"),
    }
    assert found["ada"].job == "t0000000a"


@pytest.mark.req("U-03")
def test_what_somebody_is_at_is_told_in_the_tasks_own_words() -> None:
    found = shown(doing("12", "ada", "Migrating the schema"), doing("14", "bob"))

    assert (found["ada"].doing, found["ada"].task, found["ada"].since) == ("Migrating the schema", "12", 5)
    assert found["bob"].doing == "Task 14"


@pytest.mark.req("U-01")
def test_whoever_asks_something_comes_right_after_those_at_work() -> None:
    asking = mate("ann")._replace(needs_input=True)

    assert [(person.name, person.state) for person in shown(asking, mate("bob"), mate("al", isIdle=True)).values()] == [
        ("bob", "working"),
        ("ann", "waits"),
        ("al", "idle"),
    ]


@pytest.mark.req("U-01", "T-02")
@pytest.mark.parametrize(
    ("liveness", "state"),
    [("alive", "working"), ("idle", "idle"), ("stalled", "stalled"), ("dead", "gone"), ("unknown", "idle")],
)
def test_of_members_that_are_no_jobs_the_team_tells(liveness: str, state: str) -> None:
    found = shown(members=(MemberStatus(Member("dan", colour="red"), liveness),))

    assert (found["dan"].state, found["dan"].colour) == (state, "red")
