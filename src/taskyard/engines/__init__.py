"""
What agents run on, by name: a program of yours, somebody else's agent, a model.

An engine is one module with one class (`engine.Engine`). A package of somebody else's adds one by an entry point of
the group `taskyard.engines`. `known` has the command lines of agents that people have installed.
"""

from __future__ import annotations

from taskyard.errors import EngineNotFound
from taskyard.names import nearest
from taskyard.typed import cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.engines.engine import Engine

#: Ours, and where each lives.
BUILTIN: Mapping[str, str] = {
    "command": "taskyard.engines.command:Command",
    "claude": "taskyard.engines.claude.engine:Claude",
    "claude-stream": "taskyard.engines.claude.engine:ClaudeStream",
    "codex": "taskyard.engines.codex:Codex",
    "gemini": "taskyard.engines.gemini:Gemini",
    "opencode": "taskyard.engines.opencode:Opencode",
    "acp": "taskyard.engines.acp.engine:Acp",
    "model": "taskyard.engines.model.engine:Model",
}

_GROUP = "taskyard.engines"


def find(name: str) -> Engine:
    """The engine of a name.

    Raises:
        EngineNotFound: there is none here.
    """
    places = known()
    if name not in places:
        raise EngineNotFound(name, nearest=nearest(name, list(places)))
    from importlib import import_module

    module, _, attribute = places[name].partition(":")
    return cast("Engine", getattr(import_module(module), attribute)())


def known() -> dict[str, str]:
    """Every engine there is here, with the place of its class; nobody can take the place of one of ours."""
    from importlib.metadata import entry_points

    return {point.name: point.value for point in entry_points(group=_GROUP)} | dict(BUILTIN)
