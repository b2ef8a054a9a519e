"""The server: it takes what any of the three providers' clients send, and answers by the script."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from support.model_api import anthropic, google, openai
from support.model_api.request import Request
from support.model_api.script import Choose, Reply, Step


class ModelApi:
    """What was asked, and what is answered next; the last step of the script is repeated."""

    def __init__(self, url: str, steps: tuple[Step | Choose, ...]) -> None:
        self.url = url
        self.requests: list[Request] = []
        self.outside: list[str] = []  #: hosts beyond this machine that a program tried to reach by the proxy
        self._steps: list[Step | Choose] = list(steps)
        self._lock = threading.Lock()
        self.over = threading.Event()

    @property
    def turns(self) -> list[Request]:
        """The requests that are the agent's work."""
        return [request for request in self.requests if request.is_turn]

    def then(self, *steps: Step | Choose) -> None:
        """What the model does from now on."""
        with self._lock:
            self._steps = list(steps)

    def answer(self, path: str, headers: dict[str, str], body: Any) -> Reply:
        """Take a request in; how it is answered."""
        provider = _provider(path)
        if provider is None:
            return Reply(404, {}, {"error": {"message": f"no {path} here"}})
        request = Request(provider, path, headers, body, time.monotonic())
        with self._lock:
            self.requests.append(request)
        is_stream = "stream" in path
        if path.endswith("/count_tokens"):
            return anthropic.count_tokens(body)
        if ":countTokens" in path:
            return google.count_tokens()
        if not request.is_turn:
            return _side(provider, body, is_stream=is_stream)
        with self._lock:
            step = self._steps.pop(0) if len(self._steps) > 1 else self._steps[0]
        if isinstance(step, Choose):
            step = step.step(request)
        if provider == "google":
            return google.reply(step, is_stream=is_stream)
        return anthropic.reply(step, body) if provider == "anthropic" else openai.reply(step, body)


def _provider(path: str) -> str | None:
    if "/messages" in path:
        return "anthropic"
    if path.endswith("/responses"):
        return "openai"
    return (
        "google" if ":generateContent" in path or ":streamGenerateContent" in path or ":countTokens" in path else None
    )


def _side(provider: str, body: Any, *, is_stream: bool) -> Reply:
    if provider == "google":
        return google.side(is_stream=is_stream)
    return anthropic.side(body) if provider == "anthropic" else openai.side(body)


@contextmanager
def model_api(*steps: Step | Choose) -> Iterator[ModelApi]:
    """A server for the length of a `with` block, on loopback."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.api = ModelApi(f"http://127.0.0.1:{server.server_address[1]}", steps)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server.api
    finally:
        server.api.over.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    api: ModelApi

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A program that hangs up is no error of ours."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_CONNECT(self) -> None:
        self.server.api.outside.append(self.path)
        self._send(Reply(403, {}, {"error": "no network beyond this machine"}))

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if self.path.startswith("http://"):
            self.server.api.outside.append(self.path)
        if path.endswith("/models"):
            self._send(Reply(body={"data": [], "models": [], "object": "list"}))
        else:
            self._send(Reply(404, {}, {"error": {"message": "nothing here"}}))

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            body = json.loads(data or b"{}")
        except ValueError:
            body = {}
        path = self.path.partition("?")[0]
        self._send(self.server.api.answer(path, dict(self.headers.items()), body))

    def _send(self, reply: Reply) -> None:
        if reply.then and not reply.events:
            if reply.then == "hang":
                self.server.api.over.wait()
            self.close_connection = True
            return
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if reply.events:
            self._send_events(reply)
            return
        data = json.dumps(reply.body).encode()
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _send_events(self, reply: Reply) -> None:
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for name, data in reply.events:
            head = f"event: {name}\n" if name else ""
            self._chunk(f"{head}data: {json.dumps(data)}\n\n".encode())
        if reply.then == "hang":
            self.server.api.over.wait()
        if reply.then:
            self.close_connection = True  # without the last chunk: the client sees that something is missing
            return
        self._chunk(b"")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the test says what went wrong."""
