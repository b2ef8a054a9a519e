"""The lead's round, where timing decides."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import taskyard
from taskyard.agents.lead import members, team_lead
from taskyard.agents.lead.members import MemberHandle, MemberSpec
from taskyard.agents.lead.plan_file import read_plan
from taskyard.agents.lead.team_lead import TeamLead, TeamOptions, create_team
from taskyard.errors import StorageError
from taskyard.jobs.kinds.shell import Shell


@pytest.mark.req("M-01", "M-02")
def test_a_member_that_leaves_while_it_is_asked_to_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object, **__: object) -> None:
        raise StorageError(str(tmp_path), "No such file or directory")

    plan = tmp_path / "plan.json"
    plan.write_text('{"tasks": ["One"]}', encoding="utf-8")
    with taskyard.open(list="shop", agent="lead") as yard, create_team(yard, "shop", read_plan(str(plan))):
        wish = MemberSpec("shop", engine="command", command=("sh", "-c", "read x; echo done"), on_parent_exit="kill")
        lead = TeamLead(yard, TeamOptions(wish, 1), tell=lambda _: None)
        monkeypatch.setattr(type(yard.mail), "send", gone)
        outcome = lead.lead()
    assert (outcome.open, outcome.faults) == ((), ())


@pytest.mark.req("M-01", "M-04")
def test_a_member_that_takes_its_time_to_come_in_place_of_another_keeps_the_lead_from_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(team_lead, "_SHUTDOWN_TIMEOUT", 0.1)
    go, told, begin = tmp_path / "go", list[str](), members.start
    plan = tmp_path / "plan.json"
    plan.write_text('{"tasks": ["One"]}', encoding="utf-8")
    with taskyard.open(list="shop", agent="lead") as yard, create_team(yard, "shop", read_plan(str(plan))):

        def start(*args: Any, **more: Any) -> Iterator[MemberHandle]:
            if told:  # in place of another: somebody who never comes
                return iter([MemberHandle("late", yard.jobs.start(Shell("sleep 600")).id)])
            return begin(*args, **more)

        def tell(line: str) -> None:
            told.append(line)
            name, _, job = line.partition(" joins as ")
            if name == "bob" and job:
                yard.jobs.stop(job)
            elif " died (" in line:
                go.touch()

        monkeypatch.setattr(members, "start", start)
        command = ("sh", "-c", f"until [ -e '{go}' ]; do sleep 0.05; done; echo done")
        wish = MemberSpec("shop", engine="command", command=command, on_parent_exit="kill")
        outcome = TeamLead(yard, TeamOptions(wish, 2, names=("ada", "bob")), tell=tell).lead()
    assert outcome.open == ()
    assert not [line for line in told if "late" in line]
    assert outcome.faults == ()
