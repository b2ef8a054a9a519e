"""Taskyard's own tools for an agent that runs elsewhere: our MCP server, as the agent or we start it."""

from __future__ import annotations

import sys

from taskyard import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.engines.engine import Brief

#: Besides what begins with TASKYARD_: what decides where our files are, and whether Python finds us.
_NEEDED = ("HOME", "PATH", "CLAUDE_CONFIG_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "PYTHONPATH", "VIRTUAL_ENV")

#: A secret of the server over HTTP, which no agent needs.
_SECRET = "TASKYARD_MCP_TOKEN"  # noqa: S105 - the name of a variable


#: Tools of ours that run nothing by themselves. The others (Bash, Agent, Workflow, Monitor, SendInput) run commands, or
#: type into them.
HARMLESS_TOOLS = (
    "TaskCreate", "TaskGet", "TaskList", "TaskUpdate", "TaskClaim", "TaskOutput", "ListJobs", "SendMessage", "ReadMail",
)  # fmt: skip


def is_there() -> bool:
    """Whether the server can run here: it needs the extra `mcp`."""
    from importlib.util import find_spec

    return find_spec("mcp") is not None


def permitted(brief: Brief) -> Brief:
    """The brief, with only the tools of ours that its mode allows: in `ask` and `edit` none of them runs a command.

    For engines that cannot have a person asked about a tool of ours.
    """
    if brief.permissions not in ("ask", "edit"):
        return brief
    return brief._replace(env={**brief.env, "TASKYARD_COMMAND_TOOLS": "false"})


def words(brief: Brief) -> list[str]:
    """The command that serves the agent of this brief: under its name, on the list that is meant where it works."""
    name = brief.env.get("TASKYARD_AGENT", "agent")
    list_name = paths.list_name(env=brief.env, cwd=brief.cwd)
    return [sys.executable, "-P", "-m", "taskyard", "mcp", "--agent", name, "--list", list_name]


def environment(brief: Brief) -> dict[str, str]:
    """What the server needs of the environment; a client passes hardly anything on by itself."""
    return {
        name: value
        for name, value in brief.env.items()
        if (name.startswith("TASKYARD_") and name != _SECRET) or name in _NEEDED
    }
