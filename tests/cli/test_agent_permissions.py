"""What an agent may do without asking: `--permissions`, for the engine that is our own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.cli import process

#: Answers the first request by calling every tool that it is offered, with arguments made up from their schemas.
EAGER = "from pydantic_ai.models.test import TestModel\nmodel = TestModel()\n"


@pytest.mark.req("Q-03")
@pytest.mark.parametrize(
    ("mode", "offered", "left_out"),
    [
        ("ask", {"Read", "TaskList"}, {"Edit", "Write", "Bash", "Agent", "Workflow", "Monitor", "SendInput"}),
        ("edit", {"Read", "Edit", "Write", "TaskList"}, {"Bash", "Agent", "Workflow", "Monitor", "SendInput"}),
        ("work", {"Read", "Edit", "Write", "TaskList", "Bash"}, set[str]()),
    ],
)
def test_a_model_is_offered_the_tools_that_its_mode_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, offered: set[str], left_out: set[str]
) -> None:
    (tmp_path / "eager.py").write_text(EAGER, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    ran = process("agent", "go", "--engine", "model", "--model", "python:eager:model", "--permissions", mode, "--json")

    transcript = Path(ran.data["output"]).read_text(encoding="utf-8").splitlines()
    used = {line["name"] for line in map(json.loads, transcript) if line["type"] == "tool_use"}
    assert offered <= used, ran
    assert not left_out & used
