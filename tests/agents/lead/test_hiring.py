"""Members are started, and each start is confirmed."""

from __future__ import annotations

import pytest

import taskyard
from taskyard.agents.lead import members
from taskyard.agents.lead.members import MemberHandle
from taskyard.errors import MemberNotStarted
from taskyard.jobs.kinds.shell import Shell
from taskyard.storage.process_registry import register_unnamed


@pytest.mark.req("M-01", "M-04")
def test_another_member_of_its_name_is_not_taken_for_the_one_that_was_started() -> None:
    with taskyard.open(list="crew", agent="lead") as yard:
        yard.teams.create("crew", lead="lead")
        other = register_unnamed(yard.home)
        yard.teams.join("crew", "ada", kind="process", instance=other)
        second = taskyard.Teammate("ada", "crew", command=["true"], is_inside=False)
        with pytest.raises(MemberNotStarted, match="ada"):
            members.confirm(yard, "crew", MemberHandle("ada", yard.jobs.start(second).id))
        [ada] = [seen.member for seen in yard.teams.members("crew") if seen.member.name == "ada"]
        assert ada.instance == other.id
        other.leave()


@pytest.mark.req("M-01", "M-04")
def test_one_that_does_not_join_in_time_is_ended_and_reported() -> None:
    with taskyard.open(list="crew", agent="lead") as yard:
        yard.teams.create("crew", lead="lead")
        job = yard.jobs.start(Shell("sleep 600"))
        with pytest.raises(MemberNotStarted, match="it did not join within 0 s"):
            members.confirm(yard, "crew", MemberHandle("ada", job.id), patience=0.1)
        assert yard.jobs.get(job.id).is_final
