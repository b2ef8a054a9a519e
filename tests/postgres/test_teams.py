"""Teams in a database: one record for all machines, and honest words about who of them lives."""

from __future__ import annotations

import os
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.cutting_proxy import Proxy
from taskyard.agents.teams import Team, Teams
from taskyard.config import Settings
from taskyard.core.system import process_start
from taskyard.errors import AlreadyExists, Damaged, RecipientNotFound, TeamHasLivingMembers, TeamNotFound
from taskyard.postgres import heartbeat
from taskyard.postgres.connection import Database, database
from taskyard.postgres.mail import PostgresTeamStore
from taskyard.yard import open_mail, open_teams

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.req("X-01", "M-01", "M-03")


@pytest.fixture
def machine(address: str, tmp_path: Path) -> Callable[[str], Teams]:
    """The teams as a machine of some name sees them: each has a home of its own."""
    return lambda name: open_teams(Settings(store=address), str(tmp_path / name))


def liveness(teams: Teams, team: str = "crew") -> dict[str, str]:
    return {seen.member.name: seen.liveness for seen in teams.members(team)}


def test_a_team_is_the_same_on_every_machine(machine: Callable[[str], Teams]) -> None:
    here, there = machine("a"), machine("b")
    here.create("crew", lead="ada")
    there.join("crew", "bob")
    here.join("crew", "carol", colour="red")
    there.leave("crew", "bob")
    here.progress("crew", "carol", state="working")

    found = there.get("crew")

    assert found == here.get("crew")
    assert (found.lead, [member.name for member in found.members]) == ("ada", ["ada", "carol"])
    assert [team.name for team in there.list()] == ["crew"]
    with pytest.raises(AlreadyExists):
        there.create("crew")
    with pytest.raises(TeamNotFound) as caught:
        there.get("craw")
    assert caught.value.nearest == ("crew",)


def test_many_that_join_at_once_are_all_in_it(machine: Callable[[str], Teams]) -> None:
    machine("a").create("crew")
    names = [f"m{number}" for number in range(12)]
    threads = [threading.Thread(target=partial(machine(name).join, "crew", name)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert sorted(member.name for member in machine("z").get("crew").members) == sorted(names)


def test_a_change_whose_answer_is_lost_is_one_change(leaky: tuple[Proxy, Database], address: str) -> None:
    way, where = leaky
    Teams("/nowhere", claude_folder="/nowhere", book=PostgresTeamStore(database(address))).create("old")
    teams = Teams("/nowhere", claude_folder="/nowhere", book=PostgresTeamStore(where))

    way.lose_answer(b"old\x00\x00\x00")  # its name, where another value follows: that of a change
    teams.remove("old")
    assert (way.lost, teams.list()) == (1, ())
    for number, name in enumerate(("ada", "bob", "carol")):
        way.lose_answer(b'"name": "' + name.encode())
        if number:
            teams.join("crew", name)
        else:
            teams.create("crew", lead=name)

    assert (way.lost, [member.name for member in teams.get("crew").members]) == (4, ["ada", "bob", "carol"])


def test_who_is_dead_here_the_kernel_says_and_elsewhere_what_is_heard(
    machine: Callable[[str], Teams], address: str, tmp_path: Path
) -> None:
    settings, where = Settings(store=address), database(address)
    here, there = machine("a"), machine("b")
    here.create("crew")
    child = os.fork()
    if child == 0:
        os.read(os.pipe()[0], 1)
    with heartbeat.register(str(tmp_path / "b"), "near", settings) as near:
        with heartbeat.register(str(tmp_path / "b"), "far", settings) as far:
            there.join("crew", "near", instance=near)
            there.join("crew", "far", instance=far)
            there.join("crew", "process", pid=child, start=process_start(child))
            there.join("crew", "outside")
            there.change("crew", lambda team: team and on_another_machine(team, "far"))
            assert liveness(here) == {"near": "idle", "far": "idle", "process": "idle", "outside": "unknown"}

            where.ask("UPDATE instance SET until = clock_timestamp() - interval '1 ms'")
            os.kill(child, 9)
            os.waitpid(child, 0)
            # Nothing was heard of either: here the kernel knows better.
            assert liveness(here) == {"near": "idle", "far": "dead", "process": "dead", "outside": "unknown"}
        with pytest.raises(AlreadyExists):
            here.join("crew", "near")
        assert here.join("crew", "far").name == "far"  # the dead make room
    assert liveness(here)["near"] == "dead", "it left"


def on_another_machine(team: Team, name: str) -> Team:
    """A team in which a member lives elsewhere."""
    moved = (m._replace(host="elsewhere/boot") if m.name == name else m for m in team.members)
    return team._replace(members=tuple(moved))


def test_members_get_mail_from_every_machine_until_they_leave(
    machine: Callable[[str], Teams], address: str, tmp_path: Path
) -> None:
    post = open_mail(Settings(store=address), str(tmp_path / "b"), "crew")
    machine("a").create("crew", lead="ada")
    machine("a").join("crew", "bob")

    assert post.known() == ["ada", "bob"]
    assert post.send("ada", "bob", "hi").state == "stored"
    machine("a").leave("crew", "bob")
    with pytest.raises(RecipientNotFound):
        post.send("ada", "bob", "too late")
    assert [message.text for message in post.take("bob")] == ["hi"]


def test_a_dissolved_teams_mail_is_kept_where_a_new_one_does_not_find_it(
    machine: Callable[[str], Teams], address: str, tmp_path: Path
) -> None:
    teams, settings = machine("a"), Settings(store=address)
    post = open_mail(settings, str(tmp_path / "b"), "crew")
    teams.create("crew", lead="ada")
    with heartbeat.register(str(tmp_path / "b"), "bob", settings) as bob:
        machine("b").join("crew", "bob", instance=bob)
        post.send("ada", "bob", "old")
        with pytest.raises(TeamHasLivingMembers):
            teams.remove("crew")
        teams.remove("crew", force=True)

    teams.create("crew", lead="bob")

    assert post.take("bob") == []
    assert database(address).ask("SELECT count(*) FROM message WHERE body LIKE '%%old%%'") == [(1,)]


def test_a_record_that_cannot_be_read_is_named_and_can_be_put_aside(
    machine: Callable[[str], Teams], address: str
) -> None:
    teams = machine("a")
    teams.create("crew")
    database(address).ask("UPDATE team SET body = 'rubbish'")

    assert (teams.list(), len(teams.damaged)) == ((), 1)
    with pytest.raises(Damaged):
        teams.remove("crew")
    teams.remove("crew", force=True)

    teams.create("crew")
    assert [team.name for team in teams.list()] == ["crew"]
    assert teams.damaged == []
    assert database(address).ask("SELECT count(*) FROM team WHERE body = 'rubbish'") == [(1,)]
