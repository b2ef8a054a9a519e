"""Memory consolidation by real programs: good ones, bad ones, and others that write meanwhile."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import taskyard
from support.dreams import GOOD, PRIOR, Memory, transcript
from support.wait import until
from taskyard.agents.dream import staging
from taskyard.errors import BadValue, DreamHeld, EngineNotFound, UsageError
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.notice_payload import PEOPLE
from taskyard.jobs.notices import Outbox
from taskyard.testing import check_job_handler

OLD = {"MEMORY.md": "# Index\n", "stale.md": "It is Tuesday.\n"}
NEW = {"MEMORY.md": "# Index\n- style.md: tabs\n", "style.md": "Use tabs.\n"}


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory(tmp_path)


def dream(memory: Memory, body: str = GOOD, **more: Any) -> taskyard.Dream:
    return taskyard.Dream(str(memory.path), command=memory.program(body), cwd=str(memory.project), **more)


@pytest.mark.req("K-07", "B-01")
def test_past_sessions_are_read_and_the_memory_is_improved(jobs: Jobs, memory: Memory) -> None:
    before = time.time_ns()
    job = jobs.run(dream(memory), timeout=50)

    assert (job.status.value, job.id[0], job.type) == ("completed", "d", "dream"), job.end
    assert memory.texts == NEW
    assert before <= memory.last_done <= time.time_ns()
    facts = job.facts
    assert (facts["phase"], facts["priorMtime"], facts["sessions"]) == ("updating", PRIOR // 1_000_000, 5)
    assert facts["touched"] == ["MEMORY.md", "stale.md", "style.md"]
    assert (facts["added"], facts["changed"], facts["removed"]) == (1, 1, 1)
    (copy,) = staging.copies(memory.side)
    assert (Path(copy.path) / "stale.md").read_text() == OLD["stale.md"]
    assert copy.job == job.id


@pytest.mark.req("K-07", "O-03", "N-03")
def test_it_is_for_people_only(jobs: Jobs, memory: Memory) -> None:
    job = jobs.wait(jobs.start(dream(memory)).id, timeout=50)

    assert job.status.value == "completed"
    until(lambda: not os.path.lexists(JobPaths(jobs.home, job.id).living))  # all is told that is to be told
    assert Outbox(jobs.home, "ada").waiting() == Outbox(jobs.home).waiting() == []
    assert [notice.task_id for notice in Outbox(jobs.home, PEOPLE).waiting()] == [job.id]
    assert jobs.output(job.id).output == jobs.output(job.id, transcript=True).output == ""
    lines = transcript(jobs.home, job)
    assert [line["stage"] for line in lines if line["type"] == "prompt"] == ["orient", "gather", "consolidate", "prune"]
    assert lines[-1]["type"] == "note"
    assert lines[-1]["text"] == "Improved 3 of the memory's files: MEMORY.md, stale.md, style.md."


@pytest.mark.req("K-07", "B-03")
@pytest.mark.parametrize("tells", [True, False], ids=["it tells of its tools", "it tells of nothing"])
def test_the_phase_changes_with_the_first_thing_that_is_written(
    jobs: Jobs, memory: Memory, tmp_path: Path, tells: bool
) -> None:
    writes = "say(type='tool', name='Edit', input={})" if tells else "pathlib.Path('new.md').write_text('x')"
    body = f"""
say(type="tool", name="Read", input={{"file": "MEMORY.md"}})
if stage == "gather":
    wait("{tmp_path}/go")
if stage == "consolidate":
    {writes}
    wait("{tmp_path}/end")
"""
    job = jobs.start(dream(memory, body))
    until(lambda: jobs.get(job.id).facts.get("stage") == "gather", timeout=20)
    assert jobs.get(job.id).facts["phase"] == "starting"
    (tmp_path / "go").touch()
    until(lambda: jobs.get(job.id).facts["phase"] == "updating", timeout=20)
    if not tells:
        until(lambda: jobs.get(job.id).facts["touched"] == ["new.md"], timeout=20)
    assert memory.texts == OLD  # it is a copy that is written to
    (tmp_path / "end").touch()
    assert jobs.wait(job.id, timeout=30).status.value == "completed"


@pytest.mark.req("K-07", "B-08")
@pytest.mark.parametrize(
    ("command", "error"),
    [
        (None, "stage consolidate: it ended with exit code 3: no key"),
        (["no-such-agent"], "no-such-agent cannot be started"),
    ],
    ids=["a failure", "a failed start"],
)
def test_a_dream_that_fails_changes_nothing_and_puts_the_time_back(
    jobs: Jobs, memory: Memory, command: list[str] | None, error: str
) -> None:
    body = """
