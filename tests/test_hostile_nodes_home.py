"""
Something that is no plain file in places of `$TASKYARD_HOME` that another program can reach: mail, dreams, jobs.

What stands in the way is named or passed over, and what is beside it still works. Nothing hangs, nothing breaks.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from support.cli import Ran, process, taskyard
from support.dreams import GOOD, Memory
from support.wait import until
from taskyard import open as open_yard
from taskyard.jobs.kinds.shell import Shell
from test_hostile_nodes import NODES, put

#: Seconds for one command: a second for its start, some for a busy machine; a pipe would hold it for ever.
LONGEST = 20.0


def answered(*words: str) -> Ran:
    ran = process(*words, timeout=LONGEST)
    assert "Traceback" not in ran.err, ran.err
    return ran


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TASKYARD_LIST", "plan")
    return Path(os.environ["TASKYARD_HOME"])


@pytest.mark.req("M-02")
@pytest.mark.parametrize("node", NODES)
def test_a_message_that_is_no_plain_file_keeps_no_other_message_back(home: Path, node: str) -> None:
    assert taskyard("team", "create", "plan", "--lead", "ada").code == 0
    first, second = (taskyard("mail", "send", "ada", text, "--json").data["id"] for text in ("first", "second"))
    [box] = {path.parent for path in home.glob(f"mail/*/*/new/{first}")}
    put(node, box / first)

    ran = answered("mail", "read", "--agent", "ada")

    assert "second" in ran.out, ran
    assert taskyard("mail", "receipts", second).out.split() == [second, "read"]
    assert answered("mail", "read", "--agent", "ada").out == "No mail for ada.\n"


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Memory:
    found = Memory(tmp_path)
    monkeypatch.chdir(found.project)
    monkeypatch.setenv("TASKYARD_MEMORY_DIR", "notes")
    monkeypatch.setenv("TASKYARD_AGENT_COMMAND", shlex.join(found.program(GOOD)))
    return found


@pytest.mark.req("K-07")
@pytest.mark.parametrize("node", NODES)
def test_a_dream_answers_whatever_stands_in_the_memory(memory: Memory, node: str) -> None:
    put(node, memory.path / "note.md")
    done = answered("dream", "--force")
    if node in ("a pipe", "a socket", "a device", "a huge file"):
        assert done.code != 0
        assert "style.md" not in os.listdir(memory.path)
    else:
        assert done.code == 0, done.err


@pytest.mark.req("K-07")
@pytest.mark.parametrize("node", NODES)
def test_a_dream_passes_over_a_session_that_is_no_plain_file(memory: Memory, node: str) -> None:
    put(node, memory.sessions / "session-9.jsonl")
    done = answered("dream", "--force")
    assert done.code == 0, done.err
    assert "style.md" in memory.texts


@pytest.mark.req("K-07")
@pytest.mark.parametrize("node", ["a pipe", "a socket", "a device", "a link to nothing"])
def test_a_dream_ends_though_its_transcript_was_replaced(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, node: str
) -> None:
    """The program of a dream can reach the folder of its job."""
    trap = tmp_path / "trap"
    NODES[node](trap)
    body = f"""{GOOD}
if stage == "prune":
    os.rename({str(trap)!r}, os.environ["TASKYARD_HOME"] + "/jobs/" + os.environ["TASKYARD_JOB"] + "/transcript.jsonl")
"""
    monkeypatch.setenv("TASKYARD_AGENT_COMMAND", shlex.join(memory.program(body)))
    ran = answered("dream", "--force")
    assert not os.path.lexists(trap), ran
    assert ran.code == 0, ran.err
    assert "style.md" in memory.texts


@pytest.mark.req("O-01")
@pytest.mark.parametrize("node", NODES)
def test_input_arrives_whole_though_its_pipe_was_replaced(home: Path, node: str) -> None:
    text = "0123456789\n" * 20_000  # more than a message to the supervisor holds
    with open_yard() as yard:
        job = yard.jobs.start(Shell("wc -c", stdin=True))
        pipe = home / "jobs" / job.id / "input"
        until(lambda: os.path.lexists(pipe))
        put(node, pipe)

        yard.jobs.answer(job.id, text, close=True)

        assert yard.jobs.wait(job.id, timeout=LONGEST).is_final
        assert yard.jobs.output(job.id).output.strip() == str(len(text))
