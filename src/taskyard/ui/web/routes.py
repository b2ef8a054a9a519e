"""The table of all routes, and the OpenAPI 3.1 document and documentation page generated from it.

Requests are dispatched by this table only: an address that is not here does not exist. The schemas of answers are
derived from the annotations of the records themselves.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from html import escape
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

import taskyard
from taskyard.jobs.job_text import JobUsage
from taskyard.tasks.lists import ListCount
from taskyard.ui.jobs import JobView, StatusSummary, Step
from taskyard.ui.snapshot import AgentView, Bar, Gap, Lane, Timeline
from taskyard.ui.tasks import Counts, TaskView
from taskyard.ui.web import actions, pages, reads, streams
from taskyard.ui.web.reads import VIEW_KEYS
from taskyard.ui.web.site import Site
from taskyard.ui.web.values import JSON, PARAM_KINDS, Params, ParamSpec, encode_json

_CACHED = {"Cache-Control": "no-cache"}

STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 0 auto; padding: 1rem; }
h2 { font: 600 1rem/1.5 ui-monospace, monospace; border-top: 1px solid; padding-top: 1rem; overflow-wrap: anywhere; }
table { border-collapse: collapse; }
th, td { text-align: left; vertical-align: top; padding: .1rem 1rem .1rem 0; font-weight: normal; }
code, th { font-family: ui-monospace, monospace; }
"""


async def openapi(site: Site, given: Params, request: Request) -> Response:
    """Return the API description as OpenAPI."""
    return Response(_document(), media_type=JSON, headers=_CACHED)


async def docs(site: Site, given: Params, request: Request) -> Response:
    """Return the API description as a page."""
    return Response(_docs_page(), media_type="text/html", headers=_CACHED)


async def style(site: Site, given: Params, request: Request) -> Response:
    """Return the stylesheet of that page."""
    return Response(STYLE, media_type="text/css", headers=_CACHED)


@functools.cache
def _document() -> bytes:

    return encode_json(openapi_document())


@functools.cache
def _docs_page() -> str:

    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>taskyard: API</title>'
        '<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="/docs.css"></head><body>'
        "<main><h1>The API of this page</h1><p>The same for programs: <a href='/openapi.json'>openapi.json</a>. Every "
        "address but those of the page itself wants <code>Authorization: Bearer</code> with the token in the address "
        "that <code>taskyard web</code> prints.</p>"
    ]
    for route in ROUTES:
        parts.append(f"<section><h2>{route.method} {escape(route.path)}</h2><p>{escape(route.about)}</p>")
        values = [*route.inside, *route.query, *route.body]
        if values:
            rows = (f"<tr><th scope='row'>{escape(one.name)}</th><td>{escape(one.about)}</td></tr>" for one in values)
            parts.append(f"<table>{''.join(rows)}</table>")
        parts.append("</section>")
    return "".join([*parts, "</main></body></html>"])


Handler = Callable[[Site, Params, Request], Awaitable[Response]]

_LIST = ParamSpec("list", "list", "Which list; the server's own if not given.")
_TASK = ParamSpec("id", "task", "The task.", required=True)
_JOB = ParamSpec("id", "job", "The job.", required=True)
_BY = ParamSpec("by", "name", "The agent to act as; default: the user who started the server.")


class Route(NamedTuple):
    """One address and its handler."""

    method: str
    path: str
    handler: Handler
    about: str
    answer: str = ""  #: the schema of its data; or a media type, if it contains a slash
    query: tuple[ParamSpec, ...] = ()
    inside: tuple[ParamSpec, ...] = ()  #: parameters in the path
    body: tuple[ParamSpec, ...] = ()
    fixed: Mapping[str, object] = {}  #: parameters that the address itself sets
    is_open: bool = False  #: answered without the token: it reveals no user data
    is_stream: bool = False

    @property
    def is_action(self) -> bool:
        """Whether it changes something."""
        return self.method == "POST"


