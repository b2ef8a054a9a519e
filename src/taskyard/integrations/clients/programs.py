"""The configuration files of each client, and the entries Taskyard needs in them. Pure.

Claude Code:

    scope     servers                                                    hooks and variables
    user      ~/.claude.json (or $CLAUDE_CONFIG_DIR/.claude.json)        ~/.claude/settings.json
    project   <project>/.mcp.json                                        <project>/.claude/settings.json

Its own task list belongs to a session, and on current models its task tools are off: two variables let both
share one list. Its hooks run with its environment, so the variables that locate our files are set there too.

Codex: a table `[mcp_servers.taskyard]` in ~/.codex/config.toml (or $CODEX_HOME/config.toml). In scope
`project`: <project>/.codex/config.toml, which Codex reads in projects that it trusts.

Gemini CLI: an entry of `mcpServers` in ~/.gemini/settings.json (or $GEMINI_CLI_HOME/.gemini/settings.json). In
scope `project`: <project>/.gemini/settings.json. It replaces $NAME in values by the variable of that name.

opencode: an entry of `mcp` in ~/.config/opencode/opencode.json (or $XDG_CONFIG_HOME/opencode/opencode.json). In
scope `project`: <project>/opencode.json. opencode also reads opencode.jsonc beside it and merges both. It
replaces {env:NAME} and {file:PATH} in the text of the file.
"""

from __future__ import annotations

import os

from taskyard import config
from taskyard.config import env_folder, user_home
from taskyard.core.values import NamedTuple
from taskyard.errors import BadValue
from taskyard.integrations.clients.formats import NAME, JsonConfigSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from taskyard.config import Settings
    from taskyard.integrations.clients.formats import StartCommand


class SetupOptions(NamedTuple):
    """What the user asked for."""

    start: StartCommand
    scope: str = "user"  #: "user": in all projects of the user; "project": in this one, for everyone who has it
    root: str = ""  #: the project
    list: str | None = None  #: the list that the client's own task tools should share
    hooks: bool = True
    allow: bool = False  #: allow its tools without a permission prompt


class Target(NamedTuple):
    """One configuration file of a client."""

    path: str
    wish: JsonConfigSpec | Mapping[str, object]  #: for JSON; or the server's table for TOML
    within: str | None = None  #: a folder that links in the path must not leave
    locked: bool = False  #: its program writes it under a lock folder


#: Events that can deliver notices to the model, restore its context, or start a dream.
EVENTS = ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd")

#: The permission rule for all our tools.
ALLOW = f"mcp__{NAME}"

#: Seconds after which Claude Code continues without the hook; it usually takes 0.1 s.
_HOOK_TIMEOUT = 10


def claude_targets(wanted: SetupOptions, env: Mapping[str, str]) -> list[Target]:
    """Return its files and their entries."""
    servers, settings = _claude_files(wanted.scope, wanted.root, env)
    server: dict[str, object] = {"type": "stdio", **wanted.start.server()}
    shared = {"CLAUDE_CODE_TASK_LIST_ID": wanted.list, "CLAUDE_CODE_ENABLE_TODO_TOOLS": "1"} if wanted.list else {}
    hooks: dict[str, Mapping[str, object]] = {
        event: {"type": "command", "command": wanted.start.hook(event), "timeout": _HOOK_TIMEOUT}
        for event in (EVENTS if wanted.hooks else ())
    }
    own = wanted.start.own_env if wanted.hooks or wanted.list else {}
    within = wanted.root if wanted.scope == "project" else None
    return [
        Target(servers, JsonConfigSpec(server=server), within, locked=wanted.scope == "user"),
        Target(
            settings, JsonConfigSpec(env={**own, **shared}, hooks=hooks, allow=(ALLOW,) if wanted.allow else ()), within
        ),
    ]


def dream_engine(settings: Settings) -> str:
    """Return the engine of dreams started by the SessionEnd hook; "" for the one of the settings."""
    return "" if settings.engine != "command" or settings.agent_command else "claude"


def _claude_files(scope: str, root: str, env: Mapping[str, str]) -> tuple[str, str]:
    if scope == "project":
        return os.path.join(root, ".mcp.json"), os.path.join(root, ".claude", "settings.json")
    folder = config.claude_folder(env)
    beside = folder if env.get("CLAUDE_CONFIG_DIR") else os.path.dirname(folder)
    return os.path.join(beside, ".claude.json"), os.path.join(folder, "settings.json")


#: Seconds: TaskOutput may wait ten minutes, and Codex times out after one by default.
_TOOL_TIMEOUT = 660


def codex_targets(wanted: SetupOptions, env: Mapping[str, str]) -> list[Target]:
    """Return its file and the entry."""
    server = {**wanted.start.server(), "tool_timeout_sec": _TOOL_TIMEOUT}
    if wanted.scope == "project":
        return [Target(os.path.join(wanted.root, ".codex", "config.toml"), server, wanted.root)]
    folder = env_folder("CODEX_HOME", env) or os.path.join(user_home(env), ".codex")
    return [Target(os.path.join(folder, "config.toml"), server)]


#: Milliseconds: TaskOutput may wait ten minutes, which is Gemini CLI's default timeout.
_GEMINI_TIMEOUT = 660_000


def gemini_targets(wanted: SetupOptions, env: Mapping[str, str]) -> list[Target]:
    """Return its file and the entry."""
    for name, value in wanted.start.env.items():
        if "$" in value:
            raise BadValue(name, value, "a value without $, which Gemini CLI replaces by variables")
    wish = JsonConfigSpec(server={**wanted.start.server(), "timeout": _GEMINI_TIMEOUT})
    if wanted.scope == "project":
        return [Target(os.path.join(wanted.root, ".gemini", "settings.json"), wish, wanted.root)]
    home = env_folder("GEMINI_CLI_HOME", env) or user_home(env)
    return [Target(os.path.join(home, ".gemini", "settings.json"), wish)]


def opencode_targets(wanted: SetupOptions, env: Mapping[str, str]) -> list[Target]:
    """Return its file and the entry."""
    for name, value in wanted.start.env.items():
        if "{env:" in value or "{file:" in value:
            raise BadValue(name, value, "a value without {env: or {file:, which opencode replaces")
    wish = JsonConfigSpec(server=opencode_server(wanted.start), servers="mcp")
    if wanted.scope == "project":
        return [Target(os.path.join(wanted.root, "opencode.json"), wish, wanted.root)]
    folder = env_folder("XDG_CONFIG_HOME", env) or os.path.join(user_home(env), ".config")
    return [Target(os.path.join(folder, "opencode", "opencode.json"), wish)]


def opencode_server(start: StartCommand) -> dict[str, object]:
    """Return our server in opencode's format."""
    words = [start.words[0], *start.arguments]
    return {"type": "local", "command": words, "environment": dict(start.env), "enabled": True}


def snippet(client: str | None, start: StartCommand) -> dict[str, Any]:
    """Return the configuration that starts Taskyard; without a client, in the form that most clients read."""
    server = start.server()
    if client == "opencode":
        return {"$schema": "https://opencode.ai/config.json", "mcp": {NAME: opencode_server(start)}}
    if client == "vscode":
        return {"servers": {NAME: {"type": "stdio", **server}}}
    if client == "codex":
        return {"mcp_servers": {NAME: server}}
    if client == "claude-code":
        return {"mcpServers": {NAME: {"type": "stdio", **server}}}
    return {"mcpServers": {NAME: server}}
