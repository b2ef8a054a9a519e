"""The tool of monitors: Monitor."""

from __future__ import annotations

from typing import Any

from taskyard.kinds.monitor import Monitor
from taskyard.mcp_server import arguments, schemas, words
from taskyard.mcp_server.answers import Answer
from taskyard.mcp_server.calls import Call, Spec
from taskyard.mcp_server.listing import job_facts
from taskyard.mcp_server.told import when_it_ends


async def _monitor(call: Call, given: arguments.Monitor) -> Answer:
    spec = Monitor(
        given.command,
        given.mcp_command,
        given.mcp_url,
        given.token_env,
        given.resources or (),
        given.logs,
        given.filter,
        silence=None if given.silence is None else given.silence / 1000,
        timeout=None if given.timeout_ms is None else given.timeout_ms / 1000,
        reconnect=given.reconnect,
        cwd=call.caller.folder,
        name=given.description or None,
        tool_use_id=call.tool_use_id,
    )
    job = await call.caller.jobs.start(spec)
    text = (
        f"Monitor running with ID: {job.id}. Everything it hears is written to: {job.output_file}. "
        f"{when_it_ends(call, 'What it sees, and its end,')}"
    )
    return Answer(text, job_facts(job))


MONITOR_TOOLS: tuple[Spec[Any], ...] = (
    Spec("Monitor", words.MONITOR, arguments.Monitor, _monitor, schemas.JOB, destroys=True, title="Watch something"),
)
