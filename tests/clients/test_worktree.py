"""Every agent program in a git worktree of its own: it starts, works there, and ends."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support import cli
from support.model_api import Call, Choose, ModelApi, Request, Say

pytestmark = [pytest.mark.client, pytest.mark.timeout(240)]

#: How the model of each program runs a command in the folder it works in.
RUNS: dict[str, Callable[[str], Call]] = {
    "claude": lambda command: Call("Bash", command=command, description="d"),
    "codex": lambda command: Call("exec_command", cmd=f"{command}; sleep 0.3"),
    "gemini": lambda command: Call("run_shell_command", command=command, description="d"),
    "opencode": lambda command: Call("bash", command=command, description="d"),
}


@pytest.mark.req("K-02")
@pytest.mark.parametrize("engine", RUNS)
def test_an_agent_works_in_a_worktree_of_its_own(
    engine: str, model: Callable[..., ModelApi], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for words in (("init", "-q"), (*identity, "commit", "-q", "--allow-empty", "-m", "x")):
        subprocess.run(["git", *words], cwd=project, check=True)
    monkeypatch.chdir(project)

    def step(request: Request) -> Say | Call:
        return Say("Done.") if request.tool_results else RUNS[engine]("pwd > where.txt")

    api = model(Choose(step))
    words = ("--engine", engine, "--permissions", "work", "--worktree", "--timeout", "180s", "--", "Say where you are.")
    ran = cli.process("agent", *words, timeout=200)

    assert ran.code == 0, (ran, api.turns[-1].tool_results if api.turns else [])
    assert not (project / "where.txt").exists()
    trees = subprocess.run(["git", "worktree", "list"], cwd=project, check=True, capture_output=True, text=True).stdout
    [tree] = [line.split()[0] for line in trees.splitlines() if not line.startswith(f"{project} ")]
    assert Path(tree, "where.txt").read_text(encoding="utf-8").strip() == tree