open('MEMORY.md', 'w').write('x')
if stage == 'consolidate':
    sys.stderr.write('no key')
    sys.exit(3)
"""
    spec = dream(memory, body)
    job = jobs.run(spec._replace(command=command or spec.command), timeout=50)

    assert job.status.value == "failed"
    assert job.end is not None
    assert error in job.end.error
    assert (memory.texts, memory.last_done) == (OLD, PRIOR)
    assert transcript(jobs.home, job)[-1]["text"] == job.end.error
    assert not os.path.lexists(memory.side.work)


@pytest.mark.req("K-07", "K-08")
def test_a_stop_aborts_it_and_puts_the_time_back(jobs: Jobs, memory: Memory) -> None:
    job = jobs.start(dream(memory, "open('MEMORY.md', 'w').write('x'); time.sleep(600)"))
    until(lambda: jobs.get(job.id).facts.get("phase") == "updating", timeout=20)
    assert memory.last_done > PRIOR

    (stopped,) = jobs.stop(job.id)

    assert (stopped.outcome, stopped.job.status.value) == ("stopped", "killed")
    assert (memory.texts, memory.last_done) == (OLD, PRIOR)
    assert not os.path.lexists(memory.side.claim)
    assert "as it was" in transcript(jobs.home, stopped.job)[-1]["text"]


@pytest.mark.req("K-07")
def test_what_somebody_else_wrote_meanwhile_is_not_overwritten(jobs: Jobs, memory: Memory) -> None:
    body = f"if stage == 'prune': open('{memory.path}/theirs.md', 'w').write('theirs')\nopen('mine.md', 'w').write('x')"
    job = jobs.run(dream(memory, body), timeout=50)

    assert job.end is not None
    assert "changed by another process meanwhile" in job.end.error
    assert memory.texts == {**OLD, "theirs.md": "theirs"}
    (kept,) = Path(memory.side.kept).iterdir()
    assert (kept / "mine.md").read_text() == "x"
    assert str(kept) in job.end.error
    assert memory.last_done == PRIOR


@pytest.mark.req("K-07", "O-02")
@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("os.path.lexists('out') or os.symlink('/etc/passwd', 'out')", "made a link"),
        ("[path.unlink() for path in pathlib.Path('.').iterdir()]", "left nothing"),
        ("os.path.lexists('pipe') or os.mkfifo('pipe')", "neither a file nor a folder"),
        ("f = open('huge', 'wb'); f.truncate(200_000_000)", "more than 100,000,000 bytes"),
    ],
    ids=["link", "empty", "pipe", "huge"],
)
def test_a_result_that_must_not_be_is_not_put_in_place(jobs: Jobs, memory: Memory, body: str, error: str) -> None:
    job = jobs.run(dream(memory, body), timeout=50)
    assert job.end is not None
    assert error in job.end.error
    assert (memory.texts, memory.last_done) == (OLD, PRIOR)


@pytest.mark.req("K-07", "O-02")
def test_links_in_a_memory_are_out_of_reach_and_stay(jobs: Jobs, memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("key")
    (memory.path / "link.md").symlink_to(tmp_path / "secret")
    (memory.path / "esc\x1b[31m.md").write_text("x")
    body = "assert not os.path.lexists('link.md'); assert '\\x1b' not in prompt; open('new.md', 'w').write('x')"
    job = jobs.run(dream(memory, body), timeout=50)

    assert job.status.value == "completed", job.end
    assert (memory.path / "link.md").readlink() == tmp_path / "secret"
    assert (tmp_path / "secret").read_text() == "key"
    assert "new.md" in memory.texts


@pytest.mark.req("K-07")
def test_hostile_sessions_do_no_harm(jobs: Jobs, memory: Memory) -> None:
    from taskyard.agents.dream.sources import claude_project

    folder = Path(claude_project(str(memory.project), os.environ))
    (folder / "torn.jsonl").write_bytes(
        b'{"type": "user"\n\xff\xff\n{"type": "user", "message": {"content": "kept"}}\n{'
    )
    (folder / "link.jsonl").symlink_to("/etc/passwd")
    (folder / "..evil\x1b[2J.jsonl").write_text('{"type": "user", "message": {"content": "x"}}\n')
    body = "names = sorted(path.name for path in sessions.iterdir()); assert all(n.isprintable() for n in names)\n"
    body += "text = ''.join(path.read_text() for path in sessions.iterdir()); assert 'root:' not in text\nprint(text)"
    job = jobs.run(dream(memory, body), timeout=50)

    assert job.status.value == "completed", job.end
    assert (job.facts["sessions"], job.facts["skippedLines"]) == (7, 3)
    assert job.facts["note"] == "Nothing was to be improved."
    assert memory.last_done > PRIOR
    assert staging.copies(memory.side) == []


@pytest.mark.req("K-07")
def test_a_dry_run_shows_what_would_change_and_changes_nothing(jobs: Jobs, memory: Memory) -> None:
    before = os.stat(memory.side.path).st_mtime_ns
    job = jobs.run(dream(memory, dry_run=True), timeout=50)

    assert job.status.value == "completed", job.end
    assert job.facts["touched"] == ["MEMORY.md", "stale.md", "style.md"]
    assert (memory.texts, memory.last_done) == (OLD, PRIOR)
    assert os.stat(memory.side.path).st_mtime_ns == before
    assert "+Use tabs." in (Path(jobs.home) / "jobs" / job.id / "changes.diff").read_text()


@pytest.mark.req("K-07")
def test_it_begins_when_it_is_time_or_forced_and_never_beside_another(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = Memory(tmp_path, sessions=4)
    with pytest.raises(DreamHeld, match="4 of 5 sessions") as held:
        jobs.start(dream(few))
    assert held.value.held_by == ("sessions",)
    monkeypatch.setenv("TASKYARD_DREAM_SESSIONS", "4")
    an_hour_ago = time.time() - 3600
    os.utime(few.side.lock, (an_hour_ago, an_hour_ago))
    with pytest.raises(DreamHeld, match=r"the last one was 1h .* the gate opens in 2[23]h") as held:
        jobs.start(dream(few))
    assert held.value.opens_at == pytest.approx((an_hour_ago + 86_400) * 1000, abs=10)
    monkeypatch.setenv("TASKYARD_DREAM_ENABLED", "no")
    with pytest.raises(DreamHeld, match="turned off"):
        jobs.start(dream(few))

    first = jobs.start(dream(few, "wait('/nowhere')", force=True))
    until(lambda: jobs.get(first.id).facts.get("stage") == "orient", timeout=20)
    for force in (True, False):
        with pytest.raises(DreamHeld, match=rf"a dream is at work on .* \({first.id}\)\.") as held:
            jobs.start(dream(few, force=force))
        assert held.value.held_by == ("running",)
    assert [job.id for job in jobs.list(ended=True)] == [first.id]
    assert jobs.get(first.id).status.value == "running"


STREAM = """
import json, pathlib, sys
assert sys.argv[1:4] == ["--permission-mode", "acceptEdits", "--add-dir"], sys.argv
prompt = sys.stdin.read()
def say(**event):
    print(json.dumps(event), flush=True)
