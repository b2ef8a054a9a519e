"""Summaries of an agent's work: by a rule or by an engine, and beside the progress."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from support.cli import taskyard
from support.wait import until
from taskyard.agents.agent.kind import Agent
from taskyard.agents.agent.run import LONGEST_SUMMARY, cut, summarise_by_rule
from taskyard.jobs.jobs import Jobs

PROGRAM = "import json, sys, time, os\ndef say(**event): print(json.dumps(event), flush=True)\n"

#: An agent that uses a tool, says something, and goes on doing so until it may end.
BUSY = """
say(type='tool', name='Edit', input={'file_path': 'a.py'})
print('I fix the parser. Then the tests.', flush=True)
while not os.path.exists(sys.argv[1]):
    say(type='tool', name='Edit', input={'file_path': 'a.py'})
    time.sleep(0.05)
"""


def busy(go: Path) -> list[str]:
    return [sys.executable, "-c", PROGRAM + BUSY, str(go)]


def edits(name: str) -> dict[str, object]:
    return {"toolName": "Edit", "input": {"file_path": name}}


@pytest.mark.req("K-02")
def test_a_rule_makes_a_sentence_or_two_of_what_was_done_and_said_last() -> None:
    recent = [edits("a.py"), edits("a.py"), {"toolName": "Bash", "input": {"command": "pytest -q"}}]
    expected = "Used 7 tools, last Edit a.py, Bash pytest -q. Said: I fix it."
    assert summarise_by_rule(recent, "Hello.\nI fix it. And more.\n", 7) == expected
    assert summarise_by_rule([], "", 0) == ""
    assert summarise_by_rule([edits("x")], "", 1) == "Used 1 tool, last Edit x."
    assert summarise_by_rule([3, {"toolName": 4}], "\x1b[31mred", 0) == "Said: \\x1b[31mred"


@pytest.mark.req("K-02")
def test_a_summary_is_short_whatever_an_engine_says() -> None:
    assert cut("One. " * 200) == "One. One."
    assert len(cut("x" * 5000)) == LONGEST_SUMMARY
    assert cut("a\n\nb") == "a b"


@pytest.mark.req("K-02")
def test_it_is_on_the_record_while_the_agent_works_and_progress_leaves_it(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_SUMMARY_EVERY", "0.1")
    monkeypatch.setenv("TASKYARD_HOME", jobs.home)
    job = jobs.start(Agent("fix it", command=busy(tmp_path / "go")))
    until(lambda: "I fix the parser." in str(jobs.get(job.id).facts.get("summary")))
    (row,) = taskyard("ps", "--json").data
    assert row["last_line"].startswith("Used ") and "last Edit a.py" in row["last_line"]
    assert "Said: I fix the parser." in taskyard("ps").out

    before = jobs.get(job.id).facts["progress"]
    until(lambda: jobs.get(job.id).facts["progress"] != before)
    assert "I fix the parser." in str(jobs.get(job.id).facts["summary"])
    (tmp_path / "go").touch()
    ended = jobs.wait(job.id, timeout=30)
    assert "I fix the parser." in str(ended.facts["summary"])


@pytest.mark.req("K-02", "B-12")
def test_an_engine_of_ones_choice_makes_it_from_the_end_of_the_transcript_and_what_it_costs_counts(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = tmp_path / "reader.py"
    reader.write_text(
        PROGRAM + "text = sys.stdin.read(); open(sys.argv[1], 'w').write(text); say(type='cost', usd=0.01)\n"
        "say(type='result', text='Mends the parser.')",
        encoding="utf-8",
    )
    monkeypatch.setenv("TASKYARD_SUMMARY_EVERY", "0.1")
    monkeypatch.setenv("TASKYARD_SUMMARY_COMMAND", f"{sys.executable} {reader} {tmp_path}/read")
    job = jobs.start(Agent("fix it", command=busy(tmp_path / "go")))
    read = tmp_path / "read"
    until(lambda: read.exists() and "I fix the parser." in read.read_text(encoding="utf-8"))
    until(lambda: jobs.get(job.id).facts.get("summary") == "Mends the parser.")
    (tmp_path / "go").touch()
    ended = jobs.wait(job.id, timeout=30)

    assert ended.facts["result"] == "I fix the parser. Then the tests."
    cost = ended.facts["costUsd"]
    assert isinstance(cost, float) and cost >= 0.01
    assert "Its task: fix it" in read.read_text(encoding="utf-8")


@pytest.mark.req("K-02")
def test_where_the_engine_fails_the_rule_speaks_and_the_transcript_says_why(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_SUMMARY_EVERY", "0.1")
    monkeypatch.setenv("TASKYARD_SUMMARY_COMMAND", "false")
    job = jobs.start(Agent("fix it", command=busy(tmp_path / "go")))
    until(lambda: "I fix the parser." in str(jobs.get(job.id).facts.get("summary")))
    (tmp_path / "go").touch()
    jobs.wait(job.id, timeout=30)
    lines = [json.loads(line) for line in Path(job.output_file).read_text(encoding="utf-8").splitlines()]
    assert any(line["type"] == "summary_failed" and "exit code 1" in line["text"] for line in lines)


@pytest.mark.req("K-02")
def test_none_is_made_where_none_is_wanted(jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_SUMMARY_EVERY", "0")
    (tmp_path / "go").touch()
    ended = jobs.run(Agent("fix it", command=busy(tmp_path / "go")), timeout=30)
    assert ended.status.value == "completed" and "summary" not in ended.facts
