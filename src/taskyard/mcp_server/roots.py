"""
The folder that a client over HTTP works in: the first of its roots, if it offers any.

    with a session (2025-11-25)     the server sends `roots/list` on the stream of the client's first tool call
    without (2026-07-28)            that call is answered with `input_required`, and its retry brings the roots

A root counts if it is a folder of this machine; else the client works in the folder of the server.
"""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import unquote, urlsplit

from mcp.server.mcpserver.context import Context
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import InputRequiredResult, ListRootsRequest, ListRootsResult
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError

from taskyard.mcp_server.callers import Caller, Request

#: Seconds a client has for its answer: roots are known to it, and its call waits.
_PATIENCE = 5.0

#: Calls without a session that are answered with the question, also if they come at once; a client that never
#: answers is served after that.
_MOST_ASKED = 3

_KEY = "taskyard/roots"


async def settle(caller: Caller, context: Context[Any, Any]) -> InputRequiredResult | None:
    """Find out which folder `caller` works in, once; an answer for its call if the client must be asked by it."""
    if caller.is_settled:
        return None
    request = context.request_context
    capabilities = request.session.client_capabilities
    if capabilities is None or capabilities.roots is None:
        return None
    if request.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:
        async with caller.settling:
            if not caller.is_settled:
                caller.work_in(first_folder(await _listed(request)))
        return None
    found = (context.input_responses or {}).get(_KEY)
    if found is None and caller.roots_asked < _MOST_ASKED:
        caller.roots_asked += 1
        return InputRequiredResult(input_requests={_KEY: ListRootsRequest()})
    caller.work_in(first_folder(found) if isinstance(found, ListRootsResult) else None)
    return None


async def _listed(request: Request) -> ListRootsResult | None:
    on_this_stream = ServerMessageMetadata(related_request_id=request.request_id)
    try:
        return await request.session.send_request(
            ListRootsRequest(), ListRootsResult, request_read_timeout_seconds=_PATIENCE, metadata=on_this_stream
        )
    except (MCPError, ValidationError):
        return None  # it refuses, or does not answer


def first_folder(listed: ListRootsResult | None) -> str | None:
    """The first root that is a folder of this machine."""
    for root in listed.roots if listed is not None else ():
        folder = _folder(str(root.uri))
        if folder is not None:
            return folder
    return None


def _folder(uri: str) -> str | None:
    try:
        scheme, host, path, *_ = urlsplit(uri)
        folder = unquote(path)
        is_here = scheme == "file" and host in ("", "localhost") and os.path.isabs(folder) and os.path.isdir(folder)
    except ValueError:
        return None
    return os.path.normpath(folder) if is_here else None
