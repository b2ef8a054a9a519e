"""How many agents run, how fast they begin and how much they use: what is over a limit waits, or ends and says why."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from support.wait import until
from taskyard.agents.agent.kind import Agent
from taskyard.config import Settings
from taskyard.errors import BadValue
from taskyard.jobs import budget
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.model import JobStatus
from taskyard.jobs.notices import Outbox

PROGRAM = "import json, sys, time, os\ndef say(**event): print(json.dumps(event), flush=True)\n"


def does(body: str) -> list[str]:
    return [sys.executable, "-c", PROGRAM + body]


ENDLESS = "say(type='text', text='on'); time.sleep(600)"


@pytest.mark.req("B-12")
def test_agents_over_the_limit_wait_and_say_for_what_and_those_inside_others_have_slots_of_their_own(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow = Jobs(jobs.home, settings=Settings(agent_limit=1))
    first = narrow.start(Agent("go", command=does(ENDLESS)))
    second = narrow.start(Agent("go", command=does("pass")))
    until(lambda: jobs.get(second.id).status is JobStatus.PENDING)
    assert jobs.get(second.id).waits_for == "a slot (at most 1 agent at once)"

    monkeypatch.setenv("TASKYARD_JOB", first.id)  # as if started by the first, which may well wait for it
    inner = narrow.start(Agent("go", command=does("print('in')")))
    assert narrow.wait(inner.id, timeout=30).facts["result"] == "in"
    assert inner.depth == 1
    monkeypatch.delenv("TASKYARD_JOB")

    narrow.stop(first.id)
    assert narrow.wait(second.id, timeout=30).status is JobStatus.COMPLETED
    narrow.close()


@pytest.mark.req("B-12")
def test_agents_begin_no_faster_than_so_many_a_minute(jobs: Jobs) -> None:
    paced = Jobs(jobs.home, settings=Settings(agent_starts_per_minute=1))
    assert paced.run(Agent("go", command=does("pass")), timeout=30).status is JobStatus.COMPLETED
    waits = paced.start(Agent("go", command=does("pass")))
    until(lambda: "at most 1 agents a minute" in jobs.get(waits.id).waits_for)
    assert jobs.stop(waits.id)[0].outcome == "stopped"
    paced.close()


@pytest.mark.req("B-12")
def test_a_provider_with_too_much_to_do_makes_the_next_agents_wait_until_it_may_be_asked_again(jobs: Jobs) -> None:
    body = "say(type='limited', seconds=3600, text='429 Too Many Requests'); say(type='result', text='in the end')"
    job = jobs.run(Agent("go", command=does(body)), timeout=30)
    assert job.facts["result"] == "in the end"
    limited = job.facts["limited"]
    assert isinstance(limited, dict) and limited["why"] == "429 Too Many Requests"

    waits = jobs.start(Agent("go", command=does("pass")))
    until(lambda: jobs.get(waits.id).waits_for.startswith("rate-limited by python"))
    limit = jobs.get(waits.id).rate_limited
    assert limit is not None and limit.reason == "429 Too Many Requests"
    assert jobs.get(waits.id).status is JobStatus.PENDING
    elsewhere = jobs.run(Agent("go", command=["cat"]), timeout=30)
    assert elsewhere.status is JobStatus.COMPLETED
    assert jobs.stop(waits.id)[0].outcome == "stopped"


@pytest.mark.req("B-12")
def test_an_agent_that_is_to_stop_at_a_limit_says_so_and_the_next_one_does_not_begin(jobs: Jobs) -> None:
    body = "say(type='result', is_error=True, result='API Error: 529 Overloaded')"
    spec = Agent("go", engine="claude-stream", command=does(body), on_rate_limit="stop")
    for _ in range(2):
        failed = jobs.run(spec, timeout=30)
        assert failed.status is JobStatus.FAILED and failed.end is not None
        assert "rate-limited by anthropic" in failed.end.error and "529" in failed.end.error
    assert failed.end is not None and failed.end.duration_ms == 0  # it was refused before it ran


@pytest.mark.req("Q-01")
def test_an_overloaded_provider_is_tried_again_and_the_agent_completes(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_RATE_LIMIT_RETRY", "0.2")
    body = f"""
