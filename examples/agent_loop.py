"""
An agent loop on any model: a shared list, background jobs, notices of their ends, and reminders.

    python examples/agent_loop.py        runs offline, with a model that reads from a script

`model(messages)` is any function that answers with text and tool calls; swap in your provider's client.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import taskyard
from taskyard import model_context

Tools = Mapping[str, Callable[..., Any]]


def tools_of(yard: taskyard.AsyncYard) -> Tools:
    """What the model may do, and how."""

    async def bash(command: str) -> str:
        job = await yard.jobs.start(taskyard.Shell(command))
        return f"Running in the background as {job.id}; you will be told when it ends."

    async def output(task_id: str) -> str:
        return (await yard.jobs.output(task_id)).output

    return {
        "TaskCreate": lambda subject: f"Task #{yard.tasks.create(subject).id}",
        "TaskUpdate": lambda task_id, status: yard.tasks.update(task_id, status=status).status.value,
        "Bash": bash,
        "TaskOutput": output,
    }


async def run(yard: taskyard.AsyncYard, model: Callable[[list[Any]], Mapping[str, Any]], goal: str) -> list[Any]:
    """Talk to the model until it asks for nothing more and nothing runs; the whole conversation."""
    tools, outbox = tools_of(yard), yard.notices()
    messages: list[Any] = [{"role": "user", "content": goal + "\n\n" + model_context.guidance(tools)}]
    while True:
        messages = model_context.reminder(messages, yard.tasks.list(), tools=tools)
        answer = model(model_context.for_api(messages))
        messages.append({"role": "assistant", "content": answer["text"]})
        for call in answer["calls"]:
            try:
                done = tools[call["name"]](**call["arguments"])
                said = str(await done if asyncio.iscoroutine(done) else done)
            except taskyard.TaskyardError as error:
                said = f"Refused: {error}"  # the model reads what to do next
            messages.append({"role": "user", "content": f"{call['name']}: {said}"})
        if answer["calls"]:
            continue
        runs = any(job.agent_id == yard.agent for job in yard.jobs.list())  # first this: an end is told before it shows
        if not runs and not outbox.waiting():
            return messages
        await asyncio.to_thread(outbox.wait, 3600)  # nothing to do: the end of a job begins the next turn
        taken = outbox.take()
        messages += [notice.as_user_message() for notice in taken]
        outbox.ack(notice.id for notice in taken)  # now the conversation has them


def scripted(lines: list[str]) -> Callable[[list[Any]], Mapping[str, Any]]:
    """A model that answers one line after the other: JSON of its tool calls, or plain text."""
    waiting = iter(lines)

    def model(messages: list[Any]) -> Mapping[str, Any]:
        line = next(waiting, "Done.")
        return {"text": line, "calls": json.loads(line) if line.startswith("[") else []}

    return model


SCRIPT = [
    '[{"name": "TaskCreate", "arguments": {"subject": "Run the tests"}}]',
    '[{"name": "TaskUpdate", "arguments": {"task_id": "1", "status": "in_progress"}},'
    ' {"name": "Bash", "arguments": {"command": "sleep 0.2; echo 12 passed"}}]',
    "Waiting for the tests.",
    '[{"name": "TaskUpdate", "arguments": {"task_id": "1", "status": "completed"}}]',
    "All tests pass.",
]


async def main() -> None:
    """Run the script on a list of its own."""
    async with taskyard.open_async(list="agent-loop-example", agent="ada", store="memory:") as yard:
        for message in await run(yard, scripted(SCRIPT), "Run the tests and tell me how it went."):
            print(f"{message['role']:>9}: {message['content']}")


if __name__ == "__main__":
    asyncio.run(main())
