"""The page's application in this process, asked without a socket; and `taskyard web` as a process of its own."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import urllib.parse
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import anyio

import taskyard
from taskyard.servers.http.access import Token, allowed_hosts
from taskyard.servers.http.server import Address
from taskyard.ui.web.app import App
from taskyard.ui.web.assets import Asset
from taskyard.ui.web.site import Site, SiteOptions

SECRET = "the-secret-of-a-test-0123456789"
HOST = "127.0.0.1:8787"

#: Seconds any of it may take, on a machine with other things to do.
LONGEST = 30.0


class Got(NamedTuple):
    """An answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def data(self) -> Any:
        """What the envelope holds."""
        assert self.status < 300, self.body
        assert self.json["schema_version"] == 1
        return self.json["data"]

    @property
    def error(self) -> Any:
        """What it says instead."""
        assert self.status >= 400, self.body
        assert self.json["schema_version"] == 1
        return self.json["error"]


class Told(NamedTuple):
    """One event of a stream."""

    name: str
    id: str
    data: Any


def events_in(text: str) -> Iterator[Told]:
    """The whole events of a stream, comments left out."""
    for block in text.split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in block.splitlines() if line and not line.startswith(":"))
        if "event" in fields:
            yield Told(fields["event"], fields.get("id", ""), json.loads(fields["data"]))


