"""Whoever answers at the address, and whatever with: the token stays home, and nothing comes without end."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from support import a2a_places as a2a
from taskyard.errors import BadValue, RemoteAway, RemoteRefused
from taskyard.jobs.remote.a2a import OriginClient, url_origin
from taskyard.jobs.remote.backend import RemoteState, Work

pytestmark = pytest.mark.req("X-02")

CARD: dict[str, Any] = {
    "name": "x",
    "version": "1",
    "skills": [],
    "supportedInterfaces": [{"url": "URL/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
}

Answer = Callable[[BaseHTTPRequestHandler], None]


def give(body: object, status: int = 200, **headers: str) -> Answer:
    """Answers with this."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        host = request.headers["Host"]
        text = body if isinstance(body, bytes) else json.dumps(body).replace("URL", f"http://{host}").encode()
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name.replace("_", "-"), value)
        request.send_header("Content-Length", str(len(text)))
        request.end_headers()
        request.wfile.write(text)

    return answer


class Place:
    """A server that answers as it is told, and remembers who brought which token."""

    def __init__(self, card: Answer, rpc: Answer) -> None:
        self.tokens: list[tuple[str, str | None]] = []
        place = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                place.tokens.append((self.path, self.headers["Authorization"]))
                card(self)

            def do_POST(self) -> None:
                place.tokens.append((self.path, self.headers["Authorization"]))
                self.rfile.read(int(self.headers["Content-Length"]))
                rpc(self)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


