"""An agent runs on a real Ray, in a network of its own. A few seconds of the real thing in every run of the tests."""

from __future__ import annotations

import asyncio

import pytest

from support.ray_cluster import cluster, followed
from taskyard.jobs.remote.backend import RemoteState, Work
from taskyard.jobs.remote.ray import RayBackend


@pytest.mark.serial
@pytest.mark.timeout(120)  # a head starts in four seconds, and in many more where others work hard
@pytest.mark.req("X-02", "K-03")
def test_a_job_on_a_real_ray_is_submitted_once_followed_and_ends() -> None:
    async def agent(backend: RayBackend) -> None:
        try:
            assert (await backend.probe()).startswith("Ray 2.")
            work = Work(
                "smoke1", "Grüße, $HOME ✓", 'printf "%s\\n" "$TASKYARD_PROMPT" "$WHO"; exit 3', env={"WHO": "me"}
            )
            assert await backend.submit(work) == await backend.submit(work) == "smoke1"
            seen, text = await followed(backend, "smoke1")
        finally:
            await backend.close()
        assert (seen.state, text) == (RemoteState.FAILED, "Grüße, $HOME ✓\nme\n")
        assert "exit code 3" in seen.error
        assert seen.metadata["exit_code"] == 3

    with cluster() as ray, ray.client.entered():
        asyncio.run(agent(ray.backend()))
