"""A team that nobody watches: rate limits, refused permissions and failures that agents report."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import taskyard
from support import quota_agent
from support.cli import Ran, process
from support.cli import taskyard as command_line
from support.crews import members, nothing_is_left, plan
from support.jobs import kill_keeper
from support.quota_agent import requests
from support.wait import until

PLAN = """\
name: six
tasks:
  - {id: a, subject: Read the specification}
  - {id: b, subject: Write the parser, needs: a}
  - {id: c, subject: Write the printer, needs: a}
  - {id: d, subject: Write the tests, needs: [b]}
  - {id: e, subject: Write the manual, needs: [c]}
  - {id: f, subject: Verify all of it, needs: [d, e]}
"""


@pytest.fixture
def provider(tmp_path: Path) -> Path:
    """The folder of a provider that answers everything."""
    folder = tmp_path / "provider"
    folder.mkdir()
    return folder


def up(tmp_path: Path, provider: Path, *more: str) -> list[str]:
    agent = shlex.join([sys.executable, quota_agent.__file__, str(provider)])
    return ["team", "up", "--plan", plan(tmp_path, PLAN), "--agents", "2", "--command", agent, "--json", *more]


def limit(provider: Path, *, after: int, seconds: float) -> None:
    (provider / "limit_seconds").write_text(f"{seconds}")
    (provider / "limit_after").write_text(f"{after}")


class Lead:
    """`team up` as a process of its own, whose words can be read while it lives."""

    def __init__(self, folder: Path, words: list[str]) -> None:
        self._out, self._err = folder / "lead.out", folder / "lead.err"
        with self._out.open("w") as out, self._err.open("w") as err:
            command = [sys.executable, "-m", "taskyard", *words]
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)

    @property
    def err(self) -> str:
        return self._err.read_text(encoding="utf-8")

    def ended(self, *, timeout: float = 60) -> Ran:
        code = self.process.wait(timeout)
        return Ran(code, self._out.read_text(encoding="utf-8"), self.err)

    def __enter__(self) -> Lead:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(30)


def failures() -> list[object]:
    """What the tasks keep of failed attempts: nothing is set aside, nothing counted."""
    with taskyard.open(list="six", is_person=True) as yard:
        return [task.extra[name] for task in yard.tasks.list() for name in ("failed", "held") if name in task.extra]


def waiting() -> list[dict[str, object]]:
    return [job for job in members() if job["rate_limited"]]


@pytest.mark.req("M-04")
def test_a_team_whose_agents_may_do_everything_does_all_six_tasks(tmp_path: Path, provider: Path) -> None:
    done = process(*up(tmp_path, provider))
    assert (done.code, done.data["tasks"]) == (0, {"total": 6, "done": 6}), done
    assert [line[2] for line in requests(provider)] == ["done"] * 6
    nothing_is_left("six")


@pytest.mark.req("Q-03", "M-04")
def test_a_task_whose_tools_were_refused_is_not_done_and_waits_for_a_person_who_can_let_it_go_on(
    tmp_path: Path, provider: Path
) -> None:
    (provider / "read_only").touch()
    with Lead(tmp_path, up(tmp_path, provider)) as lead:
        until(lambda: "asks: Task #1" in lead.err, timeout=30, what="the lead says that a member asks")
        [asking] = [job for job in members() if job["needs_input"]]
        listed = command_line("task", "list", "--list", "six", "--json").data
        first = next(task for task in listed if task["id"] == "1")
        assert first["status"] == "in_progress" and first["owner"] in ("ada", "ben"), listed  # it stays claimed
        assert first["held_up"] == f"waits for an answer: {asking['id']}"
        assert not [task for task in listed if task["status"] == "completed"]
        shown = command_line("team", "show", "six").lines
        at = next(at for at, line in enumerate(shown) if str(asking["id"]) in line)
        assert shown[at].split()[:2] == [first["owner"], "waits"], shown
        assert "set `agent_permissions`" in shown[at + 1] and f"taskyard send {asking['id']}" in shown[at + 1], shown
        notices = [one for one in command_line("notices", "list", "--json").data if one["task_id"] == asking["id"]]
        assert [(one["status"], "refused for Write" in one["tail"]) for one in notices] == [(None, True)]

        (provider / "read_only").unlink()
        assert command_line("send", str(asking["id"]), "retry").code == 0
        done = lead.ended()
    assert (done.code, done.data["tasks"]) == (0, {"total": 6, "done": 6}), done
    assert f"taskyard send {asking['id']} 'ANSWER'" in done.err
    assert done.err.count("asks: Task #1") == 1
    assert failures() == []
    assert [line[2] for line in requests(provider)] == ["refused"] + ["done"] * 6


@pytest.mark.req("Q-03")
def test_a_person_who_does_not_permit_it_sets_the_task_aside_with_the_reason(tmp_path: Path, provider: Path) -> None:
    (provider / "read_only").touch()
    with Lead(tmp_path, up(tmp_path, provider)) as lead:
        until(lambda: "asks: Task #1" in lead.err, timeout=30, what="the lead says that a member asks")
        [asking] = [job for job in members() if job["needs_input"]]
        command_line("send", str(asking["id"]), "fail")
        done = lead.ended()
    assert (done.code, done.data["tasks"]["done"]) == (1, 0), done
    assert "refused for want of permission: Write" in done.err
    [reason, held] = failures()
    assert isinstance(reason, dict) and reason["count"] == 1 and held is True


@pytest.mark.req("Q-03")
def test_a_person_accepts_the_work_of_a_turn_in_which_a_tool_was_refused(tmp_path: Path, provider: Path) -> None:
    (provider / "read_only").touch()
    with Lead(tmp_path, up(tmp_path, provider)) as lead:
        until(lambda: "asks: Task #1" in lead.err, timeout=30, what="the lead says that a member asks")
        [asking] = [job for job in members() if job["needs_input"]]
        assert "It reports: I could not write the file." in lead.err
        (provider / "read_only").unlink()
        command_line("send", str(asking["id"]), "done")
        done = lead.ended()
    assert (done.code, done.data["tasks"]) == (0, {"total": 6, "done": 6}), done
    assert failures() == []
    assert [line[2] for line in requests(provider)] == ["refused"] + ["done"] * 5  # no second turn for the first


@pytest.mark.req("M-04")
def test_a_task_that_its_agent_reports_as_failed_is_not_done(tmp_path: Path, provider: Path) -> None:
    (provider / "fails").write_text("1")
    done = process(*up(tmp_path, provider))
    assert (done.code, done.data["tasks"]["done"]) == (1, 0), done
    assert "the disk is read-only" in done.err
    assert [line[2] for line in requests(provider)] == ["failed"] * 3  # the third failure sets it aside


def _limited_team(tmp_path: Path, provider: Path, seconds: float) -> Ran:
    limit(provider, after=2, seconds=seconds)
    with Lead(tmp_path, up(tmp_path, provider)) as lead:
        until(waiting, timeout=45, what="a member waits")
        return lead.ended(timeout=60 + seconds)


def _check_nothing_was_lost(done: Ran, provider: Path) -> None:
    assert (done.code, done.data["tasks"]) == (0, {"total": 6, "done": 6}), done
    assert done.data["died"] == 0
    assert failures() == []
    lifted = float((provider / "limited").read_text())
    limited = [line for line in requests(provider) if line[2] == "limited"]
    assert len(limited) <= 2, requests(provider)  # each member once at most: then they wait
    assert all(float(line[3]) >= lifted for line in requests(provider)[-4:])
    assert "pending: rate-limited by quota_agent until" in done.err
    nothing_is_left("six")


@pytest.mark.req("Q-01")
def test_a_rate_limit_is_waited_for_together_and_no_task_is_set_aside(tmp_path: Path, provider: Path) -> None:
    _check_nothing_was_lost(_limited_team(tmp_path, provider, 4.0), provider)


@pytest.mark.soak
@pytest.mark.req("Q-01")
def test_a_rate_limit_of_forty_seconds_is_waited_for(tmp_path: Path, provider: Path) -> None:
    _check_nothing_was_lost(_limited_team(tmp_path, provider, 40.0), provider)


@pytest.mark.req("Q-01")
def test_a_member_that_waits_for_a_rate_limit_is_shown_everywhere_in_the_same_words(
    tmp_path: Path, provider: Path
) -> None:
    limit(provider, after=1, seconds=3600)
    with Lead(tmp_path, up(tmp_path, provider)):
        until(waiting, timeout=45, what="a member waits")
        [job, *_] = waiting()
        limited = job["rate_limited"]
        assert isinstance(limited, dict) and job["status"] == "running"
        words = limited["shown"]
        assert words.startswith("pending: rate-limited by quota_agent until ")
        assert time.time() + 3500 < limited["until"] / 1000 < time.time() + 3601
        short = words.removeprefix("pending: ")
        row = next(line for line in command_line("ps").lines if str(job["id"]) in line)
        assert " pending " in row and short[:12] in row, row
        shown = command_line("team", "show", "six").lines
        at = next(at for at, line in enumerate(shown) if str(job["id"]) in line)
        assert (shown[at].split()[1], shown[at + 1].strip()) == ("waits", words), shown
        until(lambda: short in command_line("task", "list", "--list", "six").out, timeout=30, what="the task says it")
        stopped = time.monotonic()
        assert command_line("stop", str(job["id"])).code == 0
        assert time.monotonic() - stopped < 5


@pytest.mark.req("Q-01")
def test_a_member_killed_while_it_waits_is_replaced_by_one_that_waits_as_well(tmp_path: Path, provider: Path) -> None:
    limit(provider, after=2, seconds=6.0)
    with Lead(tmp_path, up(tmp_path, provider)) as lead:
        until(waiting, timeout=45, what="a member waits")
        [job, *_] = waiting()
        os.kill(int(str(job["pid"])), signal.SIGKILL)
        done = lead.ended()
    assert (done.code, done.data["tasks"]) == (0, {"total": 6, "done": 6}), done
    assert done.data["died"] == 1
    lifted = float((provider / "limited").read_text())
    assert len([line for line in requests(provider) if line[2] == "limited"]) <= 2
    assert all(float(line[3]) >= lifted for line in requests(provider)[-4:]), requests(provider)
    nothing_is_left("six")


@pytest.mark.req("Q-01", "B-08")
def test_a_member_whose_supervisor_is_killed_while_it_waits_is_replaced_and_no_attempt_is_counted(
    tmp_path: Path, provider: Path
) -> None:
    limit(provider, after=2, seconds=5.0)
    with Lead(tmp_path, up(tmp_path, provider)) as lead:
        until(waiting, timeout=45, what="a member waits")
        killed = [job["id"] for job in waiting()]
        for job_id in killed:
            kill_supervisor(str(job_id))
        until(lambda: not {job["id"] for job in members()} & set(killed), timeout=30, what="they are gone")
        done = lead.ended()
    assert (done.code, done.data["tasks"], done.data["died"]) == (0, {"total": 6, "done": 6}, len(killed)), done
    ends = [command_line("wait", str(job_id), "--json").data for job_id in killed]
    assert {(end["status"], end["cause"]) for end in ends} == {("failed", "lost")}
    lifted = float((provider / "limited").read_text())
    assert len([line for line in requests(provider) if line[2] == "limited"]) <= 2, requests(provider)
    assert all(float(line[3]) >= lifted for line in requests(provider)[-4:]), requests(provider)
    assert failures() == []
    nothing_is_left("six")


@pytest.mark.req("Q-01", "B-08")
def test_an_agent_whose_supervisor_is_killed_while_it_waits_is_lost_and_goes_on_after_the_same_limit(
    tmp_path: Path, provider: Path
) -> None:
    limit(provider, after=0, seconds=6.0)
    agent = shlex.join([sys.executable, quota_agent.__file__, str(provider)])
    job_id = command_line("agent", "-d", "Do task #7", "--command", agent).out.strip()

    def shown() -> dict[str, object]:
        return next((job for job in command_line("ps", "--json").data if job["id"] == job_id), {})

    until(lambda: shown().get("rate_limited"), timeout=30, what="it waits")
    pid = int(str(shown()["pid"]))
    kill_supervisor(job_id)
    lost = command_line("wait", job_id, "--json").data
    assert (lost["status"], lost["cause"], lost["attempt"]) == ("failed", "lost", 1)
    until(lambda: not os.path.exists(f"/proc/{pid}"), timeout=10, what="nothing of it is left")

    resumed = process("agent", "Go on", "--resume", job_id, "--json")

    assert (resumed.code, resumed.data["status"], resumed.data["attempt"]) == (0, "completed", 1), resumed
    lifted = float((provider / "limited").read_text())
    assert [line[2] for line in requests(provider)] == ["limited", "done"]
    assert float(requests(provider)[-1][3]) >= lifted


def kill_supervisor(job_id: str) -> None:
    with taskyard.open(is_person=True) as yard:
        kill_keeper(yard.jobs, yard.jobs.get(job_id))


@pytest.mark.req("Q-01")
def test_a_lead_killed_while_its_members_wait_finds_them_held_back_by_the_same_limit(
    tmp_path: Path, provider: Path
) -> None:
    limit(provider, after=2, seconds=8.0)
    with Lead(tmp_path, up(tmp_path, provider)) as lead:
        until(waiting, timeout=45, what="a member waits")
        lead.process.kill()
    until(lambda: not members(), timeout=30, what="its members end with it")
    process("team", "rm", "six", "--force")
    before = len(requests(provider))
    done = process(*up(tmp_path, provider))
    assert (done.code, done.data["tasks"]) == (0, {"total": 6, "done": 6}), done
    lifted = float((provider / "limited").read_text())
    assert all(float(line[3]) >= lifted for line in requests(provider)[before:]), requests(provider)
    assert failures() == []


@pytest.mark.req("Q-01")
def test_a_team_that_is_to_stop_at_a_rate_limit_stops_and_loses_nothing(tmp_path: Path, provider: Path) -> None:
    limit(provider, after=2, seconds=3600)
    done = process(*up(tmp_path, provider, "--on-rate-limit", "stop"))
    assert (done.code, done.data["tasks"]) == (1, {"total": 6, "done": 2}), done
    assert (done.data["died"], done.data["replaced"], failures()) == (0, 0, [])
    assert any("rate-limited by quota_agent until" in fault for fault in done.data["faults"])
    nothing_is_left("six")
    assert done.data["open"] in (["3", "4", "5", "6"], ["2", "4", "5", "6"])
