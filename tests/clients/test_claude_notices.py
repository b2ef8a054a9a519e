"""When the model of a real Claude Code session reads notices: urgent ones after a tool, others as the turn ends."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support import cli
from support.model_api import Call, Choose, ModelApi, Request, Say
from support.wait import until

pytestmark = [pytest.mark.client, pytest.mark.timeout(240)]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = tmp_path / "work"
    found.mkdir()
    (found / "a.txt").write_text("a", encoding="utf-8")
    monkeypatch.chdir(found)
    return found


def asked(prompt: str) -> None:
    """One session, from its prompt to its end."""
    words = ["claude", "-p", prompt, "--model", "claude-sonnet-4-5"]
    ran = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=200, check=False)
    assert ran.returncode == 0, ran


@pytest.fixture
def noticed() -> Iterator[Callable[..., str]]:
    """Starts a job in the background and waits for a notice of it; gives the job's id."""
    started: list[str] = []

    def start(*words: str) -> str:
        ran = cli.process(*words)
        assert ran.code == 0, ran
        started.append(ran.out.split()[0])
        until(lambda: started[-1] in cli.taskyard("notices", "--all").out, timeout=60, what="a notice")
        return started[-1]

    yield start
    for job in started:
        cli.taskyard("stop", job)


@pytest.mark.req("N-03")
def test_next_notices_come_after_a_tool_and_later_ones_when_the_turn_ends_or_the_next_begins(
    project: Path, model: Callable[..., ModelApi], noticed: Callable[..., str]
) -> None:
    jobs: dict[str, str] = {}
    seen: list[tuple[int, int]] = []

    def step(request: Request) -> Say | Call:
        if not jobs:  # while the model thinks about its first answer
            jobs["next"] = noticed("monitor", "-d", "--command", "echo changed; exec sleep 600")
            jobs["later"] = noticed("run", "-d", "--", "false")
        seen.append((told(request.text, jobs["next"]), told(request.text, jobs["later"])))
        return Call("Read", file_path=str(project / "a.txt")) if len(seen) < 3 else Say("Done.")

    api = model(Choose(step))
    assert cli.process("install", "claude-code", "--yes").code == 0
    asked("Read the file twice.")
    assert seen == [(0, 0), (1, 0), (1, 0), (1, 1)]
    assert cli.taskyard("notices", "--all").out == "No notices.\n"

    third = noticed("run", "-d", "--", "true")
    api.then(Say("Understood."))
    asked("Go on.")
    assert told(api.turns[-1].text, third) == 1


def told(text: str, job: str) -> int:
    """How often a model was told of a job; Claude Code repeats the words of a Stop hook in the same request."""
    before, _, feedback = text.partition("Stop hook feedback:")
    here = f"<task-id>{job}</task-id>"
    return before.partition("Stop hook blocking error")[0].count(here) + feedback.count(here)
