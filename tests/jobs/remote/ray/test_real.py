"""
A real Ray, in a network of its own: its contract, deaths of nodes and of heads, long logs, tokens.

Each test starts a cluster and ends it; what took how long is printed (`pytest -s`).
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from support.ray_answers import Recorded, record, recorded
from support.ray_cluster import Cluster, cluster, followed
from support.wait import until
from taskyard.errors import RemoteRefused
from taskyard.jobs.remote.backend import PollResult, RemoteState, Work
from taskyard.jobs.remote.ray import MAX_ENV_BYTES, RayBackend
from taskyard.jobs.remote.remotes import Remote
from taskyard.testing import check_remote_backend

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

TICKS = "i=0; while [ $i -lt {} ]; do i=$((i+1)); echo tick $i; sleep {}; done"

T = TypeVar("T")


@pytest.fixture
def ray() -> Iterator[Cluster]:
    with cluster() as found, found.client.entered():
        yield found


def ask(ray: Cluster, act: Callable[[RayBackend], Awaitable[T]], token: str | None = None) -> T:
    async def asked() -> T:
        backend = ray.backend(token)
        try:
            return await act(backend)
        finally:
            await backend.close()

    return asyncio.run(asked())


def submit(ray: Cluster, work: Work, **options: object) -> None:
    async def submitted() -> None:
        backend = RayBackend(Remote("cluster", "ray", url=ray.url, options=options), ray.token)
        await backend.submit(work)
        await backend.close()

    asyncio.run(submitted())


def poll(ray: Cluster, session: str, cursor: str = "") -> PollResult:
    return ask(ray, lambda backend: backend.poll(session, cursor))


def said(what: str, began: float) -> None:
    print(f"{what}: {time.monotonic() - began:.1f} s", flush=True)


@pytest.mark.req("X-02")
def test_a_real_ray_with_a_token_keeps_the_promises_of_a_place() -> None:
    began = time.monotonic()
    with cluster(token="a-token-of-the-cluster") as ray, ray.client.entered():
        said("head with a token, ready", began)
        began = time.monotonic()
        check_remote_backend(
            ray.backend,
            talkative=lambda work: work._replace(command='printf %s "$TASKYARD_PROMPT"'),
            failing=lambda work: work._replace(command="exit 3"),
            endless=lambda work: work._replace(command="sleep 300"),
            away=lambda: RayBackend(Remote("gone", "ray", url=f"http://{ray.nodes[0].address}:9")),
            stranger=lambda: ray.backend("wrong"),
        )
        said("the contract", began)
        with pytest.raises(RemoteRefused, match="it requires a token"):
            ask(ray, RayBackend.probe, "")


@pytest.mark.req("X-02")
def test_of_a_job_whose_node_is_killed_what_was_copied_stays_and_it_failed() -> None:
    with cluster(2) as ray, ray.client.entered():
        there = {f"node:{ray.nodes[1].address}": 0.01}
        submit(ray, Work("r1", "Go.", TICKS.format(1000, 0.05)), entrypoint_resources=there)
        until(lambda: "tick 20\n" in poll(ray, "r1").text, timeout=60, what="it says something")
        copied = poll(ray, "r1")
        ray.nodes[1].power_off()
        began = time.monotonic()

        during = poll(ray, "r1", copied.cursor)
        assert (during.state, during.text, during.cursor) == (RemoteState.RUNNING, "", copied.cursor)
        assert during.metadata["log"]
        until(lambda: poll(ray, "r1", copied.cursor).state.is_final, timeout=120, what="Ray notices")
        said("a killed node is noticed", began)
        last = poll(ray, "r1", copied.cursor)

        assert (last.state, last.text, last.cursor) == (RemoteState.FAILED, "", copied.cursor)
        assert "its node is gone" in last.error
        print(last.error)


def test_a_node_that_cannot_be_reached_for_a_while_loses_no_line() -> None:
    with cluster(2) as ray, ray.client.entered():
        there = {f"node:{ray.nodes[1].address}": 0.01}
        submit(ray, Work("r1", "Go.", TICKS.format(200, 0.05)), entrypoint_resources=there)
        until(lambda: "tick 20\n" in poll(ray, "r1").text, timeout=60, what="it says something")
        copied = poll(ray, "r1")
        ray.nodes[1].cut()
        began = time.monotonic()
        during = poll(ray, "r1", copied.cursor)
        said("a poll while the node is cut off", began)
        ray.nodes[1].mend()
        last, text = ask(ray, lambda backend: followed(backend, "r1", patience=60))

        assert during.state is RemoteState.RUNNING
        assert last.state is RemoteState.COMPLETED
        assert text.splitlines() == [f"tick {number}" for number in range(1, 201)]


@pytest.mark.req("X-02")
def test_a_head_that_is_restarted_has_lost_its_jobs_and_says_so_plainly(ray: Cluster) -> None:
    submit(ray, Work("r1", "Go.", TICKS.format(1000, 0.05)))
    until(lambda: "tick 20\n" in poll(ray, "r1").text, timeout=60, what="it says something")
    copied = poll(ray, "r1")
    began = time.monotonic()
    ray.restart_head()
    lost = poll(ray, "r1", copied.cursor)
    said("the head restarted, and the job lost", began)

    assert (lost.state, lost.cursor) == (RemoteState.LOST, copied.cursor)
    assert "its head was restarted" in lost.error


#: Follows a job, and writes what it says and where it is to one file, a record at a time.
CLIENT = """
import asyncio, json, sys
from taskyard.jobs.remote.ray import RayBackend
from taskyard.jobs.remote.remotes import Remote

