"""
Whether remote work is complete, though its session may go on: a checker per subtype, asked at each poll.

    from taskyard import register_completion_checker

    def merged(metadata):
        return "It was merged." if metadata.get("prState") == "merged" else None

    register_completion_checker("background-pr", merged)

The text it returns is the notice's; None means not yet. It may be async. A job polls in its own process, which loads
the first of these for its subtype:

    1. registered   what the process that starts the job registered; its record has the function by reference
    2. config.toml  [completion_checkers]
                    background-pr = "~/checks.py:merged"
    3. a package    [project.entry-points."taskyard.completion_checkers"]
                    background-pr = "mine:merged"
    4. ours         for pull requests
"""

from __future__ import annotations

import os

from taskyard import config
from taskyard.errors import BadValue
from taskyard.remote import code_reference
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

#: Subtype → the function that this process registered, by reference.
_registered: dict[str, str] = {}


def register_completion_checker(remote_task_type: str, checker: Checker) -> None:
    """Have `checker` asked at each poll of the remote jobs of a subtype that this process starts from now on.

    The job loads it in its own process, so it must be a function at the top level of a module.

    Raises:
        BadValue: it cannot be called or loaded by another process, or there is no such subtype.
    """
    check_subtype(remote_task_type)
    if not callable(checker):
        raise BadValue("checker", checker, "something to call with the metadata")
    _registered[remote_task_type] = code_reference.reference_to("checker", checker)


def reference_for(remote_task_type: str) -> str:
    """The checker that a job of this subtype records when it starts: registered here, else set; "" if neither.

    Raises:
        Damaged: config.toml is not TOML.
        BadValue: its table cannot be understood.
    """
    check_subtype(remote_task_type)
    return _registered.get(remote_task_type) or _in_file().get(remote_task_type, "")


def _in_file() -> dict[str, str]:
    """`[completion_checkers]` of config.toml; relative paths start at its folder."""
    table = config.in_file(os.environ).get("completion_checkers", {})
    found = as_object(table)
    if found is None:
        raise BadValue("completion_checkers", table, "a table such as [completion_checkers]")
    folder = config.config_folder(os.environ)
    for subtype in found:
        check_subtype(subtype)
    return {
        subtype: code_reference.check_reference(f"completion_checkers.{subtype}", reference, folder=folder)
        for subtype, reference in found.items()
    }


def check_subtype(remote_task_type: str) -> None:
    """Refuse what is no kind of remote work.

    Raises:
        BadValue: names those there are.
    """
    if remote_task_type not in SUBTYPES:
        raise BadValue("remote task type", remote_task_type, f"one of {', '.join(SUBTYPES)}")


def checker_of(remote_task_type: str, reference: str = "") -> Checker | None:
    """The checker of a job: the one it recorded, else a package's, else ours; None: only its session's end counts."""
    if reference:
        return cast("Checker", code_reference.load("checker", reference))
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