def _get(path: str, handler: Handler, about: str, answer: str, *query: ParamSpec, **more: object) -> Route:
    return Route("GET", path, handler, about, answer, query, **more)  # type: ignore[arg-type]


def _post(path: str, handler: Handler, about: str, *body: ParamSpec, inside: tuple[ParamSpec, ...] = ()) -> Route:
    return Route("POST", path, handler, about, "Done", (), inside, body)


def _on_task(verb: str, handler: Handler, about: str, *more: ParamSpec) -> Route:
    return _post(f"/api/tasks/{{id}}/{verb}", handler, about, _LIST, *more, _BY, inside=(_TASK,))


def _on_job(verb: str, handler: Handler, about: str, *body: ParamSpec) -> Route:
    return _post(f"/api/jobs/{{id}}/{verb}", handler, about, *body, inside=(_JOB,))


_PAGES = (
    _get("/", pages.page, "The page.", "text/html", is_open=True),
    _get("/static/{path}", pages.static, "A file of the page.", "*/*", is_open=True),
    _get("/docs", docs, "This description, for people.", "text/html", is_open=True),
    _get("/docs.css", style, "The style sheet of that page.", "text/css", is_open=True),
    _get("/openapi.json", openapi, "This description.", "application/json", is_open=True),
    _get("/healthz", pages.health, "Whether the server and its database respond.", "application/json", is_open=True),
    _get("/metrics", pages.metrics, "Numbers for monitoring, as Prometheus reads them.", "text/plain"),
)

_VIEWS = tuple(
    _get(
        f"/api/{view}.json",
        reads.view_part,
        f"What the view {view.capitalize()} shows.",
        view.capitalize(),
        _LIST,
        fixed={"view": view},
    )
    for view in VIEW_KEYS
)

_READS = (
    _get("/api/about.json", reads.about, "What this server is and may.", "About"),
    _get("/api/lists.json", reads.lists, "Every list there is.", "Lists"),
    _get("/api/snapshot.json", reads.snapshot, "A list and all jobs, ready to be shown.", "Snapshot", _LIST),
    *_VIEWS,
    _get("/api/timeline.json", reads.timeline, "Who did what when.", "TimelineOfList", _LIST),
    _get("/api/tasks/{id}.json", reads.task, "One task.", "Task", _LIST, inside=(_TASK,)),
    _get("/api/jobs/{id}.json", reads.job, "One job; its end counts as seen.", "Job", inside=(_JOB,)),
)

_OUTPUT = (
    _get(
        "/api/jobs/{id}/output.json",
        reads.output,
        "Lines that a job printed: the last `tail`, `lines` before an offset, or `lines` from one on.",
        "Window",
        ParamSpec("tail", "lines", "How many of the last lines."),
        ParamSpec("before", "offset", "Lines that end here."),
        ParamSpec("after", "offset", "Lines that begin here."),
        ParamSpec("lines", "lines", "How many; 1,000 if not given."),
        inside=(_JOB,),
    ),
    _get(
        "/api/jobs/{id}/find.json",
        reads.find,
        "Where the line begins that holds a text; capital letters do not matter.",
        "Found",
        ParamSpec("text", "needle", "What to look for.", required=True),
        ParamSpec("from", "offset", "Where to begin; the beginning, or going backwards the end, if not given."),
        ParamSpec("backwards", "flag", "Look before that, not after it."),
        inside=(_JOB,),
    ),
    _get(
        "/api/jobs/{id}/output.txt",
        reads.download,
        "All that a job printed, as it printed it.",
        "text/plain",
        inside=(_JOB,),
    ),
)

