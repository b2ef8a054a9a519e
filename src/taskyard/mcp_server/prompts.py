"""Prompts that people choose: have a goal planned as tasks, have finished work checked by somebody else."""

from __future__ import annotations

from typing import Annotated, Any

from mcp.server.mcpserver.context import Context
from mcp.server.mcpserver.prompts import Prompt
from pydantic import Field

from taskyard.app import Yard
from taskyard.errors import TaskyardError, UsageError, shown
from taskyard.mcp_server.answers import protocol_error
from taskyard.mcp_server.callers import Callers
from taskyard.tasklist.model import Task
from taskyard.view import model_text

#: Finished tasks that are named; whoever checks more begins with TaskList.
_MOST = 30

_PLAN = """\
Plan this as tasks on the shared list, before you do any of it:

{goal}

- Look at TaskList first: build on what is there, and add nothing twice.
- One task for each step with a result that can be seen. Subjects in the imperative; descriptions that another agent \
can act on without asking: what, where, and how to tell that it is done.
- Say with blockedBy what must be completed first, and only that: what does not depend on each other can be done at \
the same time, by several agents.
- Where a command can prove a task done, give it as acceptance.
- End with a task that has an independent verifier check the result, blocked by all the others.

Then show the plan: TaskList, and in a sentence what can be started now. If the goal leaves something open that would \
change the plan, ask before you create tasks. If it takes three steps or fewer, say so and do without a list."""

_VERIFY = """\
Have this checked by an independent verifier: {what}

{tasks}

- Whoever did the work does not check it. Start a {verifier} agent if you can start agents; it gets the tasks and \
where the work is, not your opinion of it. If you cannot, begin anew: trust nothing that was said, look at \
what is there.
- The verifier reads each task in full (TaskGet), runs what can be run (tests, builds, the program itself), and tries \
to break it: inputs at the edge, errors, what the description asks for and nobody mentioned.
- The verdict is pass, fail or partial, for each task, with the commands that were run and what they printed. What was \
only read is not called tested.
- What fails is reopened with TaskUpdate (status pending), or becomes a task of its own with how to reproduce it. \
Nothing is repaired in passing."""


class OurPrompt(Prompt):
    """A prompt that says which argument is missing or unknown: to the SDK that is a failure of ours."""

    async def render(self, arguments: dict[str, Any] | None, context: Context[Any, Any]) -> Any:
        """The prompt, with what was given."""
        known, given = self.arguments or [], arguments or {}
        names = ", ".join(each.name for each in known)
        for each in known:
            if each.required and not str(given.get(each.name, "")).strip():
                raise protocol_error(UsageError(f"The prompt {self.name} needs {each.name!r}: {each.description}"))
        if strange := sorted(set(given).difference(each.name for each in known)):
            raise protocol_error(UsageError(f"The prompt {self.name} has no {shown(strange[0])}; it has {names}."))
        return await super().render(arguments, context)


class Prompts:
    """What people can choose."""

    def __init__(self, callers: Callers) -> None:
        """`callers`: everyone who may ask."""
        self._callers = callers

    def all(self) -> list[Prompt]:
        """Each prompt there is."""
        return [
            OurPrompt.from_function(
                self.plan,
                "plan",
                title="Plan a goal",
                description="Break a goal down into tasks that depend on each other.",
            ),
            OurPrompt.from_function(
                self.verify,
                "verify",
                title="Have finished work verified",
                description="Have an independent verifier check a task, or all that are completed.",
            ),
        ]

    async def plan(self, goal: Annotated[str, Field(description="What is to be reached.")]) -> str:
        """A goal as tasks."""
        return _PLAN.format(goal=goal.strip())

    async def verify(
        self,
        ctx: Context[Any, Any],
        task_id: Annotated[str, Field(description="The task to check; all completed ones if not given.")] = "",
    ) -> str:
        """Finished work, to be checked."""
        caller = await self._callers.find(ctx.request_context)
        try:
            return await caller.on_list(lambda yard: _verify(yard, task_id.strip().removeprefix("#")))
        except TaskyardError as error:
            raise protocol_error(error) from error


def _verify(yard: Yard, task_id: str) -> str:
    verifier = yard.settings.verifier
    listing = yard.tasks.list()
    if task_id:
        task = yard.tasks.get(task_id)
        tasks = model_text.details(task, {other.id: other for other in listing})
        what = f"task #{task.id}" if task.is_done else f"task #{task.id}, which is not completed yet"
        return _VERIFY.format(what=what, tasks=tasks, verifier=verifier)
    done: list[Task] = [task for task in listing if task.is_done]
    if not done:
        return "No task on the list is completed yet: there is nothing to verify. Look at TaskList for what is open."
    shown = done[-_MOST:]
    lines = model_text.listing(shown, among={task.id: task for task in listing})
    if len(shown) < len(done):
        lines += f'\n… and {len(done) - len(shown)} completed earlier: TaskList {{"status": "completed"}}'
    return _VERIFY.format(what="the completed tasks of this list", tasks=lines, verifier=verifier)
