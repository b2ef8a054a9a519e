"""
A small server that answers as Ray does, on loopback: by what was recorded from a real one (`ray_answers`).

Jobs are real processes, their logs real files with Ray's lines in them, and Ray's way with variables is kept.
`server.instead` replaces answers, to be what no Ray would say.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from support.ray_answers import recorded

NODE = "4c844c44aeedd506941bb49c7bccf016bdf5fda1905058e3fee96464"

#: How an answer is given that was not recorded.
Instead = Callable[[BaseHTTPRequestHandler], None]

_ENDED = {0: "succeeded"}


class Job:
    """One job: a process, and its log."""

    def __init__(self, folder: Path, asked: dict[str, object]) -> None:
        self.id = str(asked["submission_id"])
        self.asked = asked
        self.entrypoint = str(asked["entrypoint"])
        self.is_stopped = False
        runtime_env = asked.get("runtime_env")
        variables = runtime_env.get("env_vars", {}) if isinstance(runtime_env, dict) else {}
        env = {**os.environ, **{name: as_ray_sets(value) for name, value in variables.items()}}
        self.log = folder / f"job-driver-{self.id}.log"
        first = recorded()["log"].body.split("\n")[0]
        with self.log.open("ab") as log:
            log.write(f"{first}\n".encode())
            log.flush()
            self.process = subprocess.Popen(
                ["/bin/sh", "-c", self.entrypoint], env=env, stdout=log, stderr=log, start_new_session=True
            )
            log.write(f"Running entrypoint for job {self.id}: {self.entrypoint}\n".encode())

    def stop(self) -> bool:
        """Whether it was running."""
        if self.process.poll() is not None:
            return False
        self.is_stopped = True
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait()
        return True

    def details(self) -> str:
        code = self.process.poll()
        name = "stopped" if self.is_stopped else "running" if code is None else _ENDED.get(code, "failed")
        told = json.loads(recorded()[name].body)
        told |= {"submission_id": self.id, "entrypoint": self.entrypoint, "driver_node_id": NODE}
        return json.dumps({**told, "driver_exit_code": code, "metadata": self.asked.get("metadata")})


class RayServer(ThreadingHTTPServer):
    """The dashboard."""

    daemon_threads = True

    def __init__(self, folder: Path, token: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder = folder
        self.token = token
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.jobs: dict[str, Job] = {}
        self.asked: list[str] = []  #: each request, as `GET /path`
        self.headers: list[dict[str, str]] = []
        self.instead: dict[str, Instead] = {}  #: by what the path begins with
        self.lock = threading.Lock()

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of those who hang up."""


class _Handler(BaseHTTPRequestHandler):
    server: RayServer

    def log_message(self, format: str, *args: object) -> None: ...

    def do_GET(self) -> None:
        self._answered()

    def do_POST(self) -> None:
        self._answered()

    def _answered(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.server.asked.append(f"{self.command} {path}")
        self.server.headers.append(dict(self.headers.items()))
        for start, instead in self.server.instead.items():
            if path.startswith(start):
                return instead(self)
        if self.server.token and self.headers.get("authorization") != f"Bearer {self.server.token}":
            return say(self, "forbidden" if "authorization" in self.headers else "unauthorized")
        with self.server.lock:
            return self._as_ray(path)

    def _as_ray(self, path: str) -> None:
        query = {key: values[0] for key, values in parse_qs(urlsplit(self.path).query).items()}
        _, _, *words = path.split("/")
        match (self.command, *words):
            case ("GET", "version"):
                say(self, "version")
            case ("POST", "jobs", ""):
                self._submit(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            case ("GET", "jobs", job) if job in self.server.jobs:
                say(self, "running", self.server.jobs[job].details())
            case ("POST", "jobs", job, "stop") if job in self.server.jobs:
                say(self, "stop taken" if self.server.jobs[job].stop() else "stopped too late")
            case (_, "jobs", *_):
                say(self, "unknown")
            case ("GET", "v0", "logs", "file"):
                self._log(self.server.folder / query["filename"], int(query["lines"]))
            case ("GET", "v0", "nodes"):
                say(self, "node alive")
            case _:
                say(self, "no route")

    def _submit(self, asked: dict[str, object]) -> None:
        job = str(asked["submission_id"])
        if not all(isinstance(value, str) for value in (asked.get("metadata") or {}).values()):  # type: ignore[attr-defined]
            say(self, "bad metadata")
        elif job in self.server.jobs:
            say(self, "exists", recorded()["exists"].body.replace("good", job))
        else:
            self.server.jobs[job] = Job(self.server.folder, asked)
            say(self, "submitted", json.dumps({"job_id": job, "submission_id": job}))

    def _log(self, file: Path, lines: int) -> None:
        if not file.is_file():
            return say(self, "no file")
        found = file.read_bytes()
        send(self, 200, found if lines < 0 else b"".join(found.splitlines(keepends=True)[-lines:]), "text/plain")
        return None


def as_ray_sets(value: str) -> str:
    """A variable, as Ray sets it: others that it names are put in their place."""
    return re.sub(r"\$\{[A-Z0-9_]+\}", "", os.path.expandvars(value))


def send(handler: BaseHTTPRequestHandler, status: int, body: bytes, type: str, **headers: str) -> None:
    """Answer so."""
    handler.send_response(status)
    for name, value in {"content-type": type, "content-length": str(len(body)), **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def say(handler: BaseHTTPRequestHandler, name: str, body: str | None = None) -> None:
    """Answer as was recorded, with another body if need be."""
    answer = recorded()[name]
    send(handler, answer.status, (answer.body if body is None else body).encode(), answer.type)


@contextmanager
def ray_server(folder: Path, token: str = "") -> Iterator[RayServer]:
    """One that serves until the block is left."""
    with RayServer(folder, token) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
            for job in server.jobs.values():
                job.stop()
                job.process.wait()