class Listening:
    """One who listens to a stream."""

    def __init__(self, *, reads: bool = True) -> None:
        self.status = 0
        self.text = ""
        self.sent = 0  #: bytes, also those nobody read
        self._events: list[Told] = []
        self._seen = self._parsed = 0
        self._news = anyio.Event()
        self._may_go_on = anyio.Event()
        self.is_over = False
        if reads:
            self._may_go_on.set()

    def resume_reading(self) -> None:
        """Read what was sent, and what comes."""
        self._may_go_on.set()

    async def take(self, message: Any) -> None:
        """What the application sends."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            return
        self.sent += len(message.get("body", b""))
        await self._may_go_on.wait()
        self.text += message.get("body", b"").decode()
        whole = self.text.rfind("\n\n") + 2
        self._events += events_in(self.text[self._parsed : whole])
        self._parsed = max(self._parsed, whole)
        self.is_over = not message.get("more_body")
        self._news.set()
        self._news = anyio.Event()

    async def next(self, name: str = "") -> Told:
        """The next event, of this name if one is given."""
        with anyio.fail_after(LONGEST):
            while True:
                while self._seen < len(self._events):
                    self._seen += 1
                    if name in ("", self._events[self._seen - 1].name):
                        return self._events[self._seen - 1]
                assert not self.is_over, self.text[-500:]
                await self._news.wait()

    async def until(self, fits: Callable[[Told], bool]) -> Told:
        """The first event from here on that fits."""
        while not fits(found := await self.next()):
            pass
        return found

    def rewind(self) -> None:
        """Begin anew with what came."""
        self._seen = 0

    async def heard(self, text: str) -> None:
        """Wait until the stream holds a text, comments and all."""
        with anyio.fail_after(LONGEST):
            while text not in self.text:
                await self._news.wait()

    @property
    def unread(self) -> int:
        """Events that came and were not asked for."""
        return len(self._events) - self._seen


class Web:
    """The application, with the token."""

    def __init__(self, site: Site, app: App) -> None:
        self.site = site
        self.app = app

    @property
    def yard(self) -> taskyard.Yard:
        return self.site.yard

    async def get(self, path: str, **headers: str) -> Got:
        return await self.ask("GET", path, b"", **headers)

    async def post(self, path: str, body: object, **headers: str) -> Got:
        sent = {"Content_Type": "application/json", **headers}
        return await self.ask("POST", path, json.dumps(body).encode(), **sent)

    async def ask(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        token: str | None = SECRET,
        host: str | None = HOST,
        **headers: str,
    ) -> Got:
        """Any request. `Content_Type` as a keyword is `Content-Type`."""
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        with anyio.fail_after(LONGEST):
            await self.app(_scope(method, path, token, host, headers), _receiving(body), send)
        found = {name.decode(): value.decode("latin-1") for name, value in sent[0]["headers"]}
        return Got(sent[0]["status"], found, b"".join(each.get("body", b"") for each in sent[1:]))

    @asynccontextmanager
    async def listen(self, path: str, *, reads: bool = True, **headers: str) -> AsyncIterator[Listening]:
        """Listen to a stream; `reads`: what is sent is read at once, else only after `resume_reading`."""
        listening = Listening(reads=reads)
        gone = anyio.Event()
        asked = False

        async def receive() -> Any:
            nonlocal asked
            if not asked:
                asked = True
                return {"type": "http.request", "body": b"", "more_body": False}
            await gone.wait()
            return {"type": "http.disconnect"}

        async with anyio.create_task_group() as tasks:
            scope = _scope("GET", path, SECRET, HOST, headers)
            tasks.start_soon(self.app, scope, receive, listening.take)
            yield listening
            gone.set()
            listening.resume_reading()


def _scope(method: str, path: str, token: str | None, host: str | None, headers: Mapping[str, str]) -> dict[str, Any]:
    sent = {name.replace("_", "-").lower(): value for name, value in headers.items()}
    if token is not None:
        sent.setdefault("authorization", f"Bearer {token}")
    if host is not None:
        sent.setdefault("host", host)
    address = urllib.parse.urlsplit(f"http://x{path}")
    return {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": urllib.parse.unquote(address.path),
        "raw_path": address.path.encode(),
        "query_string": address.query.encode(),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in sent.items()],
    }


def _receiving(body: bytes) -> Callable[[], Awaitable[Any]]:
    parts = [body[at : at + 65536] for at in range(0, len(body), 65536)] or [b""]

    async def receive() -> Any:
        if not parts:
            await anyio.sleep_forever()
        part = parts.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(parts)}

    return receive


def with_web(
    body: Callable[[Web], Awaitable[None]],
    *,
    list: str = "plan",
    agent: str | None = None,
    assets: dict[str, Asset] | None = None,
    **options: Any,
) -> None:
    """Have a conversation with the application on a list, bounded."""

    async def run() -> None:
        with anyio.fail_after(LONGEST), taskyard.open(list=list, agent=agent, via="web", is_person=True) as yard:
            site = Site(yard, assets or {}, SiteOptions(**options))
            app = App(site, token=Token(SECRET, None), hosts=allowed_hosts(Address("127.0.0.1", 8787)))
            try:
                await body(Web(site, app))
            finally:
                site.close()

    try:
        anyio.run(run)
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        raise error from None


class WebServer:
    """`taskyard web`, for the length of a `with` block."""

    def __init__(self, *words: str, port: str = "0", list: str = "plan") -> None:
        command = [sys.executable, "-m", "taskyard", "web", "--port", port, "--list", list, "--json", *words]
        self.errors = Path(os.environ["HOME"]) / f"errors-{os.urandom(4).hex()}"
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.said
        self.ready: dict[str, Any] = json.loads(line)["data"]
        self.url, _, self.token = str(self.ready["url"]).partition("#token=")
        self.address = urllib.parse.urlsplit(self.url).netloc

    @property
    def said(self) -> str:
        """What it wrote to stderr."""
        return self.errors.read_text(encoding="utf-8", errors="replace")

    def __enter__(self) -> WebServer:
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

    def get(self, path: str, *, token: str | None = "", **headers: str) -> Got:
        """A request over a socket."""
        with self.open(path, token=token, **headers) as stream:
            return Got(
                stream.answer.status, {k.lower(): v for k, v in stream.answer.getheaders()}, stream.answer.read()
            )

    def open(self, path: str, *, token: str | None = "", **headers: str) -> Open:
        """The same, with its answer still to be read."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if token is not None:
            sent.setdefault("Authorization", f"Bearer {token or self.token}")
        return Open(self.address, path, sent)


class Open:
    """An answer that is being read."""

    def __init__(self, address: str, path: str, headers: Mapping[str, str]) -> None:
        self._connection = http.client.HTTPConnection(address, timeout=LONGEST)
        self._connection.request("GET", path, None, dict(headers))
        self.answer = self._connection.getresponse()
        self._text = ""

    def next(self) -> Told:
        """The next event."""
        while "event: " not in self._text or not self._text.endswith("\n\n"):
            line = self.answer.readline().decode()
            assert line, "the stream ended"
            self._text += line
            if self._text.endswith("\n\n") and "event: " not in self._text:
                self._text = ""
        [found] = events_in(self._text)
        self._text = ""
        return found

    def until(self, fits: Callable[[Told], bool]) -> Told:
        """The first event from here on that fits."""
        while not fits(found := self.next()):
            pass
        return found

    def close(self) -> None:
        self._connection.close()
        self.answer.close()

    def __enter__(self) -> Open:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
