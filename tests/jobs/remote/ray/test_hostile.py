"""Whatever answers in the place of Ray, an error of ours comes of it, soon, and in little memory."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from http.server import BaseHTTPRequestHandler

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.ray_answers import recorded
from support.ray_server import Instead, RayServer, ray_server, say, send
from taskyard.errors import RemoteAway, RemoteRefused
from taskyard.jobs.remote import ray
from taskyard.jobs.remote.backend import PollResult, RemoteState, Work
from taskyard.jobs.remote.ray import RayBackend
from taskyard.jobs.remote.remotes import Remote

VERBS: dict[str, Callable[[RayBackend], Awaitable[object]]] = {
    "submit": lambda backend: backend.submit(Work("r1", "Go.", "true")),
    "poll": lambda backend: backend.poll("r1"),
    "send": lambda backend: backend.send("r1", "hello"),
    "probe": lambda backend: backend.probe(),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayServer]:
    with ray_server(tmp_path_factory.mktemp("ray")) as found:
        yield found


def ask(server: RayServer, verb: str, instead: Instead, path: str = "/") -> object:
    async def asked() -> object:
        backend = RayBackend(Remote("cluster", "ray", url=server.url))
        try:
            return await asyncio.wait_for(VERBS[verb](backend), 20)
        finally:
            await backend.close()

    server.instead = {path: instead}
    return asyncio.run(asked())


def body(body: bytes, type: str = "application/json", status: int = 200, **headers: str) -> Instead:
    return lambda handler: send(handler, status, body, type, **headers)


def endless(handler: BaseHTTPRequestHandler) -> None:
    """A body that never ends, as fast as it is taken."""
    handler.send_response(200)
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(b'{"status": "' + b"x" * 1_000_000)
    except OSError:
        pass


def dripping(handler: BaseHTTPRequestHandler) -> None:
    """A body that never ends, a byte at a time."""
    handler.send_response(200)
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(b" ")
            time.sleep(0.02)
    except OSError:
        pass


def hanging_up(handler: BaseHTTPRequestHandler) -> None:
    handler.connection.close()


def half(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("content-length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"ray_')
    handler.connection.close()


NO_RAY: dict[str, Instead] = {
    "a page": lambda handler: say(handler, "page"),
    "no JSON": body(b"{not json"),
    "a list": body(b"[1, 2]"),
    "nothing": body(b""),
    "null": body(b"null"),
    "bytes": body(b"\xff\xfe\x00"),
    "deep": body(b"[" * 100_000),
    "packed": body(gzip.compress(b"{}" * 1_000_000), content_encoding="gzip"),
    "elsewhere": body(b"", status=307, location="http://169.254.169.254/latest"),
    "nowhere": body(b"", status=304),
    "teapot": body(b"I am one", "text/plain", 418),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("name", NO_RAY)
def test_what_is_not_ray_is_refused(server: RayServer, name: str, verb: str) -> None:
    with pytest.raises(RemoteRefused):
        ask(server, verb, NO_RAY[name])


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("instead", [hanging_up, half, *(body(b"", "text/html", n) for n in (408, 429, 500, 502, 503))])
def test_what_breaks_off_or_says_later_is_away(server: RayServer, instead: Instead, verb: str) -> None:
    with pytest.raises(RemoteAway):
        ask(server, verb, instead)


@pytest.mark.parametrize("verb", VERBS)
def test_an_answer_without_an_end_is_not_taken_in(server: RayServer, verb: str) -> None:
    with pytest.raises(RemoteRefused, match="is not one of Ray's"):
        ask(server, verb, endless)


@pytest.mark.parametrize("verb", VERBS)
def test_an_answer_that_drips_is_not_waited_for(server: RayServer, verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "_REQUEST_TIMEOUT", 0.2)

    with pytest.raises(RemoteAway, match="does not answer in time"):
        ask(server, verb, dripping)


def test_a_log_without_an_end_is_told_in_parts(server: RayServer) -> None:
    server.instead = {}
    running = recorded()["running"].body

    def both(handler: BaseHTTPRequestHandler) -> None:
        endless(handler) if "/logs/" in handler.path else say(handler, "running", running)

    seen = ask(server, "poll", both)

    assert isinstance(seen, PollResult) and 4_000_000 < len(seen.text) <= 4 * 1024 * 1024 + 1


def test_a_redirect_is_not_followed(server: RayServer) -> None:
    there = body(b"", status=302, location=f"{server.url}/elsewhere")
    server.asked.clear()

    with pytest.raises(RemoteRefused, match="no redirect is followed"):
        ask(server, "probe", there, "/api/")
    assert server.asked == ["GET /api/version"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ("status", "entrypoint", "message", "driver_node_id", "driver_exit_code", "metadata", "type", "submission_id")


@given(st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=5), st.binary(max_size=60), st.sampled_from([200, 500]))
def test_any_fields_of_a_job_are_read_or_refused(
    server: RayServer, changed: dict[str, object], log: bytes, status: int
) -> None:
    told = json.dumps({**json.loads(recorded()["succeeded"].body), **changed})

    def answers(handler: BaseHTTPRequestHandler) -> None:
        if "/logs/" in handler.path:
            send(handler, status, log, "text/plain")
        elif "/nodes" in handler.path:
            say(handler, "node alive", told)
        else:
            say(handler, "running", told)

    try:
        seen = ask(server, "poll", answers)
    except (RemoteRefused, RemoteAway):
        return
    assert isinstance(seen, PollResult) and isinstance(seen.state, RemoteState)
    assert isinstance(seen.text, str) and isinstance(seen.error, str)


@given(st.sampled_from(sorted(VERBS)), st.binary(max_size=300), st.integers(200, 599))
def test_any_bytes_with_any_status_are_an_error_of_ours(server: RayServer, verb: str, said: bytes, status: int) -> None:
    with pytest.raises((RemoteRefused, RemoteAway)) as raised:
        ask(server, verb, body(said, "application/json", status))

    assert str(raised.value).isprintable()
