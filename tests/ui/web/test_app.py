"""What a request must show before it is answered, and what every answer has."""

from __future__ import annotations

import json

import pytest

from support.web import HOST, SECRET, Web, with_web
from taskyard.ui.web.app import LARGEST_BODY
from taskyard.ui.web.routes import ROUTES, Route, RouteTable

PRIVATE = [route for route in ROUTES if not route.is_open]


def address(route: Route) -> str:
    """An address that a route answers."""
    wanted = {"/api/jobs/{id}": "b3k9x0q2m", "/api/tasks/{id}": "1"}
    part = next((value for start, value in wanted.items() if route.path.startswith(start)), "index.html")
    return route.path.replace("{id}", part).replace("{path}", part)


def test_every_address_leads_to_its_route() -> None:
    table = RouteTable()
    for route in ROUTES:
        found, inside, methods = table.find(route.method, address(route))
        assert (found, methods) == (route, ())
        assert set(inside) == {name for name in ("id", "path") if f"{{{name}}}" in route.path}
    assert table.find("GET", "/api/tasks/1/claim") == (None, {}, ("POST",))
    for path in ("", "/api", "//", "/api/stream/", "/api/tasks/1/2.json", "/api/jobs//output.json", "/static/"):
        assert table.find("GET", path) == (None, {}, ())


@pytest.mark.req("U-04")
def test_without_the_token_nothing_is_told_whatever_is_asked() -> None:
    async def body(web: Web) -> None:
        for route in PRIVATE:
            for token in (None, "", SECRET[:-1], SECRET + "x", SECRET.upper()):
                got = await web.ask(route.method, address(route), token=token)
                assert got.status == 401, route.path
                assert got.error["code"] == "unauthorized"
                assert got.headers["WWW-Authenticate".lower()].startswith("Bearer")
        assert (await web.get("/nothing", Authorization="Basic abc")).status == 401
        assert (await web.ask("GET", "/healthz", token=None)).json == {"status": "ok"}

    with_web(body)


@pytest.mark.req("U-04")
def test_only_names_of_ours_at_our_port_are_answered() -> None:
    async def body(web: Web) -> None:
        for host in (
            None,
            "",
            "evil.example:8787",
            "127.0.0.1",
            "127.0.0.1:8788",
            "localhost:80",
            "127.0.0.1:8787.evil",
        ):
            got = await web.ask("GET", "/healthz", host=host)
            assert (got.status, got.error["code"]) == (421, "wrong_host"), host
        for host in ("localhost:8787", "LOCALHOST:8787", "[::1]:8787"):
            assert (await web.ask("GET", "/healthz", host=host)).status == 200

    with_web(body)


@pytest.mark.req("U-04")
def test_pages_of_other_origins_are_turned_away_and_none_may_read_an_answer() -> None:
    async def body(web: Web) -> None:
        for origin in ("null", "http://evil.example", "http://127.0.0.1:8788", "https://127.0.0.1:8787", "file://"):
            for path in ("/api/about.json", "/healthz", "/"):
                got = await web.get(path, Origin=origin)
                assert (got.status, got.error["code"]) == (403, "wrong_origin")
            preflight = await web.ask("OPTIONS", "/api/tasks", Origin=origin, token=None)
            assert preflight.status == 403
        ours = await web.get("/api/about.json", Origin=f"http://{HOST}")
        assert ours.status == 200
        assert not [name for name in ours.headers if name.startswith("access-control")]

    with_web(body)


@pytest.mark.req("U-04")
def test_every_answer_forbids_what_a_page_does_not_need() -> None:
    async def body(web: Web) -> None:
        for path in ("/", "/healthz", "/api/about.json", "/api/nothing", "/docs", "/metrics"):
            got = await web.get(path)
            policy = got.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert "frame-ancestors 'none'" in policy
            assert got.headers["x-content-type-options"] == "nosniff"
            assert got.headers["referrer-policy"] == "no-referrer"
            assert got.headers["cross-origin-opener-policy"] == "same-origin"
            assert got.headers["cross-origin-resource-policy"] == "same-origin"
            assert "set-cookie" not in got.headers
            if path.startswith(("/api", "/metrics")):
                assert got.headers["cache-control"] == "no-store"

    with_web(body)


@pytest.mark.req("U-04")
def test_who_only_shows_refuses_every_act_and_says_how_to_allow_it() -> None:
    async def body(web: Web) -> None:
        web.yard.tasks.create("A task")
        for route in ROUTES:
            if route.is_action:
                got = await web.post(address(route), {"subject": "x", "text": "x", "to": "ada", "by_task": "1"})
                assert (got.status, got.error["code"]) == (403, "read_only"), route.path
                assert "--allow-actions" in got.error["message"]
        assert len(web.yard.tasks.list()) == 1

    with_web(body)


def test_methods_and_addresses_that_are_not_there_are_said_not_to_be() -> None:
    async def body(web: Web) -> None:
        got = await web.ask("DELETE", "/api/tasks/1/claim")
        assert (got.status, got.headers["allow"]) == (405, "POST")
        assert (await web.get("/api/../../etc/passwd")).status == 404
        assert (await web.ask("HEAD", "/api/about.json")).status == 200
        assert (await web.ask("HEAD", "/api/stream")).status == 405
        assert (await web.get("/api/about.json?x=" + "y" * 9000)).status == 414

    with_web(body)


@pytest.mark.parametrize(
    ("sent", "kind"),
    [
        (b"", "application/json"),
        (b"[1]", "application/json"),
        (b"{", "application/json"),
        (b"[" * 100_000, "application/json"),
        (b'{"subject": 1}', "application/json"),
        (b'{"subject": "x", "evil": 1}', "application/json"),
        (b'{"subject": "x", "list": "../x/"}', "application/json"),
        (b'{"subject": "x"}', "text/plain"),
        (b"subject=x", "application/x-www-form-urlencoded"),
    ],
)
def test_a_body_that_is_not_what_it_must_be_changes_nothing(sent: bytes, kind: str) -> None:
    async def body(web: Web) -> None:
        got = await web.ask("POST", "/api/tasks", sent, Content_Type=kind)
        assert 400 <= got.status < 500
        assert got.error["code"] in ("usage", "bad_value", "bad_text", "not_found")
        assert len(web.yard.tasks.list()) == 0

    with_web(body, allow_actions=True)


def test_a_body_larger_than_anything_is_not_read_to_its_end() -> None:
    async def body(web: Web) -> None:
        sent = json.dumps({"subject": "x" * LARGEST_BODY}).encode()
        got = await web.ask("POST", "/api/tasks", sent, Content_Type="application/json")
        assert (got.status, got.error["code"]) == (413, "too_large")

    with_web(body, allow_actions=True)


def test_a_list_that_is_not_there_is_not_found_with_those_that_are_near() -> None:
    async def body(web: Web) -> None:
        web.yard.tasks.create("A task")
        for path in ("snapshot.json", "board.json", "timeline.json", "tasks/1.json", "stream"):
            got = await web.get(f"/api/{path}?list=plam")
            assert (got.status, got.error["nearest"]) == (404, ["plan"])
        assert (await web.get("/api/board.json?list=plan")).status == 200

    with_web(body)


def test_a_fault_of_ours_is_told_without_its_details(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def body(web: Web) -> None:
        monkeypatch.setattr(type(web.site.lists), "names", lambda self: 1 / 0)
        got = await web.get("/api/lists.json")
        assert (got.status, got.error["code"]) == (500, "internal")
        assert "division" not in got.error["message"]

    with_web(body)
    assert "ZeroDivisionError" in caplog.text
