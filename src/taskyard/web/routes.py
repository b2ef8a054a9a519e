"""
Every address there is: one table, from which requests are answered and the API's description is made.

Nothing that is not here can be asked for.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from taskyard.web import acting, described, looking, pages, printed, streams
from taskyard.web.looking import PARTS
from taskyard.web.site import Site
from taskyard.web.values import Given, Value

Handler = Callable[[Site, Given, Request], Awaitable[Response]]

_LIST = Value("list", "list", "Which list; the server's own if not given.")
_TASK = Value("id", "task", "The task.", required=True)
_JOB = Value("id", "job", "The job.", required=True)
_BY = Value("by", "name", "In whose name; the person's who started the server if not given.")


class Route(NamedTuple):
    """One address, and what it answers."""

    method: str
    path: str
    handler: Handler
    about: str
    answer: str = ""  #: the shape of its data; or a media type, if it has a slash in it
    query: tuple[Value, ...] = ()
    inside: tuple[Value, ...] = ()  #: values in the path
    body: tuple[Value, ...] = ()
    fixed: Mapping[str, object] = {}  #: what its handler is told by the address itself
    is_open: bool = False  #: answered without the token: it tells nothing of anybody's
    is_stream: bool = False

    @property
    def is_action(self) -> bool:
        """Whether it changes something."""
        return self.method == "POST"


def _get(path: str, handler: Handler, about: str, answer: str, *query: Value, **more: object) -> Route:
    return Route("GET", path, handler, about, answer, query, **more)  # type: ignore[arg-type]


def _post(path: str, handler: Handler, about: str, *body: Value, inside: tuple[Value, ...] = ()) -> Route:
    return Route("POST", path, handler, about, "Done", (), inside, body)


def _on_task(verb: str, handler: Handler, about: str, *more: Value) -> Route:
    return _post(f"/api/tasks/{{id}}/{verb}", handler, about, _LIST, *more, _BY, inside=(_TASK,))


def _on_job(verb: str, handler: Handler, about: str, *body: Value) -> Route:
    return _post(f"/api/jobs/{{id}}/{verb}", handler, about, *body, inside=(_JOB,))


_PAGES = (
    _get("/", pages.page, "The page.", "text/html", is_open=True),
    _get("/static/{path}", pages.static, "A file of the page.", "*/*", is_open=True),
    _get("/docs", described.docs, "This description, for people.", "text/html", is_open=True),
    _get("/docs.css", described.style, "How that looks.", "text/css", is_open=True),
    _get("/openapi.json", described.openapi, "This description.", "application/json", is_open=True),
    _get("/healthz", pages.health, "Whether a server lives here, and its database.", "application/json", is_open=True),
    _get("/metrics", pages.metrics, "Numbers for monitoring, as Prometheus reads them.", "text/plain"),
)

_VIEWS = tuple(
    _get(
        f"/api/{view}.json",
        looking.part,
        f"What the view {view.capitalize()} shows.",
        view.capitalize(),
        _LIST,
        fixed={"view": view},
    )
    for view in PARTS
)

_LOOKS = (
    _get("/api/about.json", looking.about, "What this server is and may.", "About"),
    _get("/api/lists.json", looking.lists, "Every list there is.", "Lists"),
    _get("/api/snapshot.json", looking.snapshot, "A list and all jobs, ready to be shown.", "Snapshot", _LIST),
    *_VIEWS,
    _get("/api/timeline.json", looking.timeline, "Who did what when.", "TimelineOfList", _LIST),
    _get("/api/tasks/{id}.json", looking.task, "One task.", "Task", _LIST, inside=(_TASK,)),
    _get("/api/jobs/{id}.json", looking.job, "One job; its end counts as seen.", "Job", inside=(_JOB,)),
)

_OUTPUT = (
    _get(
        "/api/jobs/{id}/output.json",
        printed.output,
        "Lines that a job printed: the last `tail`, `lines` before an offset, or `lines` from one on.",
        "Window",
        Value("tail", "lines", "How many of the last lines."),
        Value("before", "offset", "Lines that end here."),
        Value("after", "offset", "Lines that begin here."),
        Value("lines", "lines", "How many; 1,000 if not given."),
        inside=(_JOB,),
    ),
    _get(
        "/api/jobs/{id}/find.json",
        printed.find,
        "Where the line begins that holds a text; capital letters do not matter.",
        "Found",
        Value("text", "needle", "What to look for.", required=True),
        Value("from", "offset", "Where to begin; the beginning, or going backwards the end, if not given."),
        Value("backwards", "flag", "Look before that, not after it."),
        inside=(_JOB,),
    ),
    _get(
        "/api/jobs/{id}/output.txt",
        printed.download,
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
        Value("job", "job", "Tell also what this job prints; without `list`, only that."),
        Value("after", "offset", "From where on; with its last lines if not given."),
        Value("last_event_id", "mark", "As the header of this name, for those who cannot send one."),
        is_stream=True,
    ),
    _get(
        "/api/events",
        streams.events,
        "What happens to jobs: `task_started`, `task_progress`, `task_notification`, from any id on. Ids are the "
        "journal's and outlive the server; what is no longer kept is never left out in silence.",
        "text/event-stream",
        Value("since", "event", "The last event that is known; all that are kept if not given."),
        Value("job", "job", "Only of this job."),
        is_stream=True,
    ),
)

_ACTIONS = (
    _post(
        "/api/tasks",
        acting.create,
        "Put a task on a list.",
        _LIST,
        Value("subject", "subject", "What is to be done, in a line.", required=True),
        Value("description", "text", "The same at length."),
        Value("blocked_by", "tasks", "What it waits for."),
        _BY,
    ),
    _on_task("claim", acting.claim, "Take a task."),
    _on_task("start", acting.start, "Begin to work on it."),
    _on_task("done", acting.done, "Say that it is done."),
    _on_task("release", acting.release, "Give it back."),
    _on_task("block", acting.block, "Have it wait for another.", Value("by_task", "task", "For which.", required=True)),
    _on_job("stop", acting.stop, "End a job with everything it started, and answer with proof."),
    _on_job("pause", acting.pause, "Stop its clock and every process of it."),
    _on_job("resume", acting.resume, "Let it go on."),
    _on_job("dismiss", acting.dismiss, "Leave an ended job out of every view, and mark its notice as read."),
    _on_job("background", acting.background, "Nobody watches it any more: its end is told by a notice."),
    _on_job(
        "answer",
        acting.answer,
        "Type a line into it.",
        Value("text", "typed", "The line.", required=True),
        Value("close", "flag", "Then end its input."),
    ),
    _post(
        "/api/mail",
        acting.mail,
        "Send a message to an agent.",
        _LIST,
        Value("to", "name", "Who gets it.", required=True),
        Value("text", "text", "What to say.", required=True),
    ),
)

ROUTES: tuple[Route, ...] = (*_PAGES, *_LOOKS, *_OUTPUT, *_STREAMS, *_ACTIONS)


class Table:
    """Routes, by what is asked for."""

    def __init__(self, routes: Iterable[Route] = ROUTES) -> None:
        self._routes = [(route, _pattern(route.path)) for route in routes]

    def find(self, method: str, path: str) -> tuple[Route | None, dict[str, str], tuple[str, ...]]:
        """The route, what its path holds, and the methods that this address has."""
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
