"""Lists and the output of jobs, to be read as resources: bounded as for a model, and never outside of what is ours."""

from __future__ import annotations

import asyncio
from typing import Any

from mcp.server.mcpserver.context import Context
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, ListResourcesResult, PaginatedRequestParams, Resource

from taskyard.app import Yard
from taskyard.errors import TaskyardError
from taskyard.mcp_server import places, resource_list
from taskyard.mcp_server.answers import protocol_error
from taskyard.mcp_server.callers import Callers, Request
from taskyard.mcp_server.listing import page
from taskyard.mcp_server.resource_list import PAGE, TEXT, list_resource, output_resources
from taskyard.mcp_server.yard_server import YardServer
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.output import Output
from taskyard.tasklist.model import Listing


class Resources:
    """What can be read."""

    def __init__(self, callers: Callers) -> None:
        """`callers`: everyone who may ask."""
        self._callers = callers

    def offer(self, server: YardServer) -> None:
        """Have `server` show them."""
        server.resource(
            resource_list.LIST,
            name="list",
            title="A task list",
            description="The tasks of a list, as TaskList shows them.",
            mime_type=TEXT,
        )(self.read_list)
        server.resource(
            resource_list.OUTPUT,
            name="output",
            title="A job's output",
            description="The end of what a background job printed, as much as a model is given.",
            mime_type=TEXT,
        )(self.read_output)
        server.serve("resources/list", PaginatedRequestParams, self._list)

    async def read_list(self, list: str, ctx: Context[Any, Any]) -> str:
        """A list as text."""
        caller = await self._callers.find(ctx.request_context)
        try:
            listing = await caller.on_list(lambda yard: _listing(yard, list))
        except TaskyardError as error:
            raise protocol_error(error) from error
        answer = page(listing, status=None, owner=None, after=None)
        return "\n".join((answer.text, *answer.hints))

    async def read_output(self, id: str, ctx: Context[Any, Any]) -> str:
        """The end of an output."""
        caller = await self._callers.find(ctx.request_context)
        try:
            job = await asyncio.to_thread(caller.jobs.get, id)
            found = await asyncio.to_thread(Output(JobFolder(caller.yard.home, job.id)).for_model)
        except TaskyardError as error:
            raise protocol_error(error) from error
        return found.text

    async def _list(self, ctx: Request, params: PaginatedRequestParams) -> ListResourcesResult:
        """The current list, and the output of every job that lives."""
        caller = await self._callers.find(ctx)
        jobs = await asyncio.to_thread(caller.jobs.list)
        after = _parsed(params.cursor) if params.cursor is not None else None
        left = [job for job in jobs if after is None or (job.start_time, job.id) > after]
        shown = left[:PAGE]
        first = [] if after is not None else [list_resource(caller.tasks_yard.tasks.name)]
        more = f"{shown[-1].start_time}.{shown[-1].id}" if len(left) > len(shown) else None
        return ListResourcesResult(resources=_resources([*first, *output_resources(shown)]), next_cursor=more)


def _listing(yard: Yard, name: str) -> Listing:
    if name == yard.tasks.name:
        return yard.tasks.list()
    with yard.beside(places.known_list(yard, name)) as other:
        return other.tasks.list()


def _resources(found: list[dict[str, str]]) -> list[Resource]:
    return [Resource.model_validate(one) for one in found]


def _parsed(cursor: str) -> tuple[int, str]:
    """Where a page ended."""
    began, _, job_id = cursor.partition(".")
    if not (began.isascii() and began.isdigit() and len(began) <= 15):
        raise MCPError(INVALID_PARAMS, "The cursor is none that a list of resources gave.")
    return int(began), job_id
