"""
The kinds of jobs, one file each: what each is asked for, and what it asks of the runtime (`taskyard.runtime.kind`).

A package of somebody else's adds a kind by an entry point of the group `taskyard.kinds`, named as its `type`:

    [project.entry-points."taskyard.kinds"]
    countdown = "countdown:Countdown"
"""

from __future__ import annotations

from taskyard.errors import KindNotFound
from taskyard.names import nearest
from taskyard.typed import cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.runtime.kind import Handler

#: Ours, by the type that records name; where each lives.
BUILTIN: Mapping[str, str] = {
    "local_bash": "taskyard.kinds.shell:Shell",
    "local_agent": "taskyard.kinds.agent:Agent",
    "remote_agent": "taskyard.kinds.remote_agent:RemoteAgent",
    "monitor_mcp": "taskyard.kinds.monitor:Monitor",
    "local_workflow": "taskyard.kinds.workflow:Workflow",
    "in_process_teammate": "taskyard.kinds.teammate:Teammate",
    "dream": "taskyard.kinds.dream:Dream",
}

_GROUP = "taskyard.kinds"


def find(kind: str) -> type[Handler]:
    """The class of a kind.

    Raises:
        KindNotFound: nobody has published one of this type here.
    """
    places = known()
    if kind not in places:
        raise KindNotFound(kind, nearest=nearest(kind, list(places)))
    from importlib import import_module

    module, _, name = places[kind].partition(":")
    found: object = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return cast("type[Handler]", found)


def known() -> dict[str, str]:
    """Every kind there is here, with the place of its class; nobody can take the place of one of ours."""
    from importlib.metadata import entry_points

    return {point.name: point.value for point in entry_points(group=_GROUP)} | dict(BUILTIN)
