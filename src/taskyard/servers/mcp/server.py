"""Build the `MCPServer` with all tools, and serve it over stdio.

`front` answers the handshake before; `http` serves it over HTTP.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

import anyio
from mcp.server.subscriptions import InMemorySubscriptionBus

from taskyard import __version__, config
from taskyard.servers.mcp import manifest, sdk_server, telemetry
from taskyard.servers.mcp.callers import Callers, StdioCaller
from taskyard.servers.mcp.calls import CallTimeouts, ToolSpec, build_tools
from taskyard.servers.mcp.deferred import TasksExtension
from taskyard.servers.mcp.front import Handover
from taskyard.servers.mcp.job_tools import MONITOR_TOOLS, agent_tools, job_tools, workflow_tools
from taskyard.servers.mcp.resources import Prompts, Resources, Subscriptions
from taskyard.servers.mcp.sdk_server import YardServer
from taskyard.servers.mcp.task_tools import TASK_TOOLS
from taskyard.servers.mcp.team_tools import MAIL_TOOLS, TEAM_TOOLS


def tool_specs(offered: manifest.Offer) -> tuple[ToolSpec[Any], ...]:
    """Return every tool on offer, in the order clients show them."""
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
    return tuple(spec for spec in found if manifest.is_offered(offered, spec.name))


def build(callers: Callers, settings: config.Settings) -> YardServer:
    """Build the server for `callers`."""
    bus = InMemorySubscriptionBus()
    offered = manifest.load_offer(settings)
    found = tool_specs(offered)
    server = YardServer(
        manifest.NAME,
        title=manifest.TITLE,
        description=manifest.DESCRIPTION,
        instructions=manifest.instructions(offered, [spec.name for spec in found]),
        version=__version__,
        tools=build_tools(
            found,
            callers,
            pace=CallTimeouts(settings.mcp_patience, settings.mcp_defer_after),
            structured=offered.structured,
        ),
        extensions=[TasksExtension(callers, structured=offered.structured)],
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
    """Serve the client on stdin and stdout until it disconnects.

    `handover`: what `front` has read and answered before.
    """
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)  # stdout belongs to the protocol
    sdk_server.pop_token()  # it is for HTTP only, and must not reach commands that are run here
    callers = StdioCaller(agent=agent, list=list, tasks_dir=tasks_dir)
    server = build(callers, config.load_settings())

    async def serve() -> None:
        try:
            await server.run_handed_over(handover or Handover(b"", frozenset()), tell_arrivals=callers.use_arrivals)
        finally:
            await callers.close()

    with telemetry.export_traces():
        anyio.run(serve)
