"""The tool of workflows: Workflow."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from taskyard.errors import UsageError
from taskyard.kinds.workflow import Workflow
from taskyard.mcp_server import agent_arguments, foreground, schemas, words
from taskyard.mcp_server.answers import Answer
from taskyard.mcp_server.callers import Caller
from taskyard.mcp_server.calls import Call, Spec
from taskyard.mcp_server.for_task import for_task
from taskyard.mcp_server.listing import job_facts
from taskyard.mcp_server.results import workflow_data
from taskyard.mcp_server.told import when_it_ends
from taskyard.runtime.background import check_background
from taskyard.runtime.model import Job


async def _workflow(call: Call, given: agent_arguments.Workflow) -> Answer:
    spec = await asyncio.to_thread(_spec, call.caller, given)
    if given.timeout is not None:
        spec = spec._replace(timeout=given.timeout / 1000)
    if isinstance(given, agent_arguments.BackgroundWorkflow) and given.run_in_background:
        check_background()
        return _runs(call, await call.caller.jobs.start(for_task(call, spec)))
    return await foreground.run(call, spec, lambda job: _runs(call, job, waited=True))


def _spec(caller: Caller, given: agent_arguments.Workflow) -> Workflow:
    """What is asked for: exactly one of a file, a definition and a run to go on with."""
    if sum(each is not None for each in (given.path, given.definition, given.resume_from)) != 1:
        raise UsageError("A workflow is a file (path), a definition, or a run to go on with (resume_from): give one.")
    yard = caller.tasks_yard
    if given.resume_from is not None:
        return Workflow.resume(given.resume_from, failed=given.failed, home=yard.home)
    if given.path is not None:
        spec = Workflow.read(os.path.join(caller.folder or "", given.path), env=given.env)
    else:
        spec = Workflow(given.definition or {}, given.env or {})
    return spec._replace(cwd=caller.folder, task_list=yard.tasks.name, tasks_dir=yard.tasks_dir)


def _runs(call: Call, job: Job, *, waited: bool = False) -> Answer:
    """What is answered while it runs: its id, where its log is, and how its end is told."""
    first = "It takes longer: the workflow goes on in the background" if waited else "Workflow running in background"
    text = f"{first} with ID: {job.id}. What happens is being written to: {job.output_file}. {when_it_ends(call)}"
    if job.waits_for:
        text += f" It waits for {job.waits_for}."
    return Answer(text, job_facts(job) | workflow_data(job))


def workflow_tools(*, in_foreground: bool) -> tuple[Spec[Any], ...]:
    """The tool; `in_foreground`: nothing may run in the background, and it cannot be asked for that."""
    takes = agent_arguments.Workflow if in_foreground else agent_arguments.BackgroundWorkflow
    about = words.WORKFLOW_IN_FOREGROUND if in_foreground else words.WORKFLOW
    return (Spec("Workflow", about, takes, _workflow, schemas.WORKFLOW, destroys=True, title="Run a workflow"),)
