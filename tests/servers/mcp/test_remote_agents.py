"""Agents elsewhere through the tools: asked for, read, told something, stopped."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from support.fake_places import FakePlace, set_up
from support.mcp_server import Model, talk
from support.wait import until
from taskyard.jobs.jobs import Jobs


@pytest.fixture
def place(tmp_path: Path, plugin: None) -> Iterator[FakePlace]:
    found = FakePlace(tmp_path / "place")
    set_up(found)
    yield found
    found.kill()


async def seen(job_id: str, what: str) -> None:
    jobs = Jobs(os.environ["TASKYARD_HOME"])
    await anyio.to_thread.run_sync(lambda: until(lambda: getattr(jobs.get(job_id), what)))


@pytest.mark.req("T-02", "T-03", "K-03")
def test_an_agent_elsewhere_is_asked_read_told_and_stopped(place: FakePlace) -> None:
    async def body(model: Model) -> None:
        said = await model.call("Agent", prompt="one\n/result All is well.", remote="here")
        assert (said.text, said.data["task_type"]) == ("All is well.", "remote_agent")

        started = await model.call(
            "Agent", prompt="two\n/ask Which?\n/forever", remote="here", name="afar", run_in_background=True
        )
        assert "what it says is being written to:" in started.text
        job_id = started.data["task_id"]
        await seen(job_id, "needs_input")
        read = await model.call("TaskOutput", task_id=job_id, block=False)
        assert (read.data["output"], read.data["prompt"], read.data["needs_input"]) == (
            "two\n",
            "two\n/ask Which?\n/forever",
            True,
        )
        await model.call("SendMessage", to="afar", message="left")
        place.switch("away")
        await seen(job_id, "is_disconnected")
        read = await model.call("TaskOutput", task_id=job_id, block=False)
        assert "here cannot be reached: it hung up" in read.data["disconnected"]
        place.clear("away")
        assert (await model.call("TaskStop", task_id=job_id)).data["outcome"] == "stopped"

    talk(body)


@pytest.mark.req("T-03")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"remote": "nowhere"}, "No remote"),
        ({"remote": "here", "engine": "claude"}, "engine is about an agent that works here"),
        ({"remote_task_type": "ultraplan"}, "remote_task_type is for an agent elsewhere"),
        ({"remote": "here", "remote_task_type": "party"}, "remote_task_type"),
        ({"remote": "here", "token": "x"}, "token"),
    ],
)
def test_what_cannot_be_is_refused(place: FakePlace, given: dict[str, str], said: str) -> None:
    async def body(model: Model) -> None:
        assert said in (await model.refused("Agent", prompt="hello", **given)).text

    talk(body)
