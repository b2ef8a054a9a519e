"""The command line of Claude Code for a brief: its stream, its permission mode, our MCP server."""

from __future__ import annotations

import json
import os

from taskyard.engines import own_server
from taskyard.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from taskyard.engines.engine import Brief

#: What it prints; every engine here reads this.
STREAM = ("-p", "--output-format", "stream-json", "--verbose")

#: Prompts, messages and answers go in as lines; permission requests come out as lines; token counts come as they grow.
CONTROL = ("--input-format", "stream-json", "--include-partial-messages")
PROMPTS = ("--permission-prompt-tool", "stdio")

SERVER = "taskyard"

#: The words by which a command line sets a permission mode itself.
_MODES = ("--permission-mode", "--dangerously-skip-permissions", "--allow-dangerously-skip-permissions")

#: The mode where none is set: it can ask, so commands do.
_DEFAULT = "edit"

_EDITS = ("--permission-mode", "acceptEdits")
_FLAGS = {"ask": (), "edit": _EDITS, "work": _EDITS, "all": ("--permission-mode", "bypassPermissions")}


def words(brief: Brief, *, session: str | None, allowed: Iterable[str] = ()) -> list[str]:
    """The options that follow the program's own words; `allowed` are rules granted earlier in this job."""
    command = brief.command
    permissions = brief.permissions or _DEFAULT
    rules = ["Bash", *allowed] if permissions == "work" else list(allowed)
    prompts = () if _names(command, PROMPTS[:1]) else PROMPTS
    model = ("--model", brief.model) if brief.model else ()
    resumed = ("--resume", session) if session else ()
    server: tuple[str, ...] = ()
    if brief.own_tools and own_server.is_there():
        server = ("--mcp-config", config(brief))
        own = ("*",) if permissions in ("work", "all") else own_server.HARMLESS_TOOLS  # the others ask like Bash
        rules = [*(f"mcp__{SERVER}__{tool}" for tool in own), *rules]
    granted = ("--allowedTools", *rules) if rules else ()
    return [*STREAM, *CONTROL, *prompts, *access(brief), *model, *resumed, *server, *granted]


def access(brief: Brief) -> tuple[str, ...]:
    """The permission mode, unless the command line names one, and the folders that it may use beside its own."""
    mode = () if _names(brief.command, _MODES) else _FLAGS[brief.permissions or _DEFAULT]
    return (*mode, *(word for folder in brief.reads for word in ("--add-dir", folder)))


def config(brief: Brief) -> str:
    """Our server, as `--mcp-config` takes it.

    Values of the environment are named, not written: other users can read a command line. `alwaysLoad` puts the tools
    into the first request, and has the program wait for the server; otherwise it defers them to a search.
    """
    command, *arguments = own_server.words(brief)
    env = {name: f"${{{name}}}" for name in own_server.environment(brief)}
    server = {"type": "stdio", "command": command, "args": arguments, "env": env, "alwaysLoad": True}
    return json.dumps({"mcpServers": {SERVER: server}}, separators=(",", ":"))


def check(brief: Brief) -> None:
    """Refuse what the program would refuse only after its start.

    Raises:
        UsageError: all permissions, as root, outside a sandbox.
    """
    is_root = os.geteuid() == 0 and brief.env.get("IS_SANDBOX") != "1"
    if brief.permissions == "all" and is_root and not _names(brief.command, _MODES):
        raise UsageError(
            "Claude Code refuses to run with all permissions as root. Use `--permissions work`, run as another user,"
            " or set IS_SANDBOX=1 if this machine is a sandbox."
        )


def _names(command: Sequence[str], options: Sequence[str]) -> bool:
    return any(word.partition("=")[0] in options for word in command)
