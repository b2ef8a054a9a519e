"""An agent that needs an answer tells people: by a notice, an event, in `ps`, and in the foreground on stderr."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from support.cli import start
from support.cli import taskyard as command_line
from support.wait import until

ASKS = """\
import json, sys
for question in ("Overwrite a.py?", "And b.py?"):
    print(json.dumps({"type": "question", "text": question}), flush=True)
    print("answer:", sys.stdin.readline().strip(), flush=True)
"""


@pytest.fixture
def agent(tmp_path: Path) -> str:
    path = tmp_path / "asks.py"
    path.write_text(ASKS, encoding="utf-8")
    return f"{sys.executable} {path} {{prompt}}"


def job_of(prompt: str) -> dict[str, object]:
    return next((job for job in command_line("ps", "--json").data if job["description"] == prompt), {})


@pytest.mark.req("N-04", "Q-03")
def test_an_agent_in_the_background_tells_of_each_question_once(agent: str) -> None:
    job_id = command_line("agent", "-d", "rewrite it", "--command", agent).out.strip()

    def notices() -> list[dict[str, object]]:
        found: list[dict[str, object]] = command_line("notices", "list", "--json").data
        return [one for one in found if one["task_id"] == job_id]

    until(notices, timeout=30, what="there is a notice")
    [notice] = notices()
    assert (notice["status"], notice["tail"]) == (None, "Overwrite a.py?")
    assert notice["hint"] == f"Answer with: taskyard send {job_id} TEXT"
    assert notice["summary"] == 'Agent "rewrite it" waits for an answer'
    row = next(line for line in command_line("ps").lines if job_id in line)
    assert "needs input" in row and "Overwrite a.py?" in row
    asked = [json.loads(line) for line in _events() if job_id in line]
    assert [one.get("question") for one in asked if one.get("needs_input")] == ["Overwrite a.py?"]

    command_line("send", job_id, "yes")
    until(lambda: len(notices()) == 2, timeout=30, what="the second question is told as well")
    assert [one["tail"] for one in notices()] == ["Overwrite a.py?", "And b.py?"]
    command_line("send", job_id, "no")
    command_line("wait", job_id)
    ends = [one["status"] for one in notices()]
    assert ends == [None, None, "completed"]


def _events() -> list[str]:
    data: list[dict[str, object]] = command_line("events", "--json").data
    return [json.dumps(one.get("data", one)) for one in data]


@pytest.mark.req("Q-03")
def test_an_agent_in_the_foreground_without_a_terminal_says_how_to_answer(agent: str) -> None:
    child = start("agent", "rewrite it", "--command", agent)
    try:
        assert child.stderr is not None
        asked, how = child.stderr.readline(), child.stderr.readline()
        job_id = str(job_of("rewrite it")["id"])
        assert asked == f"{job_id} asks: Overwrite a.py?\n"
        assert how == f"Answer with: taskyard send {job_id} TEXT\n"
        command_line("send", job_id, "yes")
        assert child.stderr.readline() == f"{job_id} asks: And b.py?\n"
        command_line("send", job_id, "no")
        out, err = child.communicate(timeout=30)
    finally:
        child.kill()
    assert child.returncode == 0, err
    assert out.split("\n")[:2] == ["answer: yes", "answer: no"]
    assert command_line("notices", "list", "--json").data == []  # whoever watched it saw all of it


@pytest.mark.req("Q-01")
def test_an_agent_in_the_foreground_without_a_terminal_says_what_it_waits_for(tmp_path: Path) -> None:
    path = tmp_path / "limited.py"
    path.write_text(
        "import json, os, sys\n"
        f"mark = {str(tmp_path / 'mark')!r}\n"
        "if not os.path.exists(mark):\n"
        "    open(mark, 'x').close()\n"
        "    print(json.dumps({'type': 'limited', 'seconds': 2, 'text': '429'}), flush=True)\n"
        "    sys.exit(1)\n"
        "print('done', os.environ['TASKYARD_AGENT'])\n",
        encoding="utf-8",
    )
    child = start("agent", "go", "--command", f"{sys.executable} {path}")
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out.split()[0]) == (0, "done"), err
    assert "pending: rate-limited by limited until " in err
    assert err.count("pending:") == 1
    assert os.path.exists(tmp_path / "mark")
