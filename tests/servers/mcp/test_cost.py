"""What a call costs does not grow with what it looks at."""

from __future__ import annotations

import statistics
import time

import pytest

from support.mcp_server import Model, talk


async def _took(model: Model, job_id: str) -> float:
    began = time.monotonic()
    said = await model.call("TaskOutput", task_id=job_id)
    assert len(said.data["output"]) == 32_000
    return time.monotonic() - began


@pytest.mark.req("T-02", "O-05")
@pytest.mark.serial  # two times are compared
def test_ten_megabytes_of_output_cost_what_their_last_32_000_characters_cost() -> None:
    async def body(model: Model) -> None:
        small, large = [
            (await model.call("Bash", command=f"yes line | head -c {size}", run_in_background=True)).data["task_id"]
            for size in (40_000, 10_000_000)
        ]
        for job_id in (small, large):
            await model.call("TaskOutput", task_id=job_id)
        rounds = [(await _took(model, large), await _took(model, small)) for _ in range(25)]  # side by side
        assert statistics.median(large for large, _ in rounds) < 1.5 * statistics.median(small for _, small in rounds)

    talk(body)
