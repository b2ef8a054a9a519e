"""A task as it goes on: first as it is, then what is added to it, to its end. The kernel tells; nobody polls."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from functools import partial
from typing import TypeVar

import anyio
import anyio.to_thread
from a2a.types.a2a_pb2 import Artifact, Task, TaskArtifactUpdateEvent, TaskState, TaskStatus, TaskStatusUpdateEvent

from taskyard.a2a_server.states import FINAL, is_settled
from taskyard.a2a_server.tasks import Known, Tasks, result_artifacts, transcript_artifact
from taskyard.disk.async_follow import followed

T = TypeVar("T")

Update = Task | TaskStatusUpdateEvent | TaskArtifactUpdateEvent

#: Seconds in which what an agent says gathers.
_GATHER = 0.03

#: Seconds after which a task is looked at although nothing was heard of it.
_LOOK = 5.0

#: Threads that read the disk, and those that wait for an act to be done.
_LOOKS, _ACTS = 8, 16


class Desk:
    """Reads and acts in threads, bounded: the event loop waits for no disk."""

    def __init__(self, tasks: Tasks) -> None:
        self.tasks = tasks
        self._looks = anyio.CapacityLimiter(_LOOKS)
        self._acts = anyio.CapacityLimiter(_ACTS)

    async def look(self, what: Callable[[], T]) -> T:
        """Read something."""
        return await anyio.to_thread.run_sync(what, abandon_on_cancel=True, limiter=self._looks)

    async def act(self, what: Callable[[], T]) -> T:
        """Do something, to its end whoever still waits for it."""
        return await anyio.to_thread.run_sync(what, abandon_on_cancel=True, limiter=self._acts)

    async def find(self, caller: str, task_id: str) -> Known:
        """A task of a caller."""
        return await self.look(partial(self.tasks.find, caller, task_id))

    async def task(self, known: Known, offset: int | None = None) -> Task:
        """A task as the protocol has it."""

        def read() -> Task:
            return self.tasks.task(known, self.tasks.transcript(known, offset), by_offset=offset is not None)

        return await self.look(read)

    async def settled(self, caller: str, task_id: str, *, seconds: float) -> Known:
        """A task once it is over or asks something, or as it is after so many seconds."""
        with anyio.move_on_after(seconds), followed(self.tasks.folder(task_id).path) as folder:
            while True:
                folder.look()
                known = await self.find(caller, task_id)
                if is_settled(known.status):
                    return known
                await folder.news(_LOOK)
                await anyio.sleep(_GATHER)
        return await self.find(caller, task_id)

    async def stream(self, caller: str, task_id: str, *, past_questions: bool) -> AsyncGenerator[Update]:
        """Everything that becomes of a task; until it is over, or, unless told otherwise, asks something."""
        with followed(self.tasks.folder(task_id).path) as folder:
            folder.look()
            known = await self.find(caller, task_id)
            said = await self.look(partial(self.tasks.transcript, known))
            status, has_said = known.status, bool(said.parts)
            yield self.tasks.task(known, said)
            while not _is_done(status, past_questions=past_questions):
                await folder.news(_LOOK)
                await anyio.sleep(_GATHER)
                folder.look()
                known = await self.find(caller, task_id)  # first: what it said last is there when it is over
                while True:
                    said = await self.look(partial(self.tasks.transcript, known, said.next))
                    if said.parts:
                        yield _update(known, transcript_artifact(said), append=has_said)
                        has_said = True
                    if not said.more:
                        break
                now = known.status
                if now != status:
                    for artifact in result_artifacts(known.job):
                        yield _update(known, artifact)
                    yield TaskStatusUpdateEvent(task_id=task_id, context_id=known.origin.context, status=now)
                status = now


def _update(known: Known, artifact: Artifact, *, append: bool = False) -> TaskArtifactUpdateEvent:
    return TaskArtifactUpdateEvent(
        task_id=known.job.id, context_id=known.origin.context, artifact=artifact, append=append
    )


def _is_done(status: TaskStatus, *, past_questions: bool) -> bool:
    asks = status.state == TaskState.TASK_STATE_INPUT_REQUIRED and not past_questions
    return status.state in FINAL or asks
