"""Agents that speak A2A, for tests: somebody else's (`a2a_agent`), and ways to ask them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio

from taskyard.remote.a2a.backend import A2aBackend
from taskyard.remote.remotes import Remote

T = TypeVar("T")

#: Seconds any of it may take, on a machine with other things to do.
LONGEST = 30.0

TOKEN = "a-token-of-a-test-0123456789"


@contextmanager
def agent(*words: str) -> Generator[str]:
    """Somebody else's agent in a process of its own; its address."""
    command = [sys.executable, "-P", str(Path(__file__).with_name("a2a_agent.py")), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=dict(os.environ)) as process:
        assert process.stdout is not None
        try:
            url = process.stdout.readline().decode().strip()
            assert url
            yield url
        finally:
            process.send_signal(signal.SIGKILL)


def backend(url: str, token: str = "", **options: object) -> A2aBackend:
    """What speaks to the agent at `url`."""
    return A2aBackend(Remote("there", "a2a", url, options=options), token)


def run(body: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Do something asynchronous, within a bound."""

    async def bounded() -> T:
        with anyio.fail_after(LONGEST):
            return await body()

    return anyio.run(bounded)


def talk(made: A2aBackend, body: Callable[[A2aBackend], Coroutine[Any, Any, T]]) -> T:
    """Speak to an agent, and let go of it."""

    async def spoken() -> T:
        try:
            return await body(made)
        finally:
            await made.close()

    return run(spoken)