@contextmanager
def place(card: Answer | None = None, rpc: Answer | None = None) -> Generator[Place]:
    found = Place(card or give(CARD), rpc or give({"jsonrpc": "2.0", "id": 1, "result": {}}))
    thread = threading.Thread(target=found.server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield found
    finally:
        found.server.shutdown()
        thread.join()
        found.server.server_close()


def error_of(url: str, **options: object) -> Exception:
    """What a poll of a session there raises."""
    with pytest.raises((RemoteAway, RemoteRefused)) as raised:
        a2a.talk(a2a.backend(url, a2a.TOKEN, **options), lambda made: made.poll("t1"))
    assert a2a.TOKEN not in f"{raised.value} {raised.value.__cause__!r}"
    return raised.value


def test_a_card_that_leads_elsewhere_gets_no_token_there_unless_the_person_said_so() -> None:
    with place() as thief:
        elsewhere = {**CARD, "supportedInterfaces": [{**CARD["supportedInterfaces"][0], "url": f"{thief.url}/rpc"}]}
        with place(give(elsewhere)) as there:
            error = error_of(there.url)
            assert isinstance(error, RemoteRefused) and thief.url in str(error)
            assert "interface" in str(error)
            assert thief.tokens == []
            a2a.talk(a2a.backend(there.url, a2a.TOKEN, interface=thief.url), lambda made: made.poll("t1"))
    assert thief.tokens == [("/rpc", f"Bearer {a2a.TOKEN}")]


def test_no_request_leaves_for_another_origin_whoever_asks_for_it() -> None:
    async def ask() -> None:
        async with OriginClient("there", {url_origin("http://127.0.0.1:9")}, a2a.TOKEN, seconds=5) as home:
            await home.get("http://127.0.0.1:10/")

    with pytest.raises(RemoteRefused, match=r"127\.0\.0\.1:10"):
        a2a.run(ask)


def test_a_redirect_is_not_followed() -> None:
    with place() as thief, place(rpc=give({}, 307, Location=f"{thief.url}/rpc")) as there:
        error = error_of(there.url)
        assert isinstance(error, RemoteRefused) and "redirects" in str(error)
        with place(give({}, 302, Location=f"{thief.url}/card.json")) as card:
            assert isinstance(error_of(card.url), RemoteRefused)
    assert thief.tokens == []


@pytest.mark.parametrize(
    "card",
    [
        give({**CARD, "description": "x" * 1_100_000}),
        give(b"[]"),
        give(b"{"),
        give(b"\xff\xfe"),
        give(b"[" * 100_000),
        give({"name": 3, "skills": "x"}),
        give({**CARD, "supportedInterfaces": []}),
        give({**CARD, "supportedInterfaces": [{"url": "URL", "protocolBinding": "GRPC"}]}),
        give({**CARD, "supportedInterfaces": [{"url": "file:///etc/passwd", "protocolBinding": "JSONRPC"}]}),
        give({"error": "no"}, 404),
    ],
    ids=["huge", "list", "half", "bytes", "deep", "types", "no-way", "other-way", "no-url", "absent"],
)
def test_what_is_no_card_of_ours_is_refused(card: Answer) -> None:
    with place(card) as there:
        assert isinstance(error_of(there.url), RemoteRefused)


_TASK = {"id": "t1", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}


@pytest.mark.parametrize(
    ("rpc", "kind"),
    [
        (give(b"no json"), RemoteRefused),
        (give([1]), RemoteRefused),
        (give({"jsonrpc": "2.0", "id": 1, "result": {"id": 3, "artifacts": "x"}}), RemoteRefused),
        (give({"jsonrpc": "2.0", "id": 1, "error": {"code": -32600, "message": f"bad {a2a.TOKEN}"}}), RemoteRefused),
        (give({"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "oops"}}), RemoteAway),
        (give({}, 401), RemoteRefused),
        (give({}, 404), RemoteRefused),
        (give({}, 429), RemoteAway),
        (give({}, 503), RemoteAway),
    ],
)
def test_what_an_agent_answers_is_away_or_refused_and_never_a_traceback(rpc: Answer, kind: type[Exception]) -> None:
    with place(rpc=rpc) as there:
        assert type(error_of(there.url)) is kind


def test_an_answer_without_end_is_cut_in_bytes_and_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def drip(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()
        for _ in range(100):
            request.wfile.write(b" ")
            time.sleep(0.05)

    began = time.monotonic()
    with place(rpc=drip) as there:
        assert isinstance(error_of(there.url, timeout=1), RemoteAway)
    assert time.monotonic() - began < 4
    monkeypatch.setattr("taskyard.jobs.remote.a2a.MAX_RESPONSE_BYTES", 1000)
    long = {**_TASK, "metadata": {"x": "y" * 2000}}
    with place(rpc=give({"jsonrpc": "2.0", "id": 1, "result": long})) as there:
        assert "1,000 bytes" in str(error_of(there.url))


def test_the_id_of_a_task_that_would_be_a_path_is_refused() -> None:
    for bad in ("../../admin", "a?b", "=x", ".", "x" * 300, "a\nb", ""):
        task = {"jsonrpc": "2.0", "id": 1, "result": {"task": {**_TASK, "id": bad}}}
        with place(rpc=give(task)) as there, pytest.raises(RemoteRefused):
            a2a.talk(a2a.backend(there.url), lambda made: made.submit(Work("r1", "hello")))


def test_a_list_that_listens_to_no_filter_makes_nobodys_task_ours() -> None:
    answers = iter([{"tasks": [{**_TASK, "id": "theirs", "contextId": "other"}]}, {"task": {**_TASK, "id": "ours"}}])

    def rpc(request: BaseHTTPRequestHandler) -> None:
        give({"jsonrpc": "2.0", "id": 1, "result": next(answers)})(request)

    with place(rpc=rpc) as there:
        assert a2a.talk(a2a.backend(there.url), lambda made: made.submit(Work("r1", "hello"))) == "ours"


@pytest.mark.parametrize("url", ["", "ftp://x", "file:///x", "https://ada:secret@x.example", "x", "http://"])
def test_an_address_that_can_be_none_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(BadValue) as raised:
        a2a.backend(url)
    assert "secret" not in str(raised.value)


def test_an_origin_is_scheme_host_and_port() -> None:
    same = {url_origin(url) for url in ("https://X.example/a", "https://x.example:443/b?c")}
    other = {url_origin(url) for url in ("http://x.example", "https://x.example:444", "https://y.example")}

    assert same == {"https://x.example:443"}
    assert len(other) == 3 and not other & same


def test_an_agent_that_answers_with_a_message_is_over_at_once_and_told_by_the_sessions_id_alone() -> None:
    with a2a.agent("--message") as url:
        session = a2a.talk(a2a.backend(url), lambda made: made.submit(Work("r1", "hello")))
    seen = a2a.talk(a2a.backend(url), lambda made: made.poll(session))  # and nobody is there any more

    assert (seen.state, seen.text, seen.result) == (RemoteState.COMPLETED, "HELLO\n", "HELLO")
    assert a2a.talk(a2a.backend(url), lambda made: made.poll(session, seen.cursor)).text == ""
