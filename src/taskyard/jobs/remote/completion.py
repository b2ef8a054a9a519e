"""Completion checkers of remote work, functions by reference, and results of review and plan sessions.

A checker decides at each poll whether work of a subtype is complete, although its session may continue:

    from taskyard import register_completion_checker

    def merged(metadata):
        return "It was merged." if metadata.get("prState") == "merged" else None

    register_completion_checker("background-pr", merged)

It returns the text of the notice, or None for "not yet", and may be async. A job polls in its own process,
which loads the first of these for its subtype:

    1. registered   by the process that starts the job; the job record has the function by reference
    2. config.toml  [completion_checkers]
                    background-pr = "~/checks.py:merged"
    3. a package    [project.entry-points."taskyard.completion_checkers"]
                    background-pr = "mine:merged"
    4. built-in     for pull requests

A reference is `module:function` or `/path/to/file.py:function`. A file in a package (its directory has an
`__init__.py`) is imported as a module of that package, so its relative imports work. Any other file is loaded
by itself; it can import the files beside it.

Review of an ultrareview session, in this order:

    system/hook_progress     output of the session's hooks: between <remote-review> tags, else all of it
    assistant messages       between the tags

Output in several events is joined first: a long review comes in two events and may be cut anywhere, also in
the middle of a tag.

Phase of an ultraplan session: `needs_input` (it asked a question), `plan_ready` (its plan waits for approval),
"" (working).
"""

from __future__ import annotations

import os

