"""The API as an OpenAPI 3.1 document, made from the table of routes. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import taskyard
from taskyard.web.routes import ROUTES, Route
from taskyard.web.schemas import Schema, components, ref
from taskyard.web.values import KINDS, Value

#: What may be answered instead, by status, and what it means.
_REFUSALS = {
    400: "Something in the request cannot be.",
    401: "It does not bring the token.",
    403: "It comes from another page, or would change something and nothing may be changed from here.",
    404: "There is no such thing.",
    409: "Well formed, at the wrong moment.",
    503: "Try again.",
}


def document(routes: Iterable[Route] = ROUTES) -> dict[str, object]:
    """All of it."""
    paths: dict[str, dict[str, object]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "taskyard web",
            "version": taskyard.__version__,
            "description": "Lists, tasks and background jobs of one user. Data comes as {schema_version, data}.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": components(),
        },
    }


def _operation(route: Route) -> dict[str, object]:
    made: dict[str, object] = {
        "operationId": _operation_id(route),
        "summary": route.about,
        "responses": {**_answer(route), **_refusals(route)},
    }
    if parameters := [*_parameters(route.inside, "path"), *_parameters(route.query, "query"), *_free(route)]:
        made["parameters"] = parameters
    if route.is_action:
        made["requestBody"] = {"required": True, "content": {"application/json": {"schema": _body(route.body)}}}
    if route.is_open:
        made["security"] = []
    return made


def _operation_id(route: Route) -> str:
    words = route.path.replace("{", "").replace("}", "").replace(".", "/").split("/")
    return "_".join(filter(None, (route.method.lower(), *words)))


def _parameters(values: Iterable[Value], where: str) -> list[dict[str, object]]:
    return [
        {
            "name": value.name,
            "in": where,
            "required": value.required or where == "path",
            "description": value.about,
            "schema": KINDS[value.kind].schema,
        }
        for value in values
    ]


def _free(route: Route) -> list[dict[str, object]]:
    """What stands in a path and is no value of ours: the name of a file."""
    if "{path}" not in route.path:
        return []
    return [{"name": "path", "in": "path", "required": True, "schema": {"type": "string"}}]


def _body(values: Iterable[Value]) -> Schema:
    values = list(values)
    return {
        "type": "object",
        "properties": {value.name: {**KINDS[value.kind].schema, "description": value.about} for value in values},
        "required": [value.name for value in values if value.required],
        "additionalProperties": False,
    }


def answer_schema(route: Route) -> Schema:
    """The shape of what a route with data answers."""
    return {
        "type": "object",
        "properties": {"schema_version": {"const": 1}, "data": ref(route.answer)},
        "required": ["schema_version", "data"],
        "additionalProperties": False,
    }


def _answer(route: Route) -> dict[str, object]:
    if "/" in route.answer:
        content: dict[str, object] = {route.answer: {"schema": {} if "json" in route.answer else {"type": "string"}}}
    else:
        content = {"application/json": {"schema": answer_schema(route)}}
    return {"201" if _makes_something(route) else "200": {"description": route.about, "content": content}}


def _makes_something(route: Route) -> bool:
    return route.is_action and "{id}" not in route.path


def _refusals(route: Route) -> dict[str, object]:
    content = {"application/json": {"schema": ref("Error")}}
    return {} if route.is_open else {str(s): {"description": why, "content": content} for s, why in _REFUSALS.items()}