_STREAMS = (
    _get(
        "/api/stream",
        streams.stream,
        "A list as it changes: `snapshot` once, then `change` with what a screen must learn; of a job also `output`. "
        "`Last-Event-ID` goes on where it was left, if that is still known, and else begins with a `snapshot`.",
        "text/event-stream",
        _LIST,
        ParamSpec("job", "job", "Tell also what this job prints; without `list`, only that."),
        ParamSpec("after", "offset", "From where on; with its last lines if not given."),
        ParamSpec("last_event_id", "mark", "As the header of this name, for those who cannot send one."),
        is_stream=True,
    ),
    _get(
        "/api/events",
        streams.events,
        "What happens to jobs: `task_started`, `task_progress`, `task_notification`, from any id on. Ids are the "
        "journal's and outlive the server; what is no longer kept is never left out in silence.",
        "text/event-stream",
        ParamSpec("since", "event", "The last event that is known; all that are kept if not given."),
        ParamSpec("job", "job", "Only of this job."),
        is_stream=True,
    ),
)

_ACTIONS = (
    _post(
        "/api/tasks",
        actions.create,
        "Put a task on a list.",
        _LIST,
        ParamSpec("subject", "subject", "What is to be done, in a line.", required=True),
        ParamSpec("description", "text", "The same at length."),
        ParamSpec("blocked_by", "tasks", "What it waits for."),
        _BY,
    ),
    _on_task("claim", actions.claim, "Take a task."),
    _on_task("start", actions.start, "Begin to work on it."),
    _on_task("done", actions.done, "Mark it completed."),
    _on_task("release", actions.release, "Give it back."),
    _on_task(
        "block",
        actions.block,
        "Make it wait for another task.",
        ParamSpec("by_task", "task", "For which.", required=True),
    ),
    _on_job("stop", actions.stop, "End a job with everything it started, and answer with proof."),
    _on_job("pause", actions.pause, "Stop its clock and every process of it."),
    _on_job("resume", actions.resume, "Let it go on."),
    _on_job("dismiss", actions.dismiss, "Leave an ended job out of every view, and mark its notice as read."),
    _on_job("background", actions.background, "Move it to the background: a notice reports its end."),
    _on_job(
        "answer",
        actions.answer,
        "Type a line into it.",
        ParamSpec("text", "typed", "The line.", required=True),
        ParamSpec("close", "flag", "Then end its input."),
    ),
    _post(
        "/api/mail",
        actions.mail,
        "Send a message to an agent.",
        _LIST,
        ParamSpec("to", "name", "Who gets it.", required=True),
        ParamSpec("text", "text", "What to say.", required=True),
    ),
)

ROUTES: tuple[Route, ...] = (*_PAGES, *_READS, *_OUTPUT, *_STREAMS, *_ACTIONS)


class RouteTable:
    """Routes by method and path."""

    def __init__(self, routes: Iterable[Route] = ROUTES) -> None:
        self._routes = [(route, _pattern(route.path)) for route in routes]

    def find(self, method: str, path: str) -> tuple[Route | None, dict[str, str], tuple[str, ...]]:
        """Return the route, its path parameters, and (if none matches) the methods that this address has."""
        found = [(route, match) for route, pattern in self._routes if (match := pattern.fullmatch(path)) is not None]
        for route, match in found:
            if method == route.method or (method == "HEAD" and route.method == "GET" and not route.is_stream):
                return route, match.groupdict(), ()
        return None, {}, tuple(sorted({route.method for route, _ in found}))


def _pattern(path: str) -> re.Pattern[str]:
    parts = re.split(r"(\{\w+\})", path)
    made = [
        f"(?P<{part[1:-1]}>{'.+' if part == '{path}' else '[^/]+?'})" if part[:1] == "{" else re.escape(part)
        for part in parts
    ]
    return re.compile("".join(made), re.DOTALL)


Schema = Mapping[str, object]

_RECORDS = (TaskView, JobView, Step, JobUsage, AgentView, StatusSummary, Counts, Timeline, Lane, Bar, Gap)
_BY_NAME = {record.__name__: record for record in _RECORDS}

_PLAIN: Mapping[str, Schema] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "list": {"type": "array", "items": {"type": "string"}},
    "any": {},
    "object": {"type": "object"},
}


def ref(name: str) -> Schema:
    """Return a reference to a named schema."""
    return {"$ref": f"#/components/schemas/{name}"}