from taskyard import config
from taskyard.core.values import as_number, as_object, as_text, cast
from taskyard.errors import BadValue
from taskyard.jobs.remote.backend import (
    RemoteState,
    assistant_text,
    parse_message,
    parse_messages,
    tool_calls,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping
    from types import ModuleType


_FORM = "module:function or /path/to/file.py:function"


def check_reference(field: str, reference: object, *, folder: str = "") -> str:
    """Return the reference with an absolute path: `~` is the home directory, a relative path starts at `folder`.

    Raises:
        BadValue: It has another form.
    """
    module, _, name = reference.rpartition(":") if isinstance(reference, str) else ("", "", "")
    if not module or not all(part.isidentifier() for part in name.split(".")):
        raise BadValue(field, reference, _FORM)
    if module.endswith(".py"):
        return f"{os.path.join(folder, os.path.expanduser(module))}:{name}"
    if not all(part.isidentifier() for part in module.split(".")):
        raise BadValue(field, reference, _FORM)
    return f"{module}:{name}"


def function_reference(field: str, function: Callable[..., object]) -> str:
    """Return the reference by which another process loads `function`.

    Raises:
        BadValue: No other process can: it is a lambda, a method of an object, inside another function, or in
            the running program (`__main__`).
    """
    import sys

    module = sys.modules.get(str(getattr(function, "__module__", None)))
    name = str(getattr(function, "__qualname__", ""))
    if module is None or module.__name__ == "__main__" or _attribute(module, name) is not function:
        raise BadValue(
            field,
            function,
            "a function at the top level of a module, not of the program itself: each job loads it in its own process",
        )
    path = getattr(module, "__file__", None)
    if isinstance(path, str) and path.endswith(".py") and os.path.isfile(path):
        return f"{os.path.abspath(path)}:{name}"
    return f"{module.__name__}:{name}"


def load_function(field: str, reference: str) -> Callable[..., object]:
    """Load the function that a reference names.

    Raises:
        BadValue: It does not exist, or is not callable. Other exceptions of its module are passed on.
    """
    from importlib import import_module

    module, _, name = reference.rpartition(":")
    loaded = _load_file(module) if module.endswith(".py") else import_module(module)
    found = _attribute(loaded, name)
    if not callable(found):
        raise BadValue(field, reference, f"the name of a function in {module}")
    return found


def _attribute(module: ModuleType, name: str) -> object:
    found: object = module
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _load_file(path: str) -> ModuleType:
    import sys
    from importlib import import_module
    from importlib.util import module_from_spec, spec_from_file_location

    folder, file = os.path.split(path)
    parts = [file.removesuffix(".py")]
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder, package = os.path.split(folder)
        parts.insert(0, package)
    if folder not in sys.path:
        sys.path.append(folder)  # last, so that it shadows no module
    if len(parts) > 1:
        return import_module(".".join(parts).removesuffix(".__init__"))
    name = f"_taskyard_{parts[0]}"  # not the file's own name, which may be that of another module
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


if TYPE_CHECKING:
    Metadata = Mapping[str, object]
    Checker = Callable[[Metadata], str | Awaitable[str | None] | None]

_GROUP = "taskyard.completion_checkers"

#: Subtypes of remote work.
SUBTYPES = ("remote-agent", "ultraplan", "ultrareview", "autofix-pr", "background-pr")

#: Subtype → reference of the function that this process registered.
_registered: dict[str, str] = {}


def register_completion_checker(remote_task_type: str, checker: Checker) -> None:
    """Call `checker` at each poll of the remote jobs of a subtype that this process starts from now on.

    The job loads it in its own process, so it must be a function at the top level of a module.

    Raises:
        BadValue: It is not callable, another process cannot load it, or there is no such subtype.
    """
    check_subtype(remote_task_type)
    if not callable(checker):
        raise BadValue("checker", checker, "something to call with the metadata")
    _registered[remote_task_type] = function_reference("checker", checker)


def checker_reference(remote_task_type: str) -> str:
    """Return the checker that a job of this subtype records: registered here, else configured, else "".

    Raises:
        Damaged: config.toml is not TOML.
        BadValue: Its table is invalid.
    """
    check_subtype(remote_task_type)
    return _registered.get(remote_task_type) or _configured_checkers().get(remote_task_type, "")


def _configured_checkers() -> dict[str, str]:
    """Read `[completion_checkers]` of config.toml; relative paths start at its directory."""
    table = config.read_config_file(os.environ).get("completion_checkers", {})
    found = as_object(table)
    if found is None:
        raise BadValue("completion_checkers", table, "a table such as [completion_checkers]")
    folder = config.config_folder(os.environ)
    for subtype in found:
        check_subtype(subtype)
    return {
        subtype: check_reference(f"completion_checkers.{subtype}", reference, folder=folder)
        for subtype, reference in found.items()
    }


def check_subtype(remote_task_type: str) -> None:
    """Refuse an unknown subtype of remote work.

    Raises:
        BadValue: States the known ones.
    """
    if remote_task_type not in SUBTYPES:
        raise BadValue("remote task type", remote_task_type, f"one of {', '.join(SUBTYPES)}")


def load_checker(remote_task_type: str, reference: str = "") -> Checker | None:
    """Return the job's checker: as recorded, else a package's, else built-in; None: only the session's end counts."""
    if reference:
        return cast("Checker", load_function("checker", reference))
    from importlib.metadata import entry_points

    for point in entry_points(group=_GROUP):
        if point.name == remote_task_type:
            return cast("Checker", point.load())
    return _BUILTIN_CHECKERS.get(remote_task_type)


def closed_pull_request(metadata: Metadata) -> str | None:
    """Return a text if the pull request was merged or closed, where the remote reports that."""
    request, state = _pull_request(metadata)
    if state not in ("merged", "closed"):
        return None
    return f"{_pull_request_name(request)} was {state}."


def open_pull_request(metadata: Metadata) -> str | None:
    """Return a text once there is a pull request, in whatever state."""
    request, state = _pull_request(metadata)
    if closed := closed_pull_request(metadata):
        return closed
    return f"{_pull_request_name(request)} is open." if state == "open" or request.get("url") else None


def _pull_request(metadata: Metadata) -> tuple[Metadata, str]:
    """Return the pull request and its state: from an object of its own, or from keys that begin with `pr`."""
    request = as_object(metadata.get("pullRequest")) or as_object(metadata.get("pr"))
    if request is None:
        keys = {"state": "prState", "merged": "prMerged", "url": "prUrl", "number": "prNumber"}
        request = {name: metadata[key] for name, key in keys.items() if key in metadata}
    state = "merged" if request.get("merged") is True else as_text(request.get("state")).lower()
    return request, state


def _pull_request_name(request: Metadata) -> str:
    if number := as_number(request.get("number")):
        return f"Pull request #{number}"
    return f"Pull request {url}" if (url := as_text(request.get("url"))) else "The pull request"


_BUILTIN_CHECKERS: Mapping[str, Checker] = {"autofix-pr": closed_pull_request, "background-pr": open_pull_request}


OPEN_TAG, CLOSE_TAG = "<remote-review>", "</remote-review>"

#: Keys of a hook message that may have the hook's output.
_OUTPUT_KEYS = ("stdout", "output", "content", "text")


def extract_review(lines: Iterable[str]) -> str:
    """Return the review; "" if there is none."""
    hooks, agent = list[str](), list[str]()
    for message in parse_messages(lines):
        if message.get("type") == "system" and message.get("subtype") == "hook_progress":
            hooks.append(_hook_output(message))
        elif said := assistant_text(message):
            agent.append(said)
    return _find_tagged(hooks) or "".join(hooks).strip() or _find_tagged(agent)


def _find_tagged(pieces: list[str]) -> str:
    """Return the text between tags: in the last piece that has all of it, else in all pieces joined."""
    whole = next((found for piece in reversed(pieces) if (found := _between_tags(piece))), "")
    return whole or _between_tags("".join(pieces))


def _between_tags(text: str) -> str:
    """Return the text between the last closing tag and the opening tag before it."""
    end = text.rfind(CLOSE_TAG)
    start = text.rfind(OPEN_TAG, 0, end) if end >= 0 else -1
    return text[start + len(OPEN_TAG) : end].strip() if start >= 0 else ""


def _hook_output(message: Mapping[str, object]) -> str:
    return next((text for name in _OUTPUT_KEYS if (text := as_text(message.get(name)))), "")


NEEDS_INPUT, PLAN_READY = "needs_input", "plan_ready"

#: Tools by which an agent stops to ask, and the phase that each starts.
_PHASE_TOOLS = {"ExitPlanMode": PLAN_READY, "AskUserQuestion": NEEDS_INPUT}


def next_phase(phase: str, lines: list[str]) -> str:
    """Return the phase after these lines, given the one before; any answer of the user ends a phase."""
    for line in lines:
        message = parse_message(line)
        if message is None:
            continue
        if message.get("type") == "user":
            phase = ""
        for tool, _ in tool_calls(message):
            phase = _PHASE_TOOLS.get(tool, phase)
    return phase


def visible_phase(phase: str, state: RemoteState) -> str:
    """Return the phase to show: a session that waits for an answer needs input whatever it printed."""
    return phase or (NEEDS_INPUT if state is RemoteState.NEEDS_INPUT else "")


def extract_plan(lines: list[str]) -> str:
    """Return the last plan; "" if there is none."""
    plan = ""
    for line in lines:
        for tool, given in tool_calls(parse_message(line) or {}):
            if tool == "ExitPlanMode":
                plan = as_text(given.get("plan")) or plan
    return plan.strip()
