"""How a long call stands, told to whoever asked to hear it: the last line, made safe, and not all the time."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import pytest
from mcp_types import CallToolResult

from support.mcp_clients import MODES, run, stdio_client


@pytest.mark.serial
@pytest.mark.req("T-02", "T-05")
@pytest.mark.parametrize("mode", MODES)
def test_a_long_call_says_what_was_printed_last_and_at_most_once_a_second(tmp_path: Path, mode: str) -> None:
    heard: list[tuple[float, float, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        assert total is None
        heard.append((time.monotonic(), progress, message))

    async def work() -> None:
        noisy = "for n in $(seq 300); do printf '\\033[31mline %s\\033[0m\\n' $n; sleep 0.01; done"
        async with stdio_client(tmp_path / "home", "--list", "demo", mode=mode) as client:
            answer = await client.call_tool("Bash", {"command": noisy}, progress_callback=hear)
            assert "line 300" in str(answer.content)

    run(work)
    assert 1 <= len(heard) <= 10
    assert all(message is not None and message.startswith("line ") for _, _, message in heard), heard
    assert "\x1b" not in str(heard)
    values = [progress for _, progress, _ in heard]
    assert values == sorted(set(values)), "progress only goes up"
    assert all(after - before > 0.8 for before, after in itertools.pairwise(values))


@pytest.mark.req("T-02")
def test_a_wait_for_a_job_says_how_it_stands_as_well(tmp_path: Path) -> None:
    heard: list[str | None] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message)

    async def work() -> None:
        async with stdio_client(tmp_path / "home", "--list", "demo") as client:
            script = "sleep 1.2; echo compiling; sleep 1.2; echo linked"
            started = await client.call_tool("Bash", {"command": script, "run_in_background": True})
            assert started.structured_content is not None
            job_id = started.structured_content["task_id"]
            answer = await client.call_tool("TaskOutput", {"task_id": job_id}, progress_callback=hear)
            assert "retrieval_status: success" in str(answer.content)

    run(work)
    assert "compiling" in heard


@pytest.mark.req("T-02")
def test_what_is_over_at_once_says_nothing_on_its_way(tmp_path: Path) -> None:
    heard: list[str | None] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message)

    async def work() -> None:
        async with stdio_client(tmp_path / "home", "--list", "demo") as client:
            answer = await client.call_tool("Bash", {"command": "seq 1000"}, progress_callback=hear)
            assert isinstance(answer, CallToolResult)

    run(work)
    assert heard == []
