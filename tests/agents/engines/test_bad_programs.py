"""Programs that behave badly, on the engines that run any: what they do is bounded, and said as it is."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from support.wait import until
from support.watching import Watched, work
from taskyard.agents.engines.claude import ClaudeStream
from taskyard.agents.engines.codex import Codex
from taskyard.agents.engines.command import Command
from taskyard.agents.engines.engine import Brief
from taskyard.agents.engines.gemini import Gemini
from taskyard.agents.engines.opencode import Opencode

RESULT = """print('{"type": "result", "result": "done", "text": "done"}')"""


def bare(body: str) -> list[str]:
    return [sys.executable, "-S", "-c", f"import os, sys, time\n{body}"]


@pytest.mark.req("B-08", "K-02")
@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("sys.stdout.buffer.write(b'\\xff\\x00' * 1000 + b'\\n')", "broke off without a result (exit code 0)"),
        ("print('{' * 5000); sys.stderr.write('no key'); sys.exit(3)", "(exit code 3): no key"),
        ("print('x' * 9_000_000)", "broke off without a result (exit code 0)"),
        ('print(\'[1]\'); print(\'{"type": 7}\'); print(\'{"type": "assistant", "message": []}\')', "broke off"),
        ("os.kill(os.getpid(), 9)", "(exit code -9)"),
    ],
    ids=["bytes", "broken JSON", "a huge line", "half messages", "killed"],
)
def test_a_stream_of_garbage_has_no_result(tmp_path: Path, body: str, error: str) -> None:
    watched = Watched()
    said = work(ClaudeStream(), "go", tmp_path, command=bare(body), watched=watched)
    assert (error in said.error, said.is_retryable, said.text) == (True, True, "")
    assert all(len(text) <= 4 * 1024 * 1024 for text in watched.said("stdout"))


@pytest.mark.req("K-02")
@pytest.mark.parametrize("engine", [Command(), ClaudeStream()], ids=["command", "claude-stream"])
@pytest.mark.parametrize(
    "body",
    [
        f"print('x' * 1_000_000, flush=True); sys.stdin.read(); {RESULT}",
        f"{RESULT}",
    ],
    ids=["prints a lot before it reads", "never reads"],
)
def test_a_prompt_that_is_read_late_or_never_keeps_nobody_waiting(tmp_path: Path, engine: Any, body: str) -> None:
    said = work(engine, "y" * 1_000_000, tmp_path, command=bare(body))
    assert (said.error, said.text[-4:]) == ("", "done")


@pytest.mark.req("K-02")
@pytest.mark.parametrize("engine", [Codex(), Gemini(), Opencode()], ids=["codex", "gemini", "opencode"])
def test_a_program_that_falls_silent_is_ended(tmp_path: Path, engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_AGENT_SILENCE", "0.5")
    said = work(engine, "go", tmp_path, command=bare("time.sleep(600)"))
    assert (said.error, said.is_retryable) == ("it produced no output for 0.5 s", True)


@pytest.mark.req("K-08", "B-09")
def test_one_that_is_stopped_ends_with_its_group_though_nobody_reads_what_it_prints(tmp_path: Path) -> None:
    body = "child = os.fork()\nif child: open('pids', 'w').write(f'{os.getpid()} {child}')\nprint('x' * 9_000_000)"
    brief = Brief("go", str(tmp_path), dict(os.environ), command=tuple(bare(f"{body}\ntime.sleep(60)")))
    pids = tmp_path / "pids"

    async def stopped() -> None:
        task = asyncio.create_task(Command().work(brief, Watched()))
        await asyncio.to_thread(until, lambda: pids.exists() and len(pids.read_text().split()) == 2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 20)

    asyncio.run(stopped())
    until(lambda: not any(is_alive(int(pid)) for pid in pids.read_text().split()))


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be noticed by its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
