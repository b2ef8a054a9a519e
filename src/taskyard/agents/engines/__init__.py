"""Registry of engines by name: a program, another vendor's agent, or a model.

An engine is one module with one class (`engine.Engine`). Other packages add one by an entry point of the
group `taskyard.agents.engines`. `provider` has the command lines of known agents.
"""

from __future__ import annotations

from taskyard.core.values import cast, nearest
from taskyard.errors import EngineNotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.agents.engines.engine import Engine

#: Built-in engines and their classes.
BUILTIN: Mapping[str, str] = {
    "command": "taskyard.agents.engines.command:Command",
    "claude": "taskyard.agents.engines.claude:Claude",
    "claude-stream": "taskyard.agents.engines.claude:ClaudeStream",
    "codex": "taskyard.agents.engines.codex:Codex",
    "gemini": "taskyard.agents.engines.gemini:Gemini",
    "opencode": "taskyard.agents.engines.opencode:Opencode",
    "acp": "taskyard.agents.engines.acp:Acp",
    "model": "taskyard.agents.engines.model:Model",
}

_GROUP = "taskyard.agents.engines"


def find(name: str) -> Engine:
    """Return the engine of a name.

    Raises:
        EngineNotFound: there is none here.
    """
    places = known_engines()
    if name not in places:
        raise EngineNotFound(name, nearest=nearest(name, list(places)))
    from importlib import import_module

    module, _, attribute = places[name].partition(":")
    return cast("Engine", getattr(import_module(module), attribute)())


def known_engines() -> dict[str, str]:
    """Return every available engine with its class path; built-in engines cannot be overridden."""
    from importlib.metadata import entry_points

    return {point.name: point.value for point in entry_points(group=_GROUP)} | dict(BUILTIN)
