"""`taskyard team up`: teams as people run them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

import taskyard
from support.cli import Ran, process, start
from support.cli import taskyard as command_line
from support.crews import members, noted, nothing_is_left, noting, plan
from support.wait import until
from taskyard.jobs.job_dir import JobPaths, supervisor_pid

PLAN = """\
name: shop
tasks:
  - {id: spec, subject: Read the specification}
  - {id: parser, subject: Write the parser, needs: spec}
  - {id: printer, subject: Write the printer, needs: spec}
  - {id: both, subject: Put both together, needs: [parser, printer]}
"""


def ended(child: subprocess.Popen[str], *, timeout: float = 60) -> Ran:
    out, err = child.communicate(timeout=timeout)
    return Ran(child.returncode, out, err)


@pytest.mark.req("M-01", "M-04", "L-17")
def test_a_plan_is_worked_by_a_team_to_its_end_and_nothing_is_left(tmp_path: Path) -> None:
    side = tmp_path / "side"
    tells = """echo '{"type": "usage", "output_tokens": 10}'; echo '{"type": "cost", "usd": 0.25}'"""
    words = ["team", "up", "--plan", plan(tmp_path, PLAN), "--agents", "2", "--command", noting(side, work=tells)]

    done = process(*words, "--json")

    assert done.code == 0, done
    assert done.data["tasks"] == {"total": 4, "done": 4}
    assert (done.data["tokens"], done.data["cost_usd"]) == (40, 1.0)
    assert "verification" in done.data["nudge"]
    order = [int(line[0]) for line in noted(side)]
    assert sorted(order) == [1, 2, 3, 4]
    assert (order[0], order[-1]) == (1, 4)
    assert {line[1] for line in noted(side)} <= {"ada", "ben"}  # each acts under its own name …
    assert {line[2] for line in noted(side)} == {"shop"}  # … on the team's list
    assert "completes #4 Put both together" in done.err
    nothing_is_left("shop")

    again = process(*words, "--json").data

    assert (again["tasks"], again["jobs"]) == ({"total": 4, "done": 4}, [])  # the same plan twice adds nothing


@pytest.mark.req("M-01")
@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (["--plan", "bad.yaml"], "bad_plan", "line 2"),
        (["--agents", "0"], "bad_value", "1 to 100"),
        (["--engine", "comand"], "engine_not_found", "command"),
        (["--command", "sh -c 'x"], "usage", "--command"),
        (["--names", "a b,a-b", "--command", "cat"], "bad_name", "another member"),
        (["--list", "other"], "usage", "not both"),
        ([], "usage", "needs a program"),
        (["--command", "cat"], "usage", "has no tasks"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], code: str, why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.yaml").write_text("tasks:\n  - subjekt: x\n", encoding="utf-8")

    refused = process("team", "up", "crew", *words, "--json")

    assert (refused.error["code"], refused.code in (2, 4)) == (code, True)
    assert why in refused.error["message"]
    assert command_line("team", "list", "--json").data == []
    with taskyard.open(list="crew", is_person=True) as yard:
        assert yard.tasks.list() == ()


@pytest.mark.req("M-01")
def test_a_member_that_does_not_come_is_told_and_nothing_is_left(tmp_path: Path) -> None:
    words = ["team", "up", "--plan", plan(tmp_path, PLAN), "--agents", "2", "--command", "/no/such/agent"]
    failed = process(*words, "--json")
    assert (failed.code, failed.error["code"]) == (1, "member_not_started")
    assert "/no/such/agent is not there" in failed.error["message"]
    nothing_is_left("shop")


@pytest.mark.req("M-01", "O-08")
def test_a_member_that_asks_is_seen_and_answered_from_anywhere(tmp_path: Path) -> None:
    asks = "import json; print(json.dumps({'type': 'question', 'text': 'Overwrite?'}), flush=True); print(input())"
    command = f'python3 -c "{asks}" {{prompt}}'
    child = start("team", "up", "q", "--plan", plan(tmp_path, "- One\n"), "--agents", "1", "--command", command)
    assert child.stdout is not None
    told = iter(child.stdout.readline, "")
    assert next(line for line in told if " asks: " in line) == "ada asks: Overwrite?\n"
    [member] = members()
    assert next(told) == f"        taskyard send {member['id']} 'ANSWER'\n"
    assert f"asks: Overwrite?  `taskyard send {member['id']} 'ANSWER'`" in command_line("team", "show", "q").out

    command_line("send", str(member["id"]), "yes")

    assert ended(child).code == 0


@pytest.mark.req("M-01", "B-09", "L-10")
def test_ctrl_c_stops_the_whole_team_with_proof(tmp_path: Path) -> None:
    child = start("team", "up", "--plan", plan(tmp_path, "name: shop\ntasks: [One, Two]\n"), "--command", "sleep 600")
    with taskyard.open(list="shop", is_person=True) as yard:
        until(lambda: sum(task.owner is not None for task in yard.tasks.list()) == 2, timeout=30)
        jobs = [str(job["id"]) for job in members()]
        child.send_signal(signal.SIGINT)

        done = ended(child)

        assert (done.code, len(jobs)) == (130, 3)
        assert "0 of 2 tasks done" in done.out
        ends = [yard.jobs.get(job).end for job in jobs]
        assert [(end.cause, end.proof) for end in ends if end] == [("stopped", "proved")] * 3
        assert [(task.status.value, task.owner) for task in yard.tasks.list()] == [("pending", None)] * 2
    nothing_is_left("shop")


@pytest.mark.req("M-01", "M-04")
def test_a_team_in_the_background_waits_for_more_and_takes_it_at_once(tmp_path: Path) -> None:
    side = tmp_path / "side"
    words = ["team", "up", "pool", "-d", "--until", "stopped", "--agents", "1", "--command", noting(side), "--json"]
    led = process(*words).data
    until(lambda: _idle("pool"), timeout=30)

    command_line("task", "add", "Something new", "--list", "pool")  # T14: who idles picks it up

    until(lambda: [line[1:] for line in noted(side)] == [["ada", "pool"]], timeout=30)
    refused = process("team", "up", "pool", "--command", "cat", "--json")
    assert (refused.code, refused.error["code"]) == (5, "already_exists")
    stopped = process("stop", led["job"], "--json")
    assert stopped.code == 0, stopped
    nothing_is_left("pool")


def _idle(team: str) -> bool:
    shown = command_line("team", "show", team, "--json")
    found = json.loads(shown.out)
    return "data" in found and any(one["job"] and one["liveness"] == "idle" for one in found["data"]["members"])


@pytest.mark.req("M-01", "L-09")
def test_what_nobody_can_do_is_named_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_LEASE_LOSSES", "1")
    text = "name: shop\ntasks:\n  - {id: a, subject: Impossible}\n  - {id: b, subject: After it, needs: a}\n"
    text += "  - {id: c, subject: For another, requires: [cobol]}\n"
    command = "sh -c 'cat > /dev/null; exit 7'"

    failed = process("team", "up", "--plan", plan(tmp_path, text), "--agents", "1", "--command", command)

    assert failed.code == 1, failed
    assert "Not done: #1 Impossible: quarantined" in failed.out
    assert "Not done: #2 After it: waits for #1" in failed.out
    assert "Not done: #3 For another: requires cobol" in failed.out
    nothing_is_left("shop")


@pytest.mark.req("M-01", "L-16")
def test_what_waits_for_somebody_outside_is_said_and_who_is_given_it_does_it(tmp_path: Path) -> None:
    text = "name: shop\ntasks:\n  - {subject: One, owner: bob}\n"
    child = start("team", "up", "--plan", plan(tmp_path, text), "--agents", "1", "--command", noting(tmp_path / "side"))
    assert child.stdout is not None
    assert "waits for bob: #1 One\n" in iter(child.stdout.readline, "")

    command_line("task", "assign", "1", "ada", "--list", "shop", "--force")

    assert ended(child).code == 0
    assert noted(tmp_path / "side") == [["1", "ada", "shop"]]


@pytest.mark.req("M-01", "M-03")
def test_a_team_whose_lead_was_killed_is_taken_over_and_one_founded_by_hand_is_not(tmp_path: Path) -> None:
    words = ["--plan", plan(tmp_path, "name: shop\ntasks: [One]\n"), "--agents", "1", "--command"]
    child = start("team", "up", *words, "sleep 600")
    with taskyard.open(list="shop", is_person=True) as yard:
        until(lambda: yard.tasks.list() and yard.tasks.get("1").owner == "ada", timeout=30)
    child.kill()
    child.communicate(timeout=30)
    until(lambda: members() == [], timeout=30, what="members end with their lead")
    dead = command_line("team", "show", "shop", "--json").data["members"]
    assert {one["liveness"] for one in dead} == {"dead"}

    assert process("team", "up", *words, noting(tmp_path / "side")).code == 0
    nothing_is_left("shop")

    command_line("team", "create", "shop", "--lead", "me")
    refused = process("team", "up", *words, "cat", "--json")
    assert (refused.code, refused.error["code"]) == (5, "already_exists")


@pytest.mark.req("H-01", "M-01")
def test_a_hook_that_refuses_a_task_of_the_plan_leaves_no_team(tmp_path: Path) -> None:
    settings = Path(os.environ["CLAUDE_CONFIG_DIR"], "settings.json")
    settings.parent.mkdir(parents=True, exist_ok=True)
    hook = {"type": "command", "command": "grep -q Two && echo not that >&2 && exit 2; exit 0"}
    settings.write_text(json.dumps({"hooks": {"TaskCreated": [{"hooks": [hook]}]}}), encoding="utf-8")

    words = ["--plan", plan(tmp_path, "name: shop\ntasks: [One, Two]\n"), "--command", "cat", "--json"]
    refused = process("team", "up", *words)

    assert (refused.code, refused.error["code"]) == (5, "hook_refused")
    nothing_is_left("shop")


@pytest.mark.req("M-01", "L-10")
def test_a_member_whose_keeper_somebody_stopped_ends_with_the_team(tmp_path: Path) -> None:
    child = start(
        "team",
        "up",
        "--plan",
        plan(tmp_path, "name: shop\ntasks: [One]\n"),
        "--agents",
        "1",
        "--command",
        "sh -c 'read x; sleep 600'",
    )
    with taskyard.open(list="shop", is_person=True) as yard:
        until(lambda: any(task.owner for task in yard.tasks.list()))
        [ada] = [job for job in yard.jobs.list() if job.type == "in_process_teammate"]
        keeper = supervisor_pid(JobPaths(yard.home, ada.id))
        assert keeper is not None
        os.kill(keeper, signal.SIGSTOP)
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=60)
        assert child.returncode == 130
        assert yard.jobs.get(ada.id).is_final
    nothing_is_left("shop")


CHECKED = """\
tasks:
  - {subject: Build it, acceptance: "touch %s"}
"""


@pytest.mark.req("L-21", "M-01")
def test_a_team_does_not_start_before_its_acceptance_commands_are_trusted(tmp_path: Path) -> None:
    side, mark = tmp_path / "side", tmp_path / "mark"
    words = ["team", "up", "shop", "--plan", plan(tmp_path, CHECKED % mark), "--agents", "1", "--command", noting(side)]

    refused = process(*words)

    assert refused.code == 2
    assert f"touch {mark}" in refused.err and "--yes" in refused.err
    assert not side.exists() and command_line("task", "list", "--list", "shop", "--json").data == []

    done = process(*words, "--yes", "--json")

    assert done.code == 0, done
    assert mark.exists()


@pytest.mark.req("L-17")
def test_a_person_reads_no_instructions_for_a_model_after_the_work(tmp_path: Path) -> None:
    done = process(
        "team", "up", "--plan", plan(tmp_path, PLAN), "--agents", "1", "--command", noting(tmp_path / "side")
    )

    assert done.code == 0, done
    assert "none of them was a verification. To have the work checked, start an agent" in done.out
    assert "Before you report" not in done.out + done.err
