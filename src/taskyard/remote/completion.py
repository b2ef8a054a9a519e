"""
Whether remote work is complete, though its session may go on: a checker per subtype, asked at each poll.

    from taskyard import register_completion_checker

    def merged(metadata):
        return "It was merged." if metadata.get("prState") == "merged" else None

    register_completion_checker("background-pr", merged)

What it answers is the text of the notice; None: not yet. It may be async. A job polls in a process of its own, so a
checker that all jobs shall know is published by a package:

    [project.entry-points."taskyard.completion_checkers"]
    background-pr = "mine:merged"
"""

from __future__ import annotations

from taskyard.errors import BadValue
from taskyard.shapes import as_number, as_object, as_text
from taskyard.typed import cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    Metadata = Mapping[str, object]
    Checker = Callable[[Metadata], str | Awaitable[str | None] | None]

_GROUP = "taskyard.completion_checkers"

#: What the kinds of remote work are called.
SUBTYPES = ("remote-agent", "ultraplan", "ultrareview", "autofix-pr", "background-pr")

_registered: dict[str, Checker] = {}


def register_completion_checker(remote_task_type: str, checker: Checker) -> None:
    """Have `checker` asked at each poll of remote work of a subtype, in this process, in place of any other.

    Raises:
        BadValue: it cannot be called, or there is no such subtype.
    """
    check_subtype(remote_task_type)
    if not callable(checker):
        raise BadValue("checker", checker, "something to call with the metadata")
    _registered[remote_task_type] = checker


def check_subtype(remote_task_type: str) -> None:
    """Refuse what is no kind of remote work.

    Raises:
        BadValue: names those there are.
    """
    if remote_task_type not in SUBTYPES:
        raise BadValue("remote task type", remote_task_type, f"one of {', '.join(SUBTYPES)}")


def checker_of(remote_task_type: str) -> Checker | None:
    """Who is asked about a subtype: as registered here, as a package publishes, ours; None: its session's end alone."""
    if remote_task_type in _registered:
        return _registered[remote_task_type]
    from importlib.metadata import entry_points

    for point in entry_points(group=_GROUP):
        if point.name == remote_task_type:
            return cast("Checker", point.load())
    return _OURS.get(remote_task_type)


def closed_pull_request(metadata: Metadata) -> str | None:
    """That the pull request was merged or closed, where the place tells."""
    request, state = _pull_request(metadata)
    if state not in ("merged", "closed"):
        return None
    return f"{_named(request)} was {state}."


def open_pull_request(metadata: Metadata) -> str | None:
    """That there is a pull request, whatever became of it since."""
    request, state = _pull_request(metadata)
    if closed := closed_pull_request(metadata):
        return closed
    return f"{_named(request)} is open." if state == "open" or request.get("url") else None


def _pull_request(metadata: Metadata) -> tuple[Metadata, str]:
    """What is said of it: as an object of its own, or in keys that begin with `pr`."""
    request = as_object(metadata.get("pullRequest")) or as_object(metadata.get("pr"))
    if request is None:
        keys = {"state": "prState", "merged": "prMerged", "url": "prUrl", "number": "prNumber"}
        request = {name: metadata[key] for name, key in keys.items() if key in metadata}
    state = "merged" if request.get("merged") is True else as_text(request.get("state")).lower()
    return request, state


def _named(request: Metadata) -> str:
    if number := as_number(request.get("number")):
        return f"Pull request #{number}"
    return f"Pull request {url}" if (url := as_text(request.get("url"))) else "The pull request"


_OURS: Mapping[str, Checker] = {"autofix-pr": closed_pull_request, "background-pr": open_pull_request}
