"""Who this process is to the list."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest

import taskyard
from support.yards import open_yard
from taskyard import config
from taskyard.agents.identity import Identity
from taskyard.jobs.kinds.shell import Shell
from taskyard.storage import process_registry
from taskyard.yard import register


@pytest.mark.req("L-09")
def test_yards_of_one_process_under_one_name_are_one_instance(tmp_path: Path) -> None:
    with open_yard(tmp_path, "ada") as one, open_yard(tmp_path, "ada", list="other") as two:
        assert (one.agent, two.agent) == ("ada", "ada")
        one.tasks.create("a")
        one.tasks.claim("1")
        with open_yard(tmp_path, "ada") as again:
            assert again.tasks.complete("1").is_done


@pytest.mark.req("L-09")
def test_a_timed_claim_lasts_exactly_its_span_though_the_clock_ticks_meanwhile(
    outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = itertools.count(1_000)
    monkeypatch.setattr("taskyard.agents.identity.now_ms", lambda: next(ticks))

    leases = [
        Identity(config.home(), "ada", register=register, is_person=person).lease("ada", seconds=5)
        for person in (True, False)
    ]

    assert [lease.expires and lease.expires - lease.since for lease in leases] == [5_000, 5_000]


@pytest.mark.req("L-09")
def test_each_kind_of_caller_holds_its_claims_by_its_own_means(outside: Path) -> None:
    home = config.home()
    program, person = Identity(home, "ada", register=register), Identity(home, "bob", register=register, is_person=True)

    assert (program.lease("ada").kind, program.lease("ada", seconds=5).kind) == ("process", "time")
    assert (person.lease("bob").kind, person.lease("bob", seconds=5).kind) == ("manual", "time")
    assert program.lease("ada").instance == program.instance("ada")
    assert person.lease("bob").instance == "by:bob"
    assert person.instance("bob") == "by:bob"
    assert Identity(home, None, register=register).instance("eve") == "", (
        "it has claimed nothing, so there is no instance yet"
    )
    assert program.lease("ada").token != program.lease("ada").token
    held = program.lease("ada")
    assert process_registry.is_holder_alive(held.lock, held.host, held.place) is True


@pytest.mark.req("L-09")
def test_a_forked_child_is_an_instance_of_its_own(outside: Path) -> None:
    home = config.home()
    parent = Identity(home, "ada", register=register).lease("ada").instance
    hear, tell = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(tell, Identity(home, "ada", register=register).lease("ada").instance.encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    said = os.read(hear, 100).decode()
    os.close(hear)
    os.close(tell)

    assert said
    assert said != parent


@pytest.mark.req("L-09")
def test_a_program_without_a_name_still_holds_claims_by_its_life(tmp_path: Path) -> None:
    with open_yard(tmp_path) as yard:
        assert yard.agent is None
        yard.tasks.create("a")
        lease = yard.tasks.claim("1", agent="eve").lease
        assert lease is not None
        assert (lease.owner, lease.kind) == ("eve", "process")


@pytest.mark.req("L-09")
def test_a_name_in_the_environment_counts_where_none_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_AGENT", "ada")
    with open_yard(tmp_path) as yard, open_yard(tmp_path, "bob") as other:
        assert (yard.agent, other.agent) == ("ada", "bob")


@pytest.mark.req("L-09")
def test_whoever_is_far_away_claims_for_a_time_under_a_name_that_outlives_the_process(
    outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_INSTANCE", "b12345678")  # a server inside a job serves others all the same
    home = config.home()
    one, two = Identity(home, "ada", register=register, lease=600), Identity(home, "ada", register=register, lease=600)

    assert (one.agent, two.agent) == ("ada", "ada-2")
    held = one.lease("ada")
    assert (held.kind, held.span, held.instance) == ("time", 600_000, one.instance("ada"))
    assert one.lease("ada", seconds=5).span == 5_000
    assert held.instance != two.lease("ada-2").instance
    assert one.living is not None
    assert process_registry.is_instance_alive(home, one.living.id)

    two.leave()
    one.leave()
    again = Identity(home, "ada", register=register, lease=600)
    assert (again.agent, again.instance("ada")) == ("ada", held.instance)
    again.leave()


def test_yards_for_callers_far_away_share_one_server_of_keepers(tmp_path: Path) -> None:
    first = taskyard.open(tasks_dir=tmp_path, list="plan", is_person=True)
    with first, taskyard.open(tasks_dir=tmp_path, list="plan", agent="ada", lease=60, sharing=first) as yard:
        one = first.jobs.run(Shell("true"))
        yard.jobs.close()  # which does not end what it only uses
        two = yard.jobs.run(Shell("echo $PPID"))
        assert (one.agent_id, two.agent_id) == (None, "ada")
        assert two.end is not None
        assert two.end.exit_code == 0
