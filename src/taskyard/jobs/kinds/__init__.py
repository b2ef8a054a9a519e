"""
The job kinds: each is a record of options that builds a launch spec (`taskyard.jobs.kind`).

A third-party package adds a kind with an entry point of the group `taskyard.jobs.kinds`, named as its `type`:

    [project.entry-points."taskyard.jobs.kinds"]
    countdown = "countdown:Countdown"
"""

from __future__ import annotations

from taskyard.core.values import cast, nearest
from taskyard.errors import KindNotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.jobs.kind import Handler

#: Built-in kinds: import path of the class by the type in job records.
BUILTIN: Mapping[str, str] = {
    "local_bash": "taskyard.jobs.kinds.shell:Shell",
    "local_agent": "taskyard.agents.agent.kind:Agent",
    "remote_agent": "taskyard.jobs.kinds.remote_agent:RemoteAgent",
    "monitor_mcp": "taskyard.jobs.kinds.monitor:Monitor",
    "local_workflow": "taskyard.jobs.kinds.workflow:Workflow",
    "in_process_teammate": "taskyard.agents.teammate.kind:Teammate",
    "dream": "taskyard.agents.dream.kind:Dream",
}

_GROUP = "taskyard.jobs.kinds"


def find(kind: str) -> type[Handler]:
    """Return the class of a kind.

    Raises:
        KindNotFound: No kind of this type is installed.
    """
    places = registry()
    if kind not in places:
        raise KindNotFound(kind, nearest=nearest(kind, list(places)))
    from importlib import import_module

    module, _, name = places[kind].partition(":")
    found: object = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return cast("type[Handler]", found)


def registry() -> dict[str, str]:
    """Return the import path of every installed kind; built-in ones cannot be overridden."""
    from importlib.metadata import entry_points

    return {point.name: point.value for point in entry_points(group=_GROUP)} | dict(BUILTIN)
