"""The engine `claude` with the real Claude Code on a scripted model."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support import cli
from support.model_api import Call, Calls, Fail, Hang, Limit, ModelApi, Say, Usage
from support.wait import until
from support.watching import Watched, work
from taskyard.agents.engines.claude import Claude
from taskyard.agents.engines.engine import TurnResult
from taskyard.core.system import now_ms
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.model import Job

pytestmark = pytest.mark.client

#: Seconds for the program to start and do something, on a busy machine.
SOON = 40

Model = Callable[..., ModelApi]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the agent works; without our tools, unless a test wants them."""
    place = tmp_path / "work"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setenv("TASKYARD_AGENT_TOOLS", "false")
    monkeypatch.setenv("CLAUDE_CODE_MAX_RETRIES", "0")
    return place


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    found = Jobs(os.environ["TASKYARD_HOME"])
    yield found
    found.stop(*[job.id for job in found.list()], grace=0.1)
    found.close()


def begun(*words: str) -> str:
    """Start an agent in the background; its job's id."""
    ran = cli.process("agent", "-d", "--engine", "claude", *words)
    assert ran.code == 0, ran
    return ran.out.strip()


def asks(jobs: Jobs, job_id: str) -> str:
    """Wait until it asks something; the question."""
    until(lambda: jobs.get(job_id).needs_input or jobs.get(job_id).is_final, timeout=SOON, what="a question")
    job = jobs.get(job_id)
    assert not job.is_final, job
    return str(job.facts["question"])


def ended(jobs: Jobs, job_id: str) -> Job:
    until(lambda: jobs.get(job_id).is_final, timeout=SOON, what="the end")
    return jobs.get(job_id)


def transcript(job: Job) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(job.output_file).read_text("utf-8").splitlines()]


# -- usage and progress ---------------------------------------------------------------------------


@pytest.mark.req("K-02")
def test_each_message_is_counted_once_and_the_cost_is_the_programs_own(model: Model, jobs: Jobs) -> None:
    model(
        Calls(
            Call("Read", file_path="a.txt"),
            Call("Write", file_path="a.txt", content="x"),
            text="Both at once.",
            usage=Usage(1000, 70, cached=600),
        ),
        Say("Done.", Usage(1500, 30, cached=1000)),
    )
    job = ended(jobs, begun("go"))
    assert job.facts["result"] == "Done."
    assert job.facts["usage"]["total_tokens"] == 1500 + 70 + 30  # type: ignore[index]
    progress: Any = job.facts["progress"]
    assert (progress["toolUseCount"], progress["lastActivity"]["toolName"]) == (2, "Write")
    results = [line for line in transcript(job) if line["type"] == "result"]
    assert job.facts["costUsd"] == pytest.approx(results[-1]["total_cost_usd"])
    assert not [line for line in transcript(job) if line["type"] == "stream_event"]


@pytest.mark.req("K-02")
def test_a_resumed_conversation_is_the_same_one_and_counts_only_what_is_new(model: Model, jobs: Jobs) -> None:
    api = model(Say("One.", Usage(1000, 50)))
    first = ended(jobs, begun("Remember the word basalt."))
    api.then(Say("Two.", Usage(1200, 60)))
    second = _resumed(jobs, first.id)
    assert second.facts["session"] == first.facts["session"]
    assert "basalt" in api.turns[-1].text
    assert second.facts["usage"]["total_tokens"] == 1260  # type: ignore[index]
    assert second.facts["costUsd"] < 2 * first.facts["costUsd"]  # type: ignore[operator]  # numbers


def _resumed(jobs: Jobs, job_id: str) -> Job:
    ran = cli.process("agent", "-d", "And now?", "--resume", job_id)
    assert ran.code == 0, ran
    return ended(jobs, ran.out.strip())


# -- permissions ----------------------------------------------------------------------------------


