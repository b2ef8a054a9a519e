"""What a client's configuration holds for our server, in the client's own format. Pure."""

from __future__ import annotations

from taskyard.clients import opencode
from taskyard.clients.starting import NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.clients.starting import Start


def snippet(client: str | None, start: Start) -> dict[str, Any]:
    """The part of the configuration that starts Taskyard; without a client, in the form that most clients read."""
    server = start.server()
    if client == "opencode":
        return {"$schema": "https://opencode.ai/config.json", "mcp": {NAME: opencode.server(start)}}
    if client == "vscode":
        return {"servers": {NAME: {"type": "stdio", **server}}}
    if client == "codex":
        return {"mcp_servers": {NAME: server}}
    if client == "claude-code":
        return {"mcpServers": {NAME: {"type": "stdio", **server}}}
    return {"mcpServers": {NAME: server}}
