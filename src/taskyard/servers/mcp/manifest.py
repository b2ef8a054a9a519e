"""The stored handshake answers of the server: its tools, capabilities and protocol versions.

`manifest.json` beside this file has what the SDK generates from the tool definitions. `scripts/manifest.py` writes it,
and a test compares it with the SDK's own answers. With it, a server can answer a handshake without loading the SDK.
"""

from __future__ import annotations

import json
import os

from taskyard.agents.engines.provider import HARMLESS_TOOLS
from taskyard.core.values import NamedTuple
from taskyard.integrations import model_context
from taskyard.jobs.environment import is_background_disabled
from taskyard.servers.mcp import tool_texts

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
    structured: bool = False  #: answers have structuredContent beside their text, and tools an outputSchema


def load_offer(settings: Settings) -> Offer:
    """Return the offer that settings and environment allow."""
    background = not is_background_disabled()
    monitor = background and settings.monitor_tool
    return Offer(background, monitor, settings.command_tools, structured=settings.mcp_structured)


def is_offered(offered: Offer, tool: str) -> bool:
    """Return whether a tool is part of an offer."""
    if not offered.commands and tool not in HARMLESS_TOOLS:
        return False
    return offered.monitor or tool != "Monitor"


def instructions(offered: Offer, names: Sequence[str]) -> str:
    """Return the instructions that a client gives its model."""
    first = tool_texts.INSTRUCTIONS if offered.background else tool_texts.INSTRUCTIONS_IN_FOREGROUND
    first = first if offered.commands else tool_texts.INSTRUCTIONS_WITHOUT_COMMANDS
    return f"{first}\n{model_context.guidance(names, interactive=True, team=True)}".strip()


class Manifest(NamedTuple):
    """The stored answers, for one offer."""

    tools: list[dict[str, Any]]
    handshake: Mapping[str, Any]  #: protocol versions with `initialize`: versions, capabilities
    modern: Mapping[str, Any]  #: protocol versions without it: versions, capabilities, extras
    instructions: str
    prompts: list[dict[str, Any]]


def load_manifest(offered: Offer) -> Manifest:
    """Load the stored answers for an offer."""
    with open(FILE, encoding="utf-8") as file:
        stored: dict[str, Any] = json.load(file)
    tools = [_variant(tool, stored["foreground"], offered) for tool in stored["tools"]]
    shown = [tool for tool in tools if tool is not None and is_offered(offered, tool["name"])]
    names = [tool["name"] for tool in shown]
    return Manifest(shown, stored["handshake"], stored["modern"], instructions(offered, names), stored["prompts"])


def _variant(tool: dict[str, Any], foreground: Mapping[str, Any], offered: Offer) -> dict[str, Any] | None:
    found = tool if offered.background else foreground.get(tool["name"], tool)
    if found is None or offered.structured:
        return found
    return {key: value for key, value in found.items() if key != "outputSchema"}
