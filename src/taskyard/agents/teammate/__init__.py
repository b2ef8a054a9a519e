"""Teammates: agents that claim and complete tasks of a shared list.

`membership` runs one teammate from joining to leaving, `loop` decides, `client` changes list, mail and team,
`workers` wakes waiting teammates, `mail` handles messages, `rules` has the pure parts. `embedded` runs
teammates whose work is a function of your program. The job kind is `taskyard.agents.teammate.kind`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.agents.identity import current as current
    from taskyard.agents.teammate.embedded import Working as Working
    from taskyard.agents.teammate.embedded import run as run
    from taskyard.agents.teammate.loop import Turn as Turn

__all__ = ["Turn", "Working", "current", "run"]

_HOMES = {
    "Turn": "taskyard.agents.teammate.loop",
    "Working": "taskyard.agents.teammate.embedded",
    "current": "taskyard.agents.identity",
    "run": "taskyard.agents.teammate.embedded",
}


def __getattr__(name: str) -> object:
    """Import a public name on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'taskyard.agents.teammate' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
