"""
How a model learns of the end of a background job, by what its client can do.

No MCP server can begin a model's turn: a notice rides on the answer to the next call. Claude Code wakes its model when
a command of its own Bash tool ends in the background, so there a command that waits for the notice does it.
"""

from __future__ import annotations

import os
import shlex
import sys

from taskyard.mcp_server.callers import client_name
from taskyard.mcp_server.calls import Call

#: What Claude Code calls itself in `initialize`.
CLAUDE_CODE = "claude-code"

#: How long the command waits at most: longer than any job may run.
_LONGEST_WAIT = "2d"


def when_it_ends(call: Call, what: str = "Its end") -> str:
    """How `what` reaches the model, in one or two sentences that hold for its client."""
    text = f"{what} is reported in the answer to a later Taskyard call; do not poll."
    if client_name(call.context.request_context) == CLAUDE_CODE:
        text += (
            " That does not wake you while you are idle: to be woken, run this now with your own Bash tool and"
            f" run_in_background: {waiting_command(call.caller.name)}"
        )
    return text


def waiting_command(agent: str) -> str:
    """The shell command that prints and acknowledges the next notices for `agent`, as soon as there are any."""
    words = [*_program(), "notices", "take", "--by", agent, "--wait", _LONGEST_WAIT, "--xml", "--ack"]
    home = os.environ.get("TASKYARD_HOME")
    return shlex.join([*(["env", f"TASKYARD_HOME={os.path.abspath(home)}"] if home else []), *words])


def _program() -> tuple[str, ...]:
    called = sys.argv[0] if sys.argv else ""
    if os.path.basename(called) == "taskyard" and os.access(called, os.X_OK):
        return (os.path.abspath(called),)
    return (sys.executable, "-P", "-m", "taskyard")