if "stage 3 of 4" in prompt:
    used = {"type": "tool_use", "name": "Write", "input": {"file_path": "new.md"}}
    say(type="assistant", message={"content": [used], "usage": {"input_tokens": 100, "output_tokens": 7}})
    pathlib.Path("new.md").write_text(str(len(list(pathlib.Path(sys.argv[4]).iterdir()))))
say(type="result", subtype="success", is_error=False, result="done", total_cost_usd=0.25)
"""


@pytest.mark.req("K-07")
def test_it_runs_on_any_engine_and_claude_code_may_edit_the_copy(jobs: Jobs, memory: Memory, tmp_path: Path) -> None:
    claude = tmp_path / "claude"
    claude.write_text(f"#!{sys.executable}\n{STREAM}", encoding="utf-8")
    claude.chmod(0o755)
    job = jobs.run(dream(memory, engine="claude-stream")._replace(command=[str(claude)]), timeout=50)

    assert job.status.value == "completed", job.end
    assert memory.texts["new.md"] == "5"
    assert (job.facts["phase"], job.facts["costUsd"]) == ("updating", 1.0)
    assert job.facts["usage"]["total_tokens"] == 107  # type: ignore[index]


@pytest.mark.req("K-07")
def test_the_gate_is_asked_again_when_its_turn_has_come(jobs: Jobs, memory: Memory, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    gone = jobs.start(taskyard.Shell(f"read line < {tmp_path}/go"))
    first = jobs.start(dream(memory), after_any=[gone.id])
    second = jobs.start(dream(memory), after_any=[first.id])
    (tmp_path / "go").write_text("now\n")

    assert jobs.wait(first.id, timeout=50).status.value == "completed"
    held = jobs.wait(second.id, timeout=50)
    assert held.end is not None
    assert "No dream now: the last one was" in held.end.error
    assert len(staging.copies(memory.side)) == 1


@pytest.mark.req("B-01")
def test_what_cannot_be_is_refused_before_anything_is_started(jobs: Jobs, memory: Memory) -> None:
    with pytest.raises(UsageError, match="needs a program"):
        jobs.start(dream(memory)._replace(command=()))
    with pytest.raises(EngineNotFound):
        jobs.start(dream(memory, engine="comand"))
    with pytest.raises(BadValue, match="source"):
        jobs.start(dream(memory, sources=["codx"]))
    with pytest.raises(BadValue, match="folder of its own"):
        jobs.start(dream(memory)._replace(memory=str(memory.project)))
    assert jobs.list(ended=True) == []


@pytest.mark.req("K-07")
def test_what_a_model_needs_is_looked_for_where_the_dream_runs(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_AGENT_MODEL", "openai:gpt-5")
    with pytest.raises(UsageError, match="OPENAI_API_KEY"):
        dream(memory, engine="model", force=True).wanted()
    env = {**os.environ, "OPENAI_API_KEY": "k"}
    wanted = dream(memory, engine="model", force=True, env=env).wanted()
    assert wanted.arguments is not None
    assert wanted.arguments["model"] == "openai:gpt-5"


@pytest.mark.req("B-01", "K-08")
def test_it_keeps_the_promises_of_a_job(memory: Memory) -> None:
    check_job_handler(
        quick=lambda: dream(memory, "pass", force=True),
        failing=lambda: dream(memory, "sys.exit(1)", force=True),
        endless=lambda: dream(memory, "time.sleep(600)", force=True),
    )


@pytest.mark.req("Q-01")
def test_a_stage_that_hits_a_rate_limit_is_shown_waiting_and_taken_again(jobs: Jobs, memory: Memory) -> None:
    mark = str(memory.project.parent / "limited")
    limited = f"""
if stage == "gather" and not os.path.exists({mark!r}):
    open({mark!r}, "x").close()
    say(type="limited", seconds=2, text="429")
    sys.exit(1)
"""
    job = jobs.start(dream(memory, limited + GOOD))
    until(lambda: jobs.get(job.id).rate_limited is not None, timeout=30, what="it waits")
    done = jobs.wait(job.id, timeout=50)
    assert (done.status.value, memory.texts) == ("completed", NEW), done.end


@pytest.mark.req("K-07")
def test_a_dream_whose_tools_were_refused_or_that_reports_a_failure_changes_nothing(jobs: Jobs, memory: Memory) -> None:
    for told, why in (
        ('say(type="refused", name="Edit")', "stage consolidate: refused for want of permission: Edit"),
        ('print("STATUS: failed: no room")', "stage consolidate: it reports a failure: no room"),
    ):
        job = jobs.run(dream(memory, f'{GOOD}\nif stage == "consolidate": {told}', force=True), timeout=50)
        assert job.end is not None
        assert (job.status.value, job.end.error) == ("failed", why)
        assert memory.texts == OLD