@pytest.mark.req("Q-03")
def test_by_default_it_edits_files_in_its_folder(model: Model, jobs: Jobs, folder: Path) -> None:
    model(Call("Write", file_path=str(folder / "a.txt"), content="hello"), Say("Written."))
    job = ended(jobs, begun("go"))
    assert (job.status.value, (folder / "a.txt").read_text()) == ("completed", "hello")


@pytest.mark.req("Q-03")
def test_a_command_asks_and_runs_once_it_is_allowed(model: Model, jobs: Jobs, folder: Path) -> None:
    model(Call("Bash", command="python3 -c \"open('made','w')\"", description="Make it"), Say("Made."))
    job_id = begun("go")
    question = asks(jobs, job_id)
    assert "use Bash" in question
    assert "open('made','w')" in question
    assert not (folder / "made").exists()
    assert cli.process("send", job_id, "y").code == 0
    job = ended(jobs, job_id)
    assert (job.status.value, job.facts["result"], (folder / "made").exists()) == ("completed", "Made.", True)
    assert not job.needs_input


@pytest.mark.req("Q-03")
def test_always_holds_for_the_job_and_not_beyond(model: Model, jobs: Jobs, folder: Path) -> None:
    command = Call("Bash", command="python3 -c 'print(1)' >> log", description="Add a line")
    model(command, command, Say("Twice."))
    job_id = begun("go")
    asks(jobs, job_id)
    cli.process("send", job_id, "a")
    assert ended(jobs, job_id).facts["result"] == "Twice."
    assert (folder / "log").read_text() == "1\n1\n"
    assert not (folder / ".claude").exists()


@pytest.mark.req("Q-03")
def test_what_is_denied_is_not_done_and_the_model_reads_why(model: Model, jobs: Jobs, folder: Path) -> None:
    api = model(Call("Bash", command="python3 -c \"open('made','w')\"", description="Make it"), Say("I could not."))
    job_id = begun("go")
    asks(jobs, job_id)
    cli.process("send", job_id, "n use the Makefile")
    job = ended(jobs, job_id)
    assert not (folder / "made").exists()
    assert "use the Makefile" in api.turns[-1].text
    assert (job.status.value, job.facts["refused"]) == ("failed", ["Bash"])