async def main(url, path):
    with open(path) as file:
        cursor = ([json.loads(line)["cursor"] for line in file] or [""])[-1]
    backend = RayBackend(Remote("cluster", "ray", url=url))
    with open(path, "a") as file:
        while True:
            seen = await backend.poll("r1", cursor)
            cursor = seen.cursor
            file.write(json.dumps({"text": seen.text, "cursor": cursor}) + "\\n")
            file.flush()
            if seen.state.is_final:
                return
            await asyncio.sleep(0.02)

asyncio.run(main(*sys.argv[1:]))
"""


def test_a_client_that_is_killed_again_and_again_loses_and_doubles_no_line(ray: Cluster, tmp_path: Path) -> None:
    record_file = tmp_path / "heard.jsonl"
    record_file.touch()
    submit(ray, Work("r1", "Go.", TICKS.format(400, 0.02)))
    kills = 0
    while True:
        size = record_file.stat().st_size
        client = subprocess.Popen([sys.executable, "-c", CLIENT, ray.url, str(record_file)])
        until(lambda: client.poll() is not None or record_file.stat().st_size > size + 300, timeout=30)  # noqa: B023
        if client.poll() == 0:
            break
        client.kill()
        client.wait()
        kills += 1
    heard = "".join(json.loads(line)["text"] for line in record_file.read_text("utf-8").splitlines())
    print(f"killed {kills} times")

    assert kills >= 5
    assert heard.splitlines() == [f"tick {number}" for number in range(1, 401)]


def test_a_log_of_100_mb_is_followed_in_little_memory(ray: Cluster) -> None:
    submit(ray, Work("r1", "Go.", "yes 0123456789012345678901234567890123456789 | head -c 100000000; echo; echo end"))
    until(lambda: poll(ray, "r1", "40000000-00000000").metadata["status"] == "SUCCEEDED", timeout=60)
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    seen, text = ask(ray, lambda backend: followed(backend, "r1", patience=120))
    said(f"a log of 100 MB, of which {len(text):,} characters were told", began)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    print(f"{grown} MB more at most")

    assert seen.state is RemoteState.COMPLETED
    assert text.endswith("\nend\n") and "too long" in text
    assert len(text) < 38_100_000
    assert grown < 130  # the text itself is held by this test, more than once while it grows


def test_bytes_that_are_no_text_are_told_all_the_same(ray: Cluster) -> None:
    submit(ray, Work("r1", "Go.", r"printf 'a\377b\r\n\303\251\n'"))

    _, text = ask(ray, lambda backend: followed(backend, "r1"))

    assert text == "a\ufffdb\r\né\n"


@pytest.mark.parametrize("character", ["x", "✓", '"', "\\", "'", "\n", "𝄞"])
def test_the_longest_prompt_that_is_taken_arrives(ray: Cluster, character: str) -> None:
    prompt = character * ((MAX_ENV_BYTES - 100) // len(json.dumps(character * 100)) * 100)
    submit(ray, Work("r1", prompt, 'printf %s "$TASKYARD_PROMPT" | cksum'))
    seen, text = ask(ray, lambda backend: followed(backend, "r1"))
    expected = subprocess.run(["cksum"], input=prompt.encode(), capture_output=True, check=True).stdout.decode()

    assert (seen.state, text) == (RemoteState.COMPLETED, expected)


def test_what_was_recorded_is_what_ray_answers() -> None:
    def shape(answer: Recorded) -> tuple[int, str, object]:
        keys = sorted(json.loads(answer.body)) if "json" in answer.type else []
        return answer.status, answer.type, keys

    now, then = record(), recorded()

    assert {name: shape(answer) for name, answer in now.items()} == {name: shape(each) for name, each in then.items()}
