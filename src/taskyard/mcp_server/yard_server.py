"""The SDK's server, with a door for what it serves itself in another way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
from mcp.server.context import HandlerResult
from mcp.server.mcpserver import MCPServer
from mcp.server.stdio import stdio_server
from pydantic import BaseModel

from taskyard.mcp_server.callers import Request
from taskyard.mcp_server.front import Handover
from taskyard.mcp_server.replay import Unsaid, claimed_stdin
from taskyard.mcp_server.unreadable import Answering

P = TypeVar("P", bound=BaseModel)


class YardServer(MCPServer[dict[str, object]]):
    """The server of a yard."""

    def serve(self, method: str, takes: type[P], act: Callable[[Request, P], Awaitable[HandlerResult]]) -> None:
        """Answer `method` with `act`, in the place of what the SDK does."""
        self._lowlevel_server.add_request_handler(method, takes, act)

    async def run_stdio_async(self) -> None:
        """Serve over stdin and stdout; a line that cannot be read is answered too."""
        await self.run_handed_over(Handover(b"", frozenset()))

    async def run_handed_over(self, handover: Handover) -> None:
        """Serve over stdin and stdout, from where `front` has come."""
        with claimed_stdin(handover.first) as stdin:
            async with stdio_server(anyio.wrap_file(stdin)) as (read, write):
                options = self._lowlevel_server.create_initialization_options()
                unsaid = Unsaid(write, handover)
                await self._lowlevel_server.run(Answering(read, unsaid), unsaid, options)