with open({str(tmp_path / "tries")!r}, 'a') as file: file.write('x')
tries = os.path.getsize({str(tmp_path / "tries")!r})
if tries < 4: say(type='result', is_error=True, result='API Error: 529 Overloaded')
else: say(type='result', result='at last')
"""
    done = jobs.run(Agent("go", engine="claude-stream", command=does(body)), timeout=60)
    assert (done.status, done.facts.get("result")) == (JobStatus.COMPLETED, "at last")
    limited = done.facts["limited"]
    assert isinstance(limited, dict) and "529" in limited["why"]


@pytest.mark.req("Q-01")
def test_the_time_limit_of_an_agent_does_not_run_while_it_waits(jobs: Jobs, tmp_path: Path) -> None:
    mark = str(tmp_path / "mark")
    body = f"""
if not os.path.exists({mark!r}):
    open({mark!r}, 'x').close(); say(type='limited', seconds=4, text='429'); sys.exit(1)
say(type='result', text='in the end')
"""
    done = jobs.run(Agent("go", command=does(body), timeout=3.0), timeout=60)
    assert (done.status, done.facts.get("result")) == (JobStatus.COMPLETED, "in the end"), done
    assert done.end is not None and (done.end.duration_ms or 0) > 4000

    slow = jobs.run(Agent("go", command=does("time.sleep(60)"), timeout=0.5), timeout=30)
    assert slow.end is not None and slow.end.cause == "timeout"


@pytest.mark.req("Q-01")
def test_a_limit_beyond_the_longest_wait_fails_at_once(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_RATE_LIMIT_WAIT", "60")
    body = "say(type='limited', seconds=3600, text='weekly limit'); sys.exit(1)"
    failed = jobs.run(Agent("go", command=does(body)), timeout=30)
    assert failed.status is JobStatus.FAILED and failed.end is not None
    assert failed.end.error.startswith("rate-limited by python")
    assert "; longer than rate_limit_wait (60 s): weekly limit" in failed.end.error


@pytest.mark.req("Q-01")
def test_an_agent_killed_while_it_waits_is_resumed_with_its_session_and_held_back_by_the_same_limit(
    jobs: Jobs, tmp_path: Path
) -> None:
    asked = str(tmp_path / "asked")
    body = f"""
with open({asked!r}, 'a') as file: file.write(json.dumps(sys.argv[1:]) + '\\n')
say(type='system', subtype='init', session_id='c0ffee')
if os.path.getsize({asked!r}) < 300: say(type='result', is_error=True, result='429 Retry-After: 3600')
"""
    command = does(body)
    job = jobs.start(Agent("go", engine="claude-stream", command=command))
    until(lambda: jobs.get(job.id).rate_limited is not None, timeout=30, what="it waits")
    pid = jobs.get(job.id).pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    dead = jobs.wait(job.id, timeout=30)
    assert dead.status is JobStatus.FAILED and dead.rate_limited is None

    again = Agent.resume(job.id, "go on", home=jobs.home)
    assert again.session == "c0ffee"
    second = jobs.start(again)
    until(lambda: jobs.get(second.id).rate_limited is not None, timeout=30, what="it is held back")
    assert jobs.get(second.id).status is JobStatus.PENDING
    assert jobs.stop(second.id)[0].outcome == "stopped"


@pytest.mark.req("Q-01")
def test_the_conversation_that_was_limited_is_the_one_that_goes_on(jobs: Jobs, tmp_path: Path) -> None:
    asked = str(tmp_path / "asked")
    body = f"""
