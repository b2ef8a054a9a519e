"""`taskyard dream`."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from support.cli import process, start, taskyard
from support.dreams import GOOD, PRIOR, Memory
from support.wait import until


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Memory:
    found = Memory(tmp_path)
    monkeypatch.chdir(found.project)
    monkeypatch.setenv("TASKYARD_MEMORY_DIR", "notes")
    monkeypatch.setenv("TASKYARD_AGENT_COMMAND", shlex.join(found.program(GOOD)))
    return found


@pytest.mark.req("K-07", "T-05")
def test_a_dream_from_first_look_to_undo(memory: Memory) -> None:
    status = taskyard("dream", "status", "--json").data
    assert (status["memory"], status["gate"], status["sessions"]) == (str(memory.path), "open", 5)
    assert status["last_done"] == PRIOR // 1_000_000

    shown = process("dream", "--dry-run")
    assert shown.code == 0, shown.err
    assert "+Use tabs." in shown.lines
    assert "-It is Tuesday." in shown.lines
    assert memory.last_done == PRIOR

    done = process("dream")
    assert (done.code, done.out) == (0, ""), done.err
    assert "Improved 3 of the memory's files" in done.err
    assert "style.md" in memory.texts

    held = taskyard("dream", "--json")
    assert (held.code, held.error["code"], held.error["held_by"]) == (5, "dream_held", ["hours", "sessions"])
    assert "gate       shut: the last one was" in taskyard("dream", "status").out
    (copy,) = taskyard("dream", "history", "--json").data
    assert taskyard("dream", "history", "-q").lines == [copy["name"]]

    assert taskyard("dream", "undo", "--json").data["name"] == copy["name"]
    assert "stale.md" in memory.texts
    assert "undo" in taskyard("dream", "history").out
    assert taskyard("dream", "undo", "nope").code == 4


@pytest.mark.req("K-07")
def test_a_hook_begins_one_only_when_it_is_time_and_never_stops_its_program(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = process("dream", "--auto", "--json").data
    assert process("wait", begun["id"], "--json").data["status"] == "completed"
    assert "style.md" in memory.texts
    quiet = process("dream", "--auto")
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")

    os.utime(memory.side.lock, ns=(PRIOR, PRIOR))
    monkeypatch.setenv("TASKYARD_DREAM_STAGE", "gather")  # a hook of a dream's own engine
    assert process("dream", "--auto") == quiet
    monkeypatch.delenv("TASKYARD_DREAM_STAGE")
    monkeypatch.setenv("TASKYARD_AGENT_COMMAND", "")
    wrong = process("dream", "--auto")
    assert wrong.code == 1  # 2 would stop the program whose hook it is
    assert "needs a program" in wrong.err
    assert taskyard("dream", "--auto", "--force").code == 2


@pytest.mark.req("K-07")
def test_the_end_of_a_session_begins_one_and_its_note_reaches_a_person_and_no_model(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert taskyard("install", "claude-code", "--scope", "project", "--yes").code == 0
    settings = json.loads(Path(".claude/settings.json").read_text(encoding="utf-8"))
    [entry] = settings["hooks"]["SessionEnd"]
    payload = json.dumps({"hook_event_name": "SessionEnd", "session_id": "s", "cwd": str(memory.project)})

    command = entry["hooks"][0]["command"]
    ended = subprocess.run(["sh", "-c", command], input=payload, capture_output=True, text=True, check=False)

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    [job] = taskyard("ps", "--all", "--json").data
    assert job["type"] == "dream"
    assert process("wait", job["id"]).code == 0
    [notice] = taskyard("notices", "--json").data
    assert "Improved 3 of the memory's files" in notice["summary"]
    for model in (("hook", "UserPromptSubmit"), ("notices", "take", "--xml"), ("notices", "--by", "ada", "--quiet")):
        assert taskyard(*model, stdin=payload.encode()).out == ""
    monkeypatch.setenv("CLAUDECODE", "1")
    assert taskyard("notices", "--json").data == []
    monkeypatch.delenv("CLAUDECODE")
    assert taskyard("notices", "clear", "--quiet").lines == [notice["id"]]
    assert taskyard("notices", "--json").data == []


@pytest.mark.req("K-07")
def test_the_end_of_a_session_inside_a_job_begins_none(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_JOB", "a00000000")
    assert taskyard("hook", "SessionEnd", "--strict", stdin=b"{}").code == 0
    assert taskyard("ps", "--all", "--json").data == []


@pytest.mark.req("K-07", "K-08")
def test_ctrl_c_stops_it_and_nothing_is_changed(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    command = shlex.join(memory.program("open('MEMORY.md', 'w').write('x'); time.sleep(600)"))
    child = start("dream", "--command", command)
    try:
        until(lambda: [job["facts"]["phase"] for job in taskyard("ps", "--json").data] == ["updating"], timeout=30)
        status = taskyard("dream", "status", "--json").data
        assert (status["held_by"], status["job"][0]) == (["running"], "d")
        assert status["last_done"] == PRIOR // 1_000_000  # it is not done yet
    finally:
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=30)
    assert child.returncode == 130, err
    assert (memory.texts["MEMORY.md"], memory.last_done) == ("# Index\n", PRIOR)


@pytest.mark.req("K-07")
def test_a_failure_is_told_and_one_in_the_background_is_a_job_like_any_other(memory: Memory) -> None:
    failed = process("dream", "--command", "sh -c 'echo no key >&2; exit 3'")
    assert failed.code == 1
    assert "stage orient: it ended with exit code 3: no key" in failed.err
    started = process("dream", "-d", "--json").data
    assert (started["type"], started["id"][0]) == ("dream", "d")
    ended = process("wait", started["id"], "--output", "--json").data
    assert (ended["status"], ended["text"]) == ("completed", "")
    assert process("logs", started["id"]).out == ""
    assert taskyard("notices", "take", "--all", "--json").data == []
