"""Members at work: in a terminal, in windows of tmux, and what becomes of them."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

import taskyard
from support.cli import Ran, process, start
from support.cli import taskyard as command_line
from support.crews import members, noted, nothing_is_left, noting, plan
from support.tmux import said, tmux_server
from support.wait import until
from taskyard.agents.lead.members import run_member

__all__ = ["tmux_server"]  # a fixture


def kinds_of(team: str) -> list[str]:
    """What the members at work are."""
    return [one["kind"] for one in command_line("team", "show", team, "--json").data["members"] if one["job"]]


@pytest.mark.req("M-01", "M-04", "T-05")
def test_a_person_has_a_member_work_in_any_terminal(tmp_path: Path) -> None:
    side = tmp_path / "side"
    command_line("team", "create", "crew", "--lead", "boss")
    command_line("task", "add", "One", "--list", "crew")
    command_line("task", "add", "Two", "--list", "crew")

    done = process("team", "join", "crew", "--command", noting(side, work="echo I did $n"))

    assert done.code == 0, done
    assert [line[:2] for line in noted(side)] == [["1", "ada"], ["2", "ada"]]
    assert "I did 2" in done.out.splitlines()
    assert command_line("team", "show", "crew", "--json").data["members"][0]["name"] == "boss"
    assert len(command_line("team", "show", "crew", "--json").data["members"]) == 1


@pytest.mark.req("M-01", "L-02")
def test_a_member_works_in_a_team_of_claude_code_s_too(tmp_path: Path) -> None:
    config = Path(os.environ["CLAUDE_CONFIG_DIR"], "teams", "theirs", "config.json")
    config.parent.mkdir(parents=True)
    lead = {"agentId": "team-lead@theirs", "name": "team-lead", "joinedAt": 1, "backendType": "in-process"}
    before = {"name": "theirs", "createdAt": 1, "leadAgentId": "team-lead@theirs", "members": [lead]}
    config.write_text(json.dumps(before), encoding="utf-8")
    command_line("task", "add", "One", "--list", "theirs")

    assert process("team", "join", "theirs", "ada", "--command", noting(tmp_path / "side")).code == 0

    assert noted(tmp_path / "side") == [["1", "ada", "theirs"]]
    assert json.loads(config.read_text(encoding="utf-8"))["members"] == [lead]
    assert process("team", "up", "theirs", "--command", "cat").code == 5


@pytest.mark.req("L-10", "M-01", "B-09")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_however_its_terminal_ends_the_member_ends_with_it_and_its_tasks_go_back(number: signal.Signals) -> None:
    command_line("team", "create", "crew", "--lead", "boss")
    command_line("task", "add", "One", "--list", "crew")
    child = start("team", "join", "crew", "bob", "--command", "sleep 600")
    with taskyard.open(list="crew", is_person=True) as yard:
        until(lambda: yard.tasks.get("1").owner == "bob", timeout=30)
        [member] = members()
        assert (member["backgrounded"], command_line("team", "join", "crew", "bob", "--command", "cat").code) == (
            False,
            5,
        )

        child.send_signal(number)
        child.communicate(timeout=30)

        until(lambda: yard.tasks.get("1").owner is None, timeout=30)
        until(lambda: yard.jobs.get(str(member["id"])).is_final, timeout=30)
        end = yard.jobs.get(str(member["id"])).end
        assert (end.proof if end else "") == "proved"
    if number != signal.SIGKILL:
        assert [one["name"] for one in command_line("team", "show", "crew", "--json").data["members"]] == ["boss"]


@pytest.mark.req("M-01")
def test_members_work_in_windows_of_tmux_that_close_with_them(tmux_server: Path, tmp_path: Path) -> None:
    side, go = tmp_path / "side", tmp_path / "go"
    text = "name: '#(touch made);'\ntasks: [One, Two]\n"
    command = noting(side, work=f"while [ ! -e {go} ]; do sleep 0.05; done")
    words = ["--agents", "2", "--in", "tmux", "--command", command, "--names", "C-c,$(touch made)"]
    child = start("team", "up", "--plan", plan(tmp_path, text), *words)
    team = "#(touch made);"
    with taskyard.open(list=team, is_person=True) as yard:
        until(lambda: sum(task.owner is not None for task in yard.tasks.list()) == 2, timeout=40)
    assert said("list-windows", "-a", "-F", "#{window_name}").split() == ["C-c", "--touch-made-"]
    until(lambda: kinds_of(team) == ["tmux", "tmux"], timeout=40)

    go.touch()

    out, err = child.communicate(timeout=60)
    assert (child.returncode, len(noted(side))) == (0, 2), (out, err)
    until(lambda: said("list-windows", "-a") == "")
    assert not list(tmp_path.rglob("made"))
    nothing_is_left(team)


@pytest.mark.req("M-01", "K-04", "L-10")
def test_members_inside_one_process_are_replaced_when_that_is_killed(tmp_path: Path) -> None:
    side, go = tmp_path / "side", tmp_path / "go"
    command = noting(side, work=f"while [ ! -e {go} ]; do sleep 0.05; done")
    words = ["--agents", "2", "--in", "inside", "--command", command, "--json"]
    child = start("team", "up", "--plan", plan(tmp_path, "name: shop\ntasks: [One, Two]\n"), *words)
    with taskyard.open(list="shop", is_person=True) as yard:
        until(lambda: sum(task.owner is not None for task in yard.tasks.list()) == 2, timeout=40)
        [host] = [job for job in command_line("ps", "--json").data if job["type"] == "local_bash"]
        assert {job["parent"] for job in members()} == {host["id"]}

        os.kill(host["pid"], signal.SIGKILL)
        until(lambda: len(members()) == 2 and host["id"] not in {job["parent"] for job in members()}, timeout=30)
        go.touch()

        out, err = child.communicate(timeout=60)
    done = Ran(child.returncode, out, err)
    assert (done.code, done.data["died"], done.data["replaced"]) == (0, 2, 2), done
    assert sorted(line[0] for line in noted(side))[-1] in "1234"
    nothing_is_left("shop")


@pytest.mark.req("M-01")
def test_a_window_in_which_no_member_comes_to_life_is_reported_and_closed(tmux_server: Path, tmp_path: Path) -> None:
    words = ["--in", "tmux", "--agents", "1", "--command", "/no/such/agent", "--json"]
    failed = process("team", "up", "--plan", plan(tmp_path, "name: shop\ntasks: [One]\n"), *words)
    assert (failed.code, failed.error["code"]) == (1, "member_not_started")
    until(lambda: said("list-windows", "-a") == "")
    nothing_is_left("shop")


@pytest.mark.req("M-01", "M-02")
def test_plans_are_approved_or_rejected_by_the_lead(tmp_path: Path) -> None:
    side = tmp_path / "side"
    words = ["--agents", "1", "--plan-first", "--command", noting(side, work="echo plan of $n")]
    child = start("team", "up", "--plan", plan(tmp_path, "name: shop\ntasks: [One]\n"), *words)
    assert child.stdout is not None
    told = iter(child.stdout.readline, "")

    def asked() -> None:
        assert (
            next(line for line in told if "wants a plan approved" in line) == "ada wants a plan approved: plan of 1\n"
        )

    asked()
    assert command_line("team", "reject", "shop", "ada").code == 2
    assert command_line("team", "reject", "shop", "ada", "Think again").out == "ada has to change its plan.\n"
    asked()
    shown = command_line("team", "show", "shop").out
    assert "    requests plan approval: `taskyard team approve shop ada`" in shown
    assert command_line("team", "approve", "shop", "ada").out == "ada may proceed.\n"
    child.communicate(timeout=60)
    assert (child.returncode, len(noted(side))) == (0, 3)
    assert command_line("team", "approve", "shop", "ada").code == 4


@pytest.mark.req("M-02")
def test_a_word_of_approval_counts_for_the_plan_that_was_seen_and_for_no_later_one(tmp_path: Path) -> None:
    words = ["--agents", "1", "--plan-first", "--command", noting(tmp_path / "side")]
    child = start("team", "up", "--plan", plan(tmp_path, "name: shop\ntasks: [One, Two]\n"), *words)
    assert child.stdout is not None
    told = iter(child.stdout.readline, "")

    with taskyard.open(list="shop", is_person=True) as yard:
        next(line for line in told if "wants a plan approved" in line)
        [ada] = [job for job in yard.jobs.list() if job.type == "in_process_teammate"]
        assert ada.pid is not None
        os.kill(ada.pid, signal.SIGSTOP)  # it reads both words only after the first has let it begin
        assert command_line("team", "approve", "shop", "ada").code == 0
        assert command_line("team", "approve", "shop", "ada").code == 0
        os.kill(ada.pid, signal.SIGCONT)
        next(line for line in told if "starts #2" in line)
        next(line for line in told if "wants a plan approved" in line)
        until(lambda: yard.mail.peek("ada") == [])
        assert yard.jobs.get(ada.id).facts["awaitsApproval"] is True
    assert command_line("team", "approve", "shop", "ada").code == 0
    child.communicate(timeout=60)
    assert child.returncode == 0


@pytest.mark.req("M-01", "L-10")
def test_a_second_member_of_the_same_name_is_sent_away_and_the_first_one_goes_on(tmp_path: Path) -> None:
    command_line("team", "create", "crew", "--lead", "boss")
    command_line("task", "add", "One", "--list", "crew")
    first = start("team", "join", "crew", "ada", "--command", "sh -c 'read x; sleep 600'")
    with taskyard.open(list="crew", is_person=True) as yard:
        until(lambda: [task.owner for task in yard.tasks.list()] == ["ada"])
        spec = taskyard.Teammate("ada", "crew", command=["true"], is_inside=False)

        second = run_member(yard, spec, started=lambda _: None, show=lambda _: None)

        assert second.end is not None
        assert "There is already a member" in second.end.error
        assert [seen.member.name for seen in yard.teams.members("crew")] == ["boss", "ada"]
        assert [task.owner for task in yard.tasks.list()] == ["ada"]
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=60)
