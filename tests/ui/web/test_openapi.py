"""The API, described: what the description says is what is answered."""

from __future__ import annotations

from typing import Any

import anyio.to_thread
import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from support.web import Got, Web, with_web
from taskyard.jobs.kinds.shell import Shell
from taskyard.ui.web.routes import ROUTES, Route, openapi_document

DOCUMENT: Any = openapi_document()


def operation(route: Route) -> Any:
    return DOCUMENT["paths"][route.path][route.method.lower()]


def check(route: Route, got: Got) -> None:
    """An answer is what the description says of its route and status."""
    described = operation(route)["responses"]
    assert str(got.status) in described, (route.path, got.status, got.body[:200])
    [(media, shape)] = described[str(got.status)]["content"].items()
    if media != "*/*":
        assert got.headers["content-type"].partition(";")[0] == media
    if media == "application/json":
        schema = {**shape["schema"], "components": DOCUMENT["components"]}
        Draft202012Validator(schema).validate(got.json)


def test_every_route_is_in_it_and_nothing_else() -> None:
    described = {(method.upper(), path) for path, methods in DOCUMENT["paths"].items() for method in methods}
    assert described == {(route.method, route.path) for route in ROUTES}
    names = [operation(route)["operationId"] for route in ROUTES]
    assert len(set(names)) == len(names)
    assert DOCUMENT["openapi"] == "3.1.0"


def test_what_it_says_of_shapes_can_be_used() -> None:
    for schema in DOCUMENT["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    for route in ROUTES:
        for value in operation(route).get("parameters", ()):
            Draft202012Validator.check_schema(value["schema"])
        assert operation(route).get("security") == ([] if route.is_open else None)


@pytest.mark.req("U-04", "U-05")
def test_every_look_answers_as_it_is_described() -> None:
    async def body(web: Web) -> None:
        tasks = web.yard.tasks
        first = tasks.create("First", description="At length")
        second = tasks.create("Second", blocked_by=[first.id])
        tasks.start(first.id, agent="ada")
        job = await anyio.to_thread.run_sync(lambda: web.yard.jobs.run(Shell("echo hello; exit 2"), timeout=30))
        for route in ROUTES:
            if route.method != "GET" or route.is_stream or "{path}" in route.path or route.path == "/":
                continue
            path = route.path.replace("{id}", second.id if "/tasks/" in route.path else job.id)
            check(route, await web.get(path + ("?text=hello" if "find" in path else "")))
            missing = route.path.replace("{id}", "99" if "/tasks/" in route.path else "b00000000")
            if "{id}" in route.path:
                got = await web.get(missing + ("?text=hello" if "find" in path else ""))
                assert got.status == 404
                check(route, got)

    with_web(body)


@pytest.mark.req("U-04")
def test_every_act_answers_as_it_is_described() -> None:
    async def body(web: Web) -> None:
        web.yard.tasks.create("A task")
        for route in ROUTES:
            if route.is_action:
                path = route.path.replace("{id}", "1" if "/tasks/" in route.path else "b00000000")
                sent = {"subject": "x", "by_task": "99", "to": "ada", "text": "hello"}
                body = {value.name: sent[value.name] for value in route.body if value.required}
                check(route, await web.post(path, body))
                check(route, await web.post(path, {**body, "what": "is this"}))

    with_web(body, allow_actions=True)


def test_it_is_served_for_programs_and_for_people() -> None:
    async def body(web: Web) -> None:
        assert (await web.ask("GET", "/openapi.json", token=None)).json == DOCUMENT
        page = (await web.ask("GET", "/docs", token=None)).body.decode()
        for route in ROUTES:
            assert f"{route.method} {route.path}</h2>" in page
        assert "<script" not in page
        assert "style=" not in page

    with_web(body)
