"""
A real Ray, on machines of the test's own: its processes listen beyond loopback, and here that leads nowhere.

    with cluster(2, token="…") as ray:
        with ray.client.entered():             # a machine beside the cluster: this thread can reach ray.url from there
            …
        ray.nodes[1].power_off()
        ray.restart_head()

Ray lives in a virtual environment of its own, which `make setup-ray` makes; where it is not there tests are skipped.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from support.namespaces import Machine, machines
from support.repo import ROOT
from taskyard.jobs.remote.backend import PollResult
from taskyard.jobs.remote.ray import RayBackend
from taskyard.jobs.remote.remotes import Remote

RAY = ROOT / ".venv-ray" / "bin" / "ray"

#: Seconds until a head answers, or a node has joined, on a busy machine. Idle, it takes four.
_START = 50.0

_PORT, _DASHBOARD = 6399, 8265

#: Bytes of the object store, which no test uses: the least that Ray takes is 75 MB.
_STORE = 100_000_000


class Cluster:
    """A head on the first machine, a node on each other but the last, where nothing of Ray runs."""

    def __init__(self, on: tuple[Machine, ...], folder: Path, token: str) -> None:
        self.nodes, self.client = on[:-1], on[-1]
        self.url = f"http://{on[0].address}:{_DASHBOARD}"
        self.token = token
        self._folder = folder
        self._headers = {"authorization": f"Bearer {token}"} if token else {}
        auth = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token} if token else {"RAY_AUTH_MODE": "disabled"}
        self._env = {"PATH": os.environ["PATH"], "HOME": str(folder), "RAY_USAGE_STATS_ENABLED": "0", **auth}

    def backend(self, token: str | None = None) -> RayBackend:
        """One for it; with another token than its own if one is given."""
        return RayBackend(Remote("cluster", "ray", url=self.url), self.token if token is None else token)

    def start_head(self) -> None:
        """Start it, and wait until it answers."""
        here = self.nodes[0].address
        self._start(
            self.nodes[0], "--head", f"--port={_PORT}", f"--dashboard-host={here}", f"--dashboard-port={_DASHBOARD}",
            "--include-dashboard=true", f"--temp-dir={self._folder}",
        )  # fmt: skip
        self._until(lambda: self.ask("/api/version").status_code == 200, "the head answers")

    def start_node(self, machine: Machine) -> None:
        """Let a machine join, and wait until it has."""
        self._start(machine, f"--address={self.nodes[0].address}:{_PORT}")
        self._until(lambda: machine.address in self.living(), "the node joins")

    def restart_head(self) -> None:
        """Switch off its machine, and start it anew."""
        self.nodes[0].power_off()
        self.start_head()

    def living(self) -> set[str]:
        """The addresses of the nodes that Ray believes to be alive."""
        nodes = self.ask("/api/v0/nodes").json()["data"]["result"]["result"]
        return {node["node_ip"] for node in nodes if node["state"] == "ALIVE"}

    def ask(self, path: str, query: Mapping[str, str] | None = None) -> httpx.Response:
        """What the dashboard answers."""
        with self.client.entered():
            return httpx.get(self.url + path, params=query, headers=self._headers, timeout=20, trust_env=False)

    def _start(self, machine: Machine, *words: str) -> None:
        here = f"--node-ip-address={machine.address}"
        common = ["--num-cpus=1", f"--object-store-memory={_STORE}", "--disable-usage-stats", "--block"]
        with open(self._folder / f"{machine.name}.out", "ab") as out:
            machine.popen(
                [RAY, "start", *words, here, *common],
                env=self._env, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=self._folder,
            )  # fmt: skip

    def _until(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _START
        while True:
            try:
                if holds():
                    return
            except (httpx.TransportError, KeyError, ValueError):
                pass  # it is on its way
            if time.monotonic() > deadline:
                said = "".join(path.read_text(errors="replace") for path in self._folder.glob("*.out"))
                raise AssertionError(f"not within {_START:.0f} s: {what}\n{said[-3000:]}")
            time.sleep(0.1)


@contextmanager
def cluster(count: int = 1, *, token: str = "") -> Iterator[Cluster]:
    """A cluster of so many nodes, and a machine beside it; a skipped test where Ray is not installed."""
    if not RAY.exists():
        pytest.skip("ray is not installed: make setup-ray")
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))  # short: names of its sockets are long enough
    try:
        with machines(count + 1) as on:
            made = Cluster(on, folder, token)
            made.start_head()
            for machine in made.nodes[1:]:
                made.start_node(machine)
            yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def followed(backend: RayBackend, session: str, *, patience: float = 30.0) -> tuple[PollResult, str]:
    """Poll until it is over; how it ended, and all that it said."""
    cursor, text = "", ""
    async with asyncio.timeout(patience):
        while True:
            seen = await backend.poll(session, cursor)
            cursor, text = seen.cursor, text + seen.text
            if seen.state.is_final:
                return seen, text
            await asyncio.sleep(0.1)
