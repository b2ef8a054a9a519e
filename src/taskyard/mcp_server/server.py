"""All tools as one `MCPServer`, over stdio (after `front` has answered the handshake) or, in `http`, over HTTP."""

from __future__ import annotations

import logging
import sys
from typing import Any

import anyio
from mcp.server.subscriptions import InMemorySubscriptionBus

from taskyard import __version__, config
from taskyard.mcp_server import manifest, telemetry
from taskyard.mcp_server.agent_tool import agent_tools
from taskyard.mcp_server.callers import Callers, OneCaller
from taskyard.mcp_server.calls import Pace, Spec, tools
from taskyard.mcp_server.deferred import Deferred
from taskyard.mcp_server.front import Handover
from taskyard.mcp_server.http import token
from taskyard.mcp_server.job_tools import job_tools
from taskyard.mcp_server.mail_tools import MAIL_TOOLS
from taskyard.mcp_server.monitor_tool import MONITOR_TOOLS
from taskyard.mcp_server.prompts import Prompts
from taskyard.mcp_server.resources import Resources
from taskyard.mcp_server.subscribing import Subscriptions
from taskyard.mcp_server.task_tools import TASK_TOOLS
from taskyard.mcp_server.team_tools import TEAM_TOOLS
from taskyard.mcp_server.workflow_tool import workflow_tools
from taskyard.mcp_server.yard_server import YardServer


def specs(offered: manifest.Offer) -> tuple[Spec[Any], ...]:
    """Every tool on offer, in the order clients show them."""
    in_foreground = not offered.background
    found = (
        *TASK_TOOLS,
        *job_tools(in_foreground=in_foreground),
        *agent_tools(in_foreground=in_foreground),
        *workflow_tools(in_foreground=in_foreground),
        *MONITOR_TOOLS,
        *TEAM_TOOLS,
        *MAIL_TOOLS,
    )
    return tuple(spec for spec in found if manifest.offers(offered, spec.name))


def build(callers: Callers, settings: config.Settings) -> YardServer:
    """The server for `callers`."""
    bus = InMemorySubscriptionBus()
    offered = manifest.offer(settings)
    found = specs(offered)
    server = YardServer(
        manifest.NAME,
        title=manifest.TITLE,
        description=manifest.DESCRIPTION,
        instructions=manifest.instructions(offered, [spec.name for spec in found]),
        version=__version__,
        tools=tools(
            found,
            callers,
            pace=Pace(settings.mcp_patience, settings.mcp_defer_after),
            structured=offered.structured,
        ),
        extensions=[Deferred(callers, structured=offered.structured)],
        subscriptions=bus,
        log_level="WARNING",
    )
    Resources(callers).offer(server)
    Subscriptions(callers, bus).offer(server)
    for prompt in Prompts(callers).all():
        server.add_prompt(prompt)
    return server


def serve_stdio(
    *, agent: str | None, list: str | None, tasks_dir: str | None, handover: Handover | None = None
) -> None:
    """Answer the client at the other end of our stdin and stdout until it hangs up.

    `handover`: what `front` has read and answered before.
    """
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)  # stdout belongs to the protocol
    token.take()  # it is for HTTP alone, and for no command that is run here
    callers = OneCaller(agent=agent, list=list, tasks_dir=tasks_dir)
    server = build(callers, config.load())

    async def serve() -> None:
        try:
            await server.run_handed_over(handover or Handover(b"", frozenset()))
        finally:
            await callers.close()

    with telemetry.started():
        anyio.run(serve)
