"""The row about the MCP server: what a call of a real tool costs, against an empty tool on the same SDK."""

from __future__ import annotations

import statistics
import sys
import time

import anyio
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

from bench.folders import scratch
from bench.processes import environment
from bench.rounds import Sample
from bench.task_list import Ground

#: A server that does nothing: what the SDK, the pipe and two processes cost.
_EMPTY = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("empty", log_level="WARNING")
@server.tool()
async def nothing() -> str:
    return "nothing"
server.run()
"""

_CALLS = 200


def ours(ground: Ground) -> Sample:
    """The median call of TaskList on a small list, in ms."""
    with scratch(ground.folder) as home:
        env = environment(home)
        words = ["-m", "taskyard", "mcp", "--list", "bench", "--agent", "bench"]
        return _measured(StdioServerParameters(command=sys.executable, args=words, env=env), "TaskList", ground)


def empty(ground: Ground) -> Sample:
    """The median call of a tool that does nothing, in ms."""
    return _measured(StdioServerParameters(command=sys.executable, args=["-c", _EMPTY]), "nothing", ground)


def _measured(server: StdioServerParameters, tool: str, ground: Ground) -> Sample:
    async def measure() -> list[float]:
        took: list[float] = []
        async with Client(server) as client:
            if tool == "TaskList":
                for number in range(10):
                    await client.call_tool("TaskCreate", {"subject": f"Task {number}"})
            for _ in range(ground.size(_CALLS, 20)):
                began = time.monotonic()
                await client.call_tool(tool, {})
                took.append(time.monotonic() - began)
        return took

    return Sample(statistics.median(anyio.run(measure)) * 1000)
