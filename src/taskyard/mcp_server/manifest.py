"""
What the server says of itself before any tool is called: its tools, capabilities and protocol versions.

`manifest.json` beside this file holds what the SDK makes of our tool definitions. `scripts/manifest.py` writes it, and
a test compares it with the SDK's own answers. With it, a server can answer a handshake without loading the SDK.
"""

from __future__ import annotations

import json
import os

from taskyard import context
from taskyard.engines.own_server import HARMLESS_TOOLS
from taskyard.mcp_server import words
from taskyard.runtime.background import is_background_disabled
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from taskyard.config import Settings

FILE = os.path.join(os.path.dirname(__file__), "manifest.json")

NAME, TITLE = "taskyard", "Taskyard"
DESCRIPTION = "A shared task list and background jobs for AI agents."


class Offer(NamedTuple):
    """Which tools a server offers, and how it describes their answers."""

    background: bool = True  #: jobs may run in the background
    monitor: bool = True  #: Monitor is among the tools
    commands: bool = True  #: tools that run commands are among them
    structured: bool = False  #: answers carry structuredContent beside their text, and tools an outputSchema


def offer(settings: Settings) -> Offer:
    """What the settings and the environment allow."""
    background = not is_background_disabled()
    monitor = background and settings.monitor_tool
    return Offer(background, monitor, settings.command_tools, structured=settings.mcp_structured)


def offers(offered: Offer, tool: str) -> bool:
    """Whether a tool is among those of an offer."""
    if not offered.commands and tool not in HARMLESS_TOOLS:
        return False
    return offered.monitor or tool != "Monitor"


def instructions(offered: Offer, names: Sequence[str]) -> str:
    """What a client tells its model about this server."""
    first = words.INSTRUCTIONS if offered.background else words.INSTRUCTIONS_IN_FOREGROUND
    first = first if offered.commands else words.INSTRUCTIONS_WITHOUT_COMMANDS
    return f"{first}\n{context.guidance(names, interactive=True, team=True)}".strip()


class Manifest(NamedTuple):
    """The stored answers, for one offer."""

    tools: list[dict[str, Any]]
    handshake: Mapping[str, Any]  #: protocol versions with `initialize`: versions, capabilities
    modern: Mapping[str, Any]  #: protocol versions without it: versions, capabilities, extras
    instructions: str
    prompts: list[dict[str, Any]]


def load(offered: Offer) -> Manifest:
    """The stored answers for an offer."""
    with open(FILE, encoding="utf-8") as file:
        stored: dict[str, Any] = json.load(file)
    tools = [_variant(tool, stored["foreground"], offered) for tool in stored["tools"]]
    shown = [tool for tool in tools if tool is not None and offers(offered, tool["name"])]
    names = [tool["name"] for tool in shown]
    return Manifest(shown, stored["handshake"], stored["modern"], instructions(offered, names), stored["prompts"])


def _variant(tool: dict[str, Any], foreground: Mapping[str, Any], offered: Offer) -> dict[str, Any] | None:
    found = tool if offered.background else foreground.get(tool["name"], tool)
    if found is None or offered.structured:
        return found
    return {key: value for key, value in found.items() if key != "outputSchema"}