with open({asked!r}, 'a') as file: file.write(json.dumps([sys.argv[1:], sys.stdin.read()]) + chr(10))
say(type='system', subtype='init', session_id='c0ffee')
if len(open({asked!r}).readlines()) == 1: say(type='result', is_error=True, result='429 Retry-After: 1')
else: say(type='result', result='whole')
"""
    done = jobs.run(Agent("count them", engine="claude-stream", command=does(body)), timeout=60)
    assert (done.status, done.facts.get("result")) == (JobStatus.COMPLETED, "whole")
    first, second = [json.loads(line) for line in Path(asked).read_text(encoding="utf-8").splitlines()]
    assert "--resume" not in first[0] and second[0][-2:] == ["--resume", "c0ffee"]
    assert "rate limit" in second[1] and "count them" in second[1]


@pytest.mark.req("B-12", "B-08")
@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (Agent("go", max_tokens=1000), "its budget is used up: 1,100 of 1,000 tokens"),
        (Agent("go", max_cost=0.5), "its budget is used up: $0.75 of $0.50"),
    ],
)
def test_an_agent_that_used_up_its_budget_is_ended_and_says_so(jobs: Jobs, spec: Agent, why: str) -> None:
    body = f"say(type='usage', input_tokens=1000, output_tokens=100); say(type='cost', usd=0.75); {ENDLESS}"
    job = jobs.start(spec._replace(command=does(body), description="Dear"))
    job = jobs.wait(job.id, timeout=30)
    assert job.end is not None
    assert (job.status.value, job.end.cause, job.end.error) == ("failed", "error", why)
    (notice,) = Outbox(jobs.home, "ada").waiting()
    assert notice.summary == f'Agent "Dear" failed: {why}'


@pytest.mark.req("B-12")
def test_agents_below_one_job_share_a_budget(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_AGENT_TREE_TOKENS", "1000")
    uses = "say(type='usage', input_tokens=600, output_tokens=0); print('done')"
    root = jobs.start(Agent("go", command=does(ENDLESS)))
    monkeypatch.setenv("TASKYARD_JOB", root.id)
    assert jobs.run(Agent("go", command=does(uses)), timeout=30).status is JobStatus.COMPLETED
    second = jobs.run(Agent("go", command=does(f"{uses}; {ENDLESS}")), timeout=30)
    assert second.end is not None
    assert second.end.error == f"the budget of all agents below {root.id} is used up: 1,200 of 1,000 tokens"
    third = jobs.run(Agent("go", command=does("print('never')")), timeout=30)
    assert third.end is not None
    assert "is used up" in third.end.error and "result" not in third.facts
    monkeypatch.delenv("TASKYARD_JOB")
    assert jobs.run(Agent("go", command=does(uses)), timeout=30).status is JobStatus.COMPLETED


@pytest.mark.req("B-12")
def test_when_the_days_budget_is_used_up_the_next_agent_waits_for_another_day(jobs: Jobs) -> None:
    daily = Jobs(jobs.home, settings=Settings(agent_day_cost=1.0))
    budget.add_usage(jobs.home, budget.day_key(), budget.TokenUsage(0, 1.5))
    waits = daily.start(Agent("go", command=does("pass")))
    expected = "another day: today's budget for agents is used up ($1.50 of $1.00)"
    until(lambda: jobs.get(waits.id).waits_for == expected)
    assert jobs.stop(waits.id)[0].outcome == "stopped"
    daily.close()


@pytest.mark.req("B-12")
@pytest.mark.parametrize(
    "spec", [Agent("go", max_tokens=0), Agent("go", max_cost=-1.0), Agent("go", max_cost=float("nan"))]
)
def test_a_budget_that_is_none_is_refused(jobs: Jobs, spec: Agent, tmp_path: Path) -> None:
    with pytest.raises(BadValue):
        jobs.start(spec._replace(command=["true"]))
    assert jobs.list(ended=True) == []
