"""Going on with the work of an agent, and with conversations that their engine keeps."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from support.acp_sessions import keeping
from support.cli import process, taskyard
from support.job_cli import ended, job
from support.wait import until
from taskyard.agents.agent.kind import Agent
from taskyard.errors import BadValue, Conflict, JobNotFound
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell

#: Speaks as `claude -p --output-format stream-json` does, and remembers what it was asked by the conversation's name.
STREAM = """
import json, os, sys
words = sys.argv[2:]
session = words[words.index("--resume") + 1] if "--resume" in words else f"s-{os.getpid()}"
path = os.path.join(sys.argv[1], session)
said = open(path).read().split() if os.path.exists(path) else []
said.append(sys.stdin.read().strip())
open(path, "w").write(" ".join(said))
print(json.dumps({"type": "system", "subtype": "init", "session_id": session}))
print(json.dumps({"type": "result", "subtype": "success", "result": " then ".join(said)}), flush=True)
"""


@pytest.mark.req("K-02")
def test_an_engine_that_keeps_conversations_goes_on_with_that_one(jobs: Jobs, tmp_path: Path) -> None:
    command = [sys.executable, "-c", STREAM, str(tmp_path)]
    first = jobs.run(Agent("one", engine="claude-stream", command=command, name="scout", cwd=str(tmp_path)), timeout=30)
    assert first.facts["result"] == "one"

    second = jobs.run(Agent.resume(first.id, "two", home=jobs.home), timeout=30)

    assert (second.facts["result"], second.facts["session"]) == ("one then two", first.facts["session"])
    assert (second.facts["resumes"], second.facts["name"]) == (first.id, "scout")
    assert second.id != first.id  # an end is final: what follows is another job, with one beginning and one end


@pytest.mark.req("K-02", "H-01")
def test_what_comes_next_in_one_job_is_the_same_conversation(jobs: Jobs, tmp_path: Path, outside: Path) -> None:
    stop = f"test -e {tmp_path}/again || {{ touch {tmp_path}/again; echo more >&2; exit 2; }}"
    hooks = {"hooks": {"SubagentStop": [{"hooks": [{"type": "command", "command": stop}]}]}}
    (outside / ".claude").mkdir(exist_ok=True)
    (outside / ".claude" / "settings.json").write_text(json.dumps(hooks), encoding="utf-8")
    command = [sys.executable, "-c", STREAM, str(tmp_path)]
    job = jobs.run(Agent("one", engine="claude-stream", command=command), timeout=30)
    assert job.facts["result"] == "one then more"


@pytest.mark.req("K-02")
def test_one_that_keeps_none_is_told_where_the_transcript_is(jobs: Jobs) -> None:
    first = jobs.run(Agent("count", command=["cat"]), timeout=30)
    second = jobs.run(Agent.resume(first.id, "go on", home=jobs.home), timeout=30)
    transcript = f"{jobs.home}/jobs/{first.id}/transcript.jsonl"
    assert second.facts["result"] == f"go on\n\nYou go on with earlier work; its transcript is in {transcript}."


@pytest.mark.req("K-02", "B-04")
def test_what_cannot_be_gone_on_with_is_refused_and_says_why(jobs: Jobs) -> None:
    with pytest.raises(JobNotFound):
        Agent.resume("axxxxxxxx", "go on", home=jobs.home)
    with pytest.raises(Conflict, match="is not an agent"):
        Agent.resume(jobs.run(Shell("true"), timeout=30).id, "go on", home=jobs.home)
    works = jobs.start(Agent("go", command=["sleep", "60"]))
    with pytest.raises(Conflict, match=f"taskyard send {works.id}"):
        Agent.resume(works.id, "go on", home=jobs.home)
    for session in ("--help", "../x", "a b", ""):
        with pytest.raises(BadValue):
            jobs.start(Agent("go", command=["true"], session=session))


@pytest.mark.req("B-01", "K-02")
def test_a_main_conversation_goes_on_in_the_background_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "talk-1").write_text("hello", encoding="utf-8")
    command = shlex.join([sys.executable, "-c", STREAM, str(tmp_path)])
    words = ("agent", "-d", "go on", "--main-session", "--session", "talk-1", "--engine", "claude-stream")
    started = process(*words, "--command", command, "--json").data
    assert (started["id"][0], started["facts"]["agentType"]) == ("s", "main-session")
    assert process("wait", started["id"], "--output", "--json").data["text"] == "hello then go on"
    again = process("agent", "and on", "--resume", started["id"], "--json").data
    assert (again["id"][0], again["text"]) == ("s", "hello then go then on then and on")


@pytest.mark.req("K-02")
def test_a_conversation_of_an_earlier_job_is_gone_on_with_where_the_agent_keeps_it(jobs: Jobs) -> None:
    first = jobs.run(Agent("one", engine="acp", command=keeping("load")), timeout=60)
    second = jobs.run(Agent.resume(first.id, "two", home=jobs.home), timeout=60)
    assert (first.facts["result"], second.facts["result"]) == ("one", "two session/load s")


@pytest.mark.req("K-02", "B-08")
def test_one_that_keeps_no_conversations_goes_on_with_none_by_name(jobs: Jobs) -> None:
    job = jobs.run(Agent("go", engine="acp", command=keeping("neither"), session="talk-1"), timeout=60)
    assert (job.status.value, job.end and job.end.error) == (
        "failed",
        "it cannot go on with conversation 'talk-1': it keeps none",
    )


#: Waits in its first turn until it is told to go on, and answers with its prompt.
WAITS = """
import os, sys, time
prompt = sys.stdin.read().strip()
open(os.path.join(sys.argv[1], "on"), "w").close()
while prompt == "this" and not os.path.exists(os.path.join(sys.argv[1], "go")): time.sleep(0.01)
print(prompt)
"""


def at_work(tmp_path: Path) -> str:
    """An agent that waits in its first turn; its id."""
    command = shlex.join([sys.executable, "-c", WAITS, str(tmp_path)])
    job_id: str = taskyard("agent", "-d", "--json", "--command", command, "this").data["id"]
    until((tmp_path / "on").exists)
    return job_id


def messages(job_id: str) -> list[tuple[str, bool]]:
    found = job(job_id)["facts"].get("messages", [])
    return [(message["text"], message["queued"]) for message in found]


@pytest.mark.req("B-03")
def test_messages_are_on_the_record_queued_until_the_agent_gets_them_and_bounded(tmp_path: Path) -> None:
    job_id = at_work(tmp_path)
    assert taskyard("send", job_id, "x" * 3_000).code == 0
    for number in range(50):
        assert taskyard("send", job_id, f"say {number}").code == 0
    until(lambda: messages(job_id)[-1:] == [("say 49", True)])
    assert [text for text, _ in messages(job_id)] == [f"say {number}" for number in range(50)]

    (tmp_path / "go").touch()

    assert "say 0\n\nsay 1\n\n" in ended(job_id)["facts"]["result"]
    assert set(messages(job_id)) == {(f"say {number}", False) for number in range(50)}


@pytest.mark.req("B-03", "B-04", "K-02")
def test_an_agent_that_is_resumed_is_a_new_job_that_gets_what_was_queued_and_the_old_id_names_it(
    tmp_path: Path,
) -> None:
    first = at_work(tmp_path)
    assert taskyard("send", first, "and that").code == 0
    until(lambda: messages(first) == [("and that", True)])
    assert taskyard("stop", first).code == 0
    assert "continues" not in taskyard("send", first, "more").err

    second = taskyard("agent", "-d", "--json", "--resume", first, "go on").data["id"]
    ended(second)
    third = taskyard("agent", "-d", "--json", "--resume", second, "and on").data["id"]
    ended(third)

    assert job(second)["facts"]["result"].startswith("and that\n\ngo on")
    assert job(third)["facts"]["result"].startswith("and on")
    assert [job(each)["facts"].get("resumes") for each in (first, second, third)] == [None, first, second]
    assert f"go on (resumes {first})" in taskyard("ps", "--all").out
    refused = taskyard("send", first, "more")
    assert (refused.code, f"Job {third} continues its work." in refused.err) == (5, True), refused
    assert f"taskyard logs -f {third}" in taskyard("logs", "-f", first).err
    told = [event for event in taskyard("events", "--json").out.splitlines() if '"task_started"' in event]
    assert [sum(each in event for event in told) for each in (first, second, third)] == [1, 1, 1]
