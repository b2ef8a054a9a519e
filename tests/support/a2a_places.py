"""Agents that speak A2A, for tests: somebody else's (`a2a_agent`), ours (`offered_agent`), and ways to ask both."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
import httpx
from a2a.client import Client, ClientConfig, ClientFactory
from a2a.types.a2a_pb2 import (
    GetTaskRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    Task,
    TaskState,
)

from support.repo import SOURCE
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.remote.a2a import A2aBackend, parts_text
from taskyard.jobs.remote.remotes import Remote
from taskyard.servers.a2a.tasks import FINAL_STATES

T = TypeVar("T")

#: Seconds any of it may take, on a machine with other things to do.
LONGEST = 30.0

TOKEN = "a-token-of-a-test-0123456789"

#: Variables of whoever runs the tests that are not for servers.
OUTSIDE = ("TASKYARD_", "CLAUDE", "XDG_", "CODEX_", "GEMINI_")


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


#: An agent of ours, as a command of a skill.
OFFERED = f"{sys.executable} -P {Path(__file__).with_name('offered_agent.py')} {{prompt}}"


class Yard:
    """A home of its own, and `taskyard a2a serve` over it, as often as a test likes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = str(folder / "home")
        env = {name: value for name, value in os.environ.items() if not name.startswith(OUTSIDE)}
        own = {"HOME": str(folder), "TASKYARD_HOME": self.home, "XDG_CONFIG_HOME": str(folder / "config")}
        self.env = {**env, **own, "PYTHONPATH": str(SOURCE)}

    def configure(self, text: str) -> None:
        """Write config.toml."""
        path = self.folder / "config" / "taskyard"
        path.mkdir(parents=True, exist_ok=True)
        (path / "config.toml").write_text(text, encoding="utf-8")

    def cli(self, *words: str) -> Any:
        """What a command answers with `--json`."""
        command = [sys.executable, "-m", "taskyard", *words, "--json"]
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=LONGEST, check=False)
        return json.loads(done.stdout)["data"]

    def jobs(self) -> Jobs:
        """The jobs behind the tasks."""
        return Jobs(self.home)

    def stop_jobs(self) -> None:
        """End whatever is still at work in this home: jobs outlive the server that started them."""
        jobs = self.jobs()
        jobs.stop(*[job.id for job in jobs.list()], grace=0.1)
        jobs.close()

    def serve(self, *words: str, port: str = "0") -> OurServer:
        """A server over this home; `words` or config.toml say what it offers."""
        return OurServer(self, "--port", port, *(words or ("--command", OFFERED)))


class OurServer:
    """`taskyard a2a serve`, for the length of a `with` block."""

    def __init__(self, yard: Yard, *words: str) -> None:
        self.yard = yard
        command = [sys.executable, "-m", "taskyard", "a2a", "serve", "--json", *words]
        self.errors = yard.folder / f"errors-{os.urandom(4).hex()}"
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                command, env=yard.env, cwd=yard.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.said
        self.ready: dict[str, Any] = json.loads(line)["data"]
        self.url = str(self.ready["url"])
        self.token = Path(self.ready["token_file"]).read_text(encoding="ascii").strip()

    @property
    def said(self) -> str:
        """What it wrote to stderr."""
        return self.errors.read_text(encoding="utf-8", errors="replace")

    def __enter__(self) -> OurServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self, sig: int = signal.SIGTERM) -> int:
        """Its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(sig)
        code = self.process.wait(LONGEST)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code

    def backend(self) -> A2aBackend:
        """Ours, for it."""
        return backend(self.url, self.token)

    def talk(self, body: Callable[[Client], Coroutine[Any, Any, T]], *, token: str = "", rest: bool = False) -> T:
        """Have the official client speak to it."""

        async def spoken() -> T:
            headers = {"Authorization": f"Bearer {token or self.token}"}
            async with httpx.AsyncClient(headers=headers, timeout=LONGEST, trust_env=False) as http:
                bindings = ["HTTP+JSON"] if rest else ["JSONRPC"]
                how = ClientConfig(httpx_client=http, streaming=True, supported_protocol_bindings=bindings)
                return await body(await ClientFactory(how).create_from_url(self.url))

        return run(spoken)


def message(text: str, **more: Any) -> Message:
    """What a caller says."""
    more.setdefault("message_id", os.urandom(8).hex())
    return Message(role=Role.ROLE_USER, parts=[Part(text=text)], **more)


async def begun(client: Client, text: str, **more: Any) -> Task:
    """A task that was begun, and not waited for."""
    return await sent(client, message(text, **more))


async def sent(client: Client, given: Message) -> Task:
    """What a message was answered with at once."""
    how = SendMessageConfiguration(return_immediately=True)
    client._config.streaming = False  # type: ignore[attr-defined]  # else the answer is a stream
    try:
        async for answer in client.send_message(SendMessageRequest(message=given, configuration=how)):
            return answer.task
    finally:
        client._config.streaming = True  # type: ignore[attr-defined]
    raise AssertionError("no answer")


async def until(client: Client, task_id: str, is_so: Callable[[Task], bool]) -> Task:
    """A task once something is true of it."""
    while True:
        task = await client.get_task(GetTaskRequest(id=task_id))
        if is_so(task):
            return task
        await anyio.sleep(0.03)


def is_over(task: Task) -> bool:
    return task.status.state in FINAL_STATES


def asks(task: Task) -> bool:
    return task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED


def said(task: Task) -> str:
    """The transcript."""
    return "".join(parts_text(artifact.parts) for artifact in task.artifacts if artifact.artifact_id == "transcript")