def schema_of(annotation: str) -> Schema:
    """Return the schema of an annotation: `int | None`, `tuple[str, ...]`, a record."""
    if annotation.endswith(" | None"):
        return {"anyOf": [schema_of(annotation.removesuffix(" | None")), {"type": "null"}]}
    if annotation.startswith("tuple[") and annotation.endswith(", ...]"):
        return {"type": "array", "items": schema_of(annotation[len("tuple[") : -len(", ...]")])}
    return ref(annotation) if annotation in _BY_NAME else _PLAIN[annotation]


def object_schema(**fields: str | Schema) -> Schema:
    """Return the schema of an object with exactly these fields, each given by annotation or schema."""
    shapes = {name: schema_of(shape) if isinstance(shape, str) else shape for name, shape in fields.items()}
    return {"type": "object", "properties": shapes, "required": list(shapes), "additionalProperties": False}


def rows_schema(shape: Schema, *, may_go: bool = False) -> Schema:
    """Return the schema of rows by id; with `may_go` a row may be null (removed)."""
    return {"type": "object", "additionalProperties": {"anyOf": [shape, {"type": "null"}]} if may_go else shape}


def array_schema(shape: Schema) -> Schema:
    """Return the schema of an array."""
    return {"type": "array", "items": shape}


def _record_schema(kind: type[object], **more: str) -> Schema:
    annotations: Mapping[str, str] = kind.__annotations__
    return object_schema(**{name: text for name, text in annotations.items() if name in kind._fields}, **more)  # type: ignore[attr-defined]


_TASKS: Mapping[str, str | Schema] = {"list": "str", "tasks": rows_schema(ref("TaskView")), "task_order": "list"}
_PEOPLE: Mapping[str, str | Schema] = {"people": rows_schema(ref("AgentView")), "people_order": "list"}
_JOBS: Mapping[str, str | Schema] = {"jobs": rows_schema(ref("JobView")), "job_order": "list"}
_PILL: Mapping[str, str | Schema] = {"pill": ref("PillLine"), "attention": "int"}

_EDGE = object_schema(id="str", subject="str", state="str", glyph="str", ascii="str", word="str", token="str")  # noqa: S106

_CHANGE = object_schema(id="int", at="int", by="str | None", cause="str", via="str", note="str | None", words="str")


def components() -> dict[str, Schema]:
    """Return all named schemas."""
    made: dict[str, Schema] = {record.__name__: _record_schema(record) for record in _RECORDS if record is not Counts}
    made["Counts"] = _record_schema(Counts, total="int")
    made["PillLine"] = _record_schema(StatusSummary, line="str")
    made["ListCount"] = _record_schema(ListCount, current="bool")
    made["Took"] = _record_schema(JobUsage, words="str")
    made["Error"] = {
        "type": "object",
        "required": ["schema_version", "error"],
        "properties": {
            "schema_version": {"const": 1},
            "error": {
                "type": "object",
                "required": ["code", "message"],
                "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
            },
        },
    }
    return {**made, **_answer_schemas()}


def _answer_schemas() -> dict[str, Schema]:
    return {
        "About": object_schema(version="str", allow_actions="bool", list="str", person="str", now="int", server="str"),
        "Lists": array_schema(ref("ListCount")),
        "Board": object_schema(
            **_TASKS, **_PEOPLE, counts=ref("Counts"), headline="str", is_panel_shown="bool", id="str"
        ),
        "Graph": object_schema(**_TASKS, counts=ref("Counts"), id="str"),
        "Background": object_schema(list="str", **_JOBS, **_PILL, id="str"),
        "Snapshot": object_schema(
            **_TASKS,
            **_PEOPLE,
            **_JOBS,
            **_PILL,
            counts=ref("Counts"),
            headline="str",
            is_panel_shown="bool",
            problems="list",
            is_disconnected="bool",
            lists="list",
            id="str",
        ),
        "TimelineOfList": {**_record_schema(Timeline, list="str")},
        "Task": object_schema(
            task="object",
            view={"anyOf": [ref("TaskView"), {"type": "null"}]},
            description="str",
            edges=object_schema(blocked_by=array_schema(_EDGE), blocks=array_schema(_EDGE)),
            history=array_schema(_CHANGE),
            figures=ref("Took"),
            jobs="list",
        ),
        "Job": object_schema(view=ref("JobView"), record="object", figures=ref("Took")),
        "Window": _window_schema(),
        "Found": object_schema(offset="int | None"),
        "Done": {"type": "object", "description": "What was changed, as the command line prints it with --json."},
    }


