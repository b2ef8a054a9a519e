"""All tools as one `MCPServer`, over stdio or, in `http`, for many clients at once."""

from __future__ import annotations

import logging
import sys

import anyio
from mcp.server.subscriptions import InMemorySubscriptionBus

from taskyard import __version__, config, context
from taskyard.mcp_server import telemetry, words
from taskyard.mcp_server.agent_tool import agent_tools
from taskyard.mcp_server.callers import Callers, OneCaller
from taskyard.mcp_server.calls import Pace, tools
from taskyard.mcp_server.deferred import Deferred
from taskyard.mcp_server.http import token
from taskyard.mcp_server.job_tools import job_tools
from taskyard.mcp_server.mail_tools import MAIL_TOOLS
from taskyard.mcp_server.monitor_tool import monitor_tools
from taskyard.mcp_server.prompts import Prompts
from taskyard.mcp_server.resources import Resources
from taskyard.mcp_server.subscribing import Subscriptions
from taskyard.mcp_server.task_tools import TASK_TOOLS
from taskyard.mcp_server.workflow_tool import workflow_tools
from taskyard.mcp_server.yard_server import YardServer
from taskyard.runtime.requests import is_background_disabled


def build(callers: Callers, settings: config.Settings) -> YardServer:
    """The server for `callers`."""
    bus = InMemorySubscriptionBus()
    specs = (*TASK_TOOLS, *job_tools(), *agent_tools(), *workflow_tools(), *monitor_tools(), *MAIL_TOOLS)
    first = words.INSTRUCTIONS_IN_FOREGROUND if is_background_disabled() else words.INSTRUCTIONS
    guidance = context.guidance([spec.name for spec in specs], interactive=True, team=True)
    server = YardServer(
        "taskyard",
        title="Taskyard",
        description="A shared task list and background jobs for AI agents.",
        instructions=f"{first}\n{guidance}".strip(),
        version=__version__,
        tools=tools(specs, callers, pace=Pace(settings.mcp_patience, settings.mcp_defer_after)),
        extensions=[Deferred(callers)],
        subscriptions=bus,
        log_level="WARNING",
    )
    Resources(callers).offer(server)
    Subscriptions(callers, bus).offer(server)
    for prompt in Prompts(callers).all():
        server.add_prompt(prompt)
    return server


def serve_stdio(*, agent: str | None, list: str | None, tasks_dir: str | None) -> None:
    """Answer the client at the other end of our stdin and stdout until it hangs up."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)  # stdout belongs to the protocol
    token.take()  # it is for HTTP alone, and for no command that is run here
    callers = OneCaller(agent=agent, list=list, tasks_dir=tasks_dir)
    server = build(callers, config.load())

    async def serve() -> None:
        try:
            await server.run_stdio_async()
        finally:
            await callers.close()

    with telemetry.started():
        anyio.run(serve)
