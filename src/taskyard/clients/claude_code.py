"""
Claude Code.

    scope     servers                                                    hooks and variables
    user      ~/.claude.json (or $CLAUDE_CONFIG_DIR/.claude.json)        ~/.claude/settings.json
    project   <project>/.mcp.json                                        <project>/.claude/settings.json

Its own list of tasks is its session's, and on current models its task tools are off: two variables let both meet on one
list. Its hooks run with its own environment, so whatever decides where our files are is among its variables too.
"""

from __future__ import annotations

import os

from taskyard import paths
from taskyard.clients.json_config import JsonWish
from taskyard.clients.starting import NAME
from taskyard.clients.target import Target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.clients.target import Wanted
    from taskyard.config import Settings

#: Where notices can reach the model, and its context be restored; and where a dream may begin.
EVENTS = ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd")

#: The rule that lets it call every tool of ours without asking.
ALLOW = f"mcp__{NAME}"

#: Seconds after which it goes on without us; usually it takes a tenth of one.
_HOOK_TIMEOUT = 10


def targets(wanted: Wanted, env: Mapping[str, str]) -> list[Target]:
    """Its files, and what goes into them."""
    servers, settings = _files(wanted.scope, wanted.root, env)
    server: dict[str, object] = {"type": "stdio", **wanted.start.server()}
    shared = {"CLAUDE_CODE_TASK_LIST_ID": wanted.list, "CLAUDE_CODE_ENABLE_TODO_TOOLS": "1"} if wanted.list else {}
    hooks: dict[str, Mapping[str, object]] = {
        event: {"type": "command", "command": wanted.start.hook(event), "timeout": _HOOK_TIMEOUT}
        for event in (EVENTS if wanted.hooks else ())
    }
    own = wanted.start.own_env if wanted.hooks or wanted.list else {}
    within = wanted.root if wanted.scope == "project" else None
    return [
        Target(servers, JsonWish(server=server), within, locked=wanted.scope == "user"),
        Target(settings, JsonWish(env={**own, **shared}, hooks=hooks, allow=(ALLOW,) if wanted.allow else ()), within),
    ]


def dream_engine(settings: Settings) -> str:
    """The engine of the dreams that the SessionEnd hook starts; "" for the one of the settings."""
    return "" if settings.engine != "command" or settings.agent_command else "claude"


def _files(scope: str, root: str, env: Mapping[str, str]) -> tuple[str, str]:
    if scope == "project":
        return os.path.join(root, ".mcp.json"), os.path.join(root, ".claude", "settings.json")
    folder = paths.claude_folder(env)
    beside = folder if env.get("CLAUDE_CONFIG_DIR") else os.path.dirname(folder)
    return os.path.join(beside, ".claude.json"), os.path.join(folder, "settings.json")