@pytest.mark.req("Q-03")
def test_a_request_that_nobody_answers_in_time_is_denied(
    model: Model, jobs: Jobs, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_ASK_TIMEOUT", "0.5")
    api = model(Call("Bash", command="python3 -c \"open('made','w')\"", description="Make it"), Say("I could not."))
    job = ended(jobs, begun("go"))
    assert "Nobody answered within 0.5 s" in api.turns[-1].text
    assert (job.status.value, job.facts["refused"], (folder / "made").exists()) == ("failed", ["Bash"], False)


@pytest.mark.req("Q-03")
def test_a_turn_whose_tools_were_refused_names_them_and_is_not_complete(model: Model, folder: Path) -> None:
    model(
        Calls(
            Call("Bash", command="python3 -c 1", description="Run"),
            Call("Bash", command="python3 -c 2", description="Run"),
        ),
        Say("I could not."),
    )
    said = work(Claude(), "go", folder)
    assert (said.text, said.refused, said.is_complete) == ("I could not.", ("Bash",), False)


@pytest.mark.req("Q-03")
@pytest.mark.parametrize("mode", ["work", "all"])
def test_with_more_permissions_nothing_is_asked(model: Model, jobs: Jobs, folder: Path, mode: str) -> None:
    model(Call("Bash", command="python3 -c \"open('made','w')\"", description="Make it"), Say("Made."))
    job = ended(jobs, begun("go", "--permissions", mode))
    assert (job.status.value, (folder / "made").exists()) == ("completed", True)


def test_all_permissions_as_root_are_refused_before_the_start(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() != 0:
        pytest.skip("the program refuses this to root alone")
    model(Say("No."))
    monkeypatch.delenv("IS_SANDBOX")
    ran = cli.process("agent", "go", "--engine", "claude", "--permissions", "all")
    assert ran.code != 0
    assert "IS_SANDBOX" in ran.err


@pytest.mark.req("Q-03")
def test_the_models_own_question_is_answered_by_a_person(model: Model, jobs: Jobs) -> None:
    options = [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]
    asked = {"question": "Which colour?", "header": "Colour", "options": options, "multiSelect": False}
    api = model(Call("AskUserQuestion", questions=[asked]), Say("Blue it is."))
    job_id = begun("go")
    assert "1. Red: warm\n2. Blue: cold" in asks(jobs, job_id)
    cli.process("send", job_id, "2")
    assert ended(jobs, job_id).facts["result"] == "Blue it is."
    assert '"Which colour?"="Blue"' in api.turns[-1].text.replace("\\", "")


# -- messages, stop -------------------------------------------------------------------------------


@pytest.mark.req("K-02")
def test_a_message_reaches_it_while_it_works(model: Model, jobs: Jobs, folder: Path) -> None:
    wait = "touch began; while [ ! -e go ]; do sleep 0.05; done"
    api = model(Call("Bash", command=wait, description="Wait"), Say("Heard."))
    job_id = begun("go", "--permissions", "work")
    until(lambda: (folder / "began").exists(), timeout=SOON)
    assert cli.process("send", job_id, "Use the blue one.").code == 0
    until(lambda: '"Use the blue one."' in Path(jobs.get(job_id).output_file).read_text("utf-8"), timeout=SOON)
    (folder / "go").touch()
    job = ended(jobs, job_id)
    assert job.status.value == "completed"
    assert any("Use the blue one." in turn.text for turn in api.turns[1:])


def subscribed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A subscriber's login instead of a key: then the program tells of quotas."""
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    monkeypatch.setenv("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-test")


# -- what goes wrong ------------------------------------------------------------------------------


@pytest.mark.req("Q-01")
def test_a_used_up_quota_is_a_rate_limit_until_it_resets(
    model: Model, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = model(Limit(3600))
    subscribed(monkeypatch)
    engine, before = Claude(), now_ms()
    said = work(engine, "go", folder)
    assert said.rate_limit is not None
    assert said.rate_limit.provider == "anthropic"
    assert said.rate_limit.until_ms is not None
    assert abs(said.rate_limit.until_ms - before - 3_600_000) < 60_000
    assert "5-hour limit" in said.rate_limit.reason
    api.then(Say("Now it works."))
    assert work(engine, "go", folder) == TurnResult("Now it works.")  # the same conversation


@pytest.mark.req("Q-01")
def test_a_job_waits_for_its_quota_and_continues_the_same_conversation(
    model: Model, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = model(Say("I begin.", Usage(1000, 10)))
    subscribed(monkeypatch)
    first = ended(jobs, begun("Remember the word basalt."))
    api.then(Limit(4), Say("After the limit.", Usage(1000, 10)))
    job = _resumed(jobs, first.id)
    assert (job.status.value, job.facts["result"]) == ("completed", "After the limit.")
    limited, again = api.turns[-2:]
    assert again.at - limited.at > 3
    assert "basalt" in again.text


@pytest.mark.req("Q-01", "Q-03")
def test_a_team_of_real_sessions_gets_its_plan_done_across_a_limit(
    model: Model, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = {"name": "crew", "tasks": [{"subject": f"Write file {number}"} for number in range(3)]}
    (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    api = model(Limit(4), Limit(4), Call("Write", file_path=str(folder / "a.txt"), content="x"), Say("Written."))
    subscribed(monkeypatch)
    words = ("--plan", "plan.json", "--engine", "claude", "--agents", "2", "--json")
    done = cli.process("team", "up", "crew", *words, timeout=SOON)
    assert done.code == 0, done
    tasks = cli.process("task", "list", "--all", "--list", "crew", "--json").data
    assert [task["status"] for task in tasks] == ["completed"] * 3
    assert (folder / "a.txt").read_text() == "x"
    assert len([turn for turn in api.turns if "rate limit" not in turn.text]) <= 8


@pytest.mark.req("Q-03")
def test_a_team_whose_sessions_were_refused_their_tools_has_not_done_its_task(
    model: Model, jobs: Jobs, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_ASK_TIMEOUT", "0.3")
    plan = {"name": "crew", "tasks": [{"subject": "Run it"}]}
    (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    model(*[Call("Bash", command="python3 -c 1", description="Run"), Say("I could not run it.")] * 20)
    words = ("--plan", "plan.json", "--engine", "claude", "--agents", "1")
    team = cli.start("team", "up", "crew", *words)
    try:
        until(lambda: "`fail`" in _question(jobs), timeout=SOON, what="what to do about the refused tool")
        (member,) = [job for job in jobs.list() if job.type == "in_process_teammate"]
        assert "Bash" in _question(jobs)
        assert cli.process("send", member.id, "fail").code == 0
        out, _ = team.communicate(timeout=SOON)
    finally:
        team.kill()
        team.communicate()
    assert team.returncode != 0, out
    (task,) = cli.process("task", "list", "--all", "--list", "crew", "--json").data
    assert task["status"] != "completed"


def _question(jobs: Jobs) -> str:
    return " ".join(str(job.facts.get("question") or "") for job in jobs.list())


@pytest.mark.req("Q-01")
def test_the_wait_before_a_retry_is_shown(model: Model, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_MAX_RETRIES", "2")
    model(Fail(429, headers={"retry-after": "1"}), Say("Through."))
    watcher = Watched()
    assert work(Claude(), "go", folder, watched=watcher) == TurnResult("Through.")
    assert [seconds for seconds, _ in watcher.limits] == [1.0]


def test_no_credit_is_final(model: Model, folder: Path) -> None:
    model(Fail(400, "Your credit balance is too low to access the Anthropic API."))
    said = work(Claude(), "go", folder)
    assert (said.rate_limit, said.is_retryable) == (None, False)
    assert "Credit balance is too low" in said.error


def test_silence_in_the_middle_of_a_turn_ends_it(model: Model, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_AGENT_SILENCE", "3")
    model(Hang())
    said = work(Claude(), "go", folder)
    assert ("produced no output for 3 s" in said.error, said.is_retryable) == (True, True)


# -- our tools ------------------------------------------------------------------------------------


@pytest.mark.req("Q-03", "T-01")
def test_our_tools_are_in_its_first_request_and_act_under_its_name(
    model: Model, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_AGENT_TOOLS", "true")
    api = model(Call("mcp__taskyard__TaskCreate", subject="Paint", description="Blue"), Say("Added."))
    job = ended(jobs, begun("go", "--name", "ada"))
    assert job.facts["result"] == "Added.", job
    assert {"mcp__taskyard__TaskCreate", "mcp__taskyard__ReadMail"} <= set(api.turns[0].tools)
    (task,) = cli.process("task", "list", "--json").data
    assert task["subject"] == "Paint"
    assert "ada" in cli.process("task", "log", "--json").out
    assert api.turns[-1].tool_results == ["Task #1 created successfully: Paint"]  # all that its model reads of it


@pytest.mark.req("Q-03")
def test_tools_of_ours_that_run_commands_ask_like_its_own(
    model: Model, jobs: Jobs, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_AGENT_TOOLS", "true")
    model(Call("mcp__taskyard__Bash", command="touch made"), Say("Done."))
    job_id = begun("go")
    assert "mcp__taskyard__Bash" in asks(jobs, job_id)
    assert not (folder / "made").exists()


def test_without_agent_tools_it_gets_none_of_ours(model: Model, jobs: Jobs) -> None:
    api = model(Say("Hello."))
    ended(jobs, begun("go"))
    assert not [name for name in api.turns[0].tools if "taskyard" in name]