def _window_schema() -> Schema:
    run = {"type": "array", "prefixItems": [{"type": "string"}, {"type": "string"}], "minItems": 2, "maxItems": 2}
    return object_schema(
        start="int",
        end="int",
        size="int",
        omitted="int",
        is_over="bool",
        partial="bool",
        restarted="bool",
        offsets=array_schema({"type": "integer"}),
        lines=array_schema(array_schema(run)),
    )


#: Error responses by status, with their meaning.
_REFUSALS = {
    400: "A value of the request is invalid.",
    401: "The token is missing or wrong.",
    403: "It comes from another page, or would change something and nothing may be changed from here.",
    404: "Not found.",
    409: "The request conflicts with the current state.",
    503: "Try again.",
}


def openapi_document(routes: Iterable[Route] = ROUTES) -> dict[str, object]:
    """Build the OpenAPI document."""
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
        "responses": {**_answer_response(route), **_refusal_responses(route)},
    }
    if parameters := [*_parameters(route.inside, "path"), *_parameters(route.query, "query"), *_path_parameters(route)]:
        made["parameters"] = parameters
    if route.is_action:
        made["requestBody"] = {"required": True, "content": {"application/json": {"schema": _body_schema(route.body)}}}
    if route.is_open:
        made["security"] = []
    return made


def _operation_id(route: Route) -> str:
    words = route.path.replace("{", "").replace("}", "").replace(".", "/").split("/")
    return "_".join(filter(None, (route.method.lower(), *words)))


def _parameters(values: Iterable[ParamSpec], where: str) -> list[dict[str, object]]:
    return [
        {
            "name": value.name,
            "in": where,
            "required": value.required or where == "path",
            "description": value.about,
            "schema": PARAM_KINDS[value.kind].schema,
        }
        for value in values
    ]


def _path_parameters(route: Route) -> list[dict[str, object]]:
    """Return path parameters that are not declared values: the name of a file."""
    if "{path}" not in route.path:
        return []
    return [{"name": "path", "in": "path", "required": True, "schema": {"type": "string"}}]


def _body_schema(values: Iterable[ParamSpec]) -> Schema:
    values = list(values)
    return {
        "type": "object",
        "properties": {value.name: {**PARAM_KINDS[value.kind].schema, "description": value.about} for value in values},
        "required": [value.name for value in values if value.required],
        "additionalProperties": False,
    }


def answer_schema(route: Route) -> Schema:
    """Return the schema of a route's JSON answer."""
    return {
        "type": "object",
        "properties": {"schema_version": {"const": 1}, "data": ref(route.answer)},
        "required": ["schema_version", "data"],
        "additionalProperties": False,
    }


def _answer_response(route: Route) -> dict[str, object]:
    if "/" in route.answer:
        content: dict[str, object] = {route.answer: {"schema": {} if "json" in route.answer else {"type": "string"}}}
    else:
        content = {"application/json": {"schema": answer_schema(route)}}
    return {"201" if _creates(route) else "200": {"description": route.about, "content": content}}


def _creates(route: Route) -> bool:
    return route.is_action and "{id}" not in route.path


def _refusal_responses(route: Route) -> dict[str, object]:
    content = {"application/json": {"schema": ref("Error")}}
    return {} if route.is_open else {str(s): {"description": why, "content": content} for s, why in _REFUSALS.items()}
