"""Jobs as tasks of the protocol: read from disk, each time they are asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from a2a.types.a2a_pb2 import Artifact, ListTasksRequest, ListTasksResponse, Message, Part, Role, Task, TaskStatus
from a2a.utils.constants import DEFAULT_LIST_TASKS_PAGE_SIZE
from a2a.utils.errors import InvalidParamsError, TaskNotFoundError
from a2a.utils.task import (
    ListTasksCursor,
    apply_history_length,
    decode_list_tasks_cursor,
    encode_list_tasks_cursor,
    validate_history_length,
    validate_page_size,
)

from taskyard.a2a_server.book import Book
from taskyard.a2a_server.letters import Letter, Letters
from taskyard.a2a_server.origin import Origin
from taskyard.a2a_server.states import message, status_of
from taskyard.a2a_server.transcript import Told, latest, told
from taskyard.errors import NotFound, TaskyardError
from taskyard.remote.a2a import since
from taskyard.runtime import looking
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.model import Job
from taskyard.runtime.output import Output
from taskyard.shapes import as_object, as_text


class Known(NamedTuple):
    """A task, as its job's files tell."""

    job: Job
    origin: Origin
    letters: dict[str, Letter]

    @property
    def status(self) -> TaskStatus:
        """How it stands."""
        return status_of(self.job, self.origin.context, self.letters.values())


class Tasks:
    """The tasks of callers, each for its own eyes."""

    def __init__(self, home: str) -> None:
        self.home = home
        self.book = Book(home)

    def find(self, caller: str, task_id: str) -> Known:
        """A task of a caller.

        Raises:
            TaskNotFoundError: it has none of this id; one of somebody else's is none.
        """
        origin = self.book.origin(task_id)
        if origin is None or origin.caller != caller:
            raise TaskNotFoundError
        try:
            job = looking.look(self.home, task_id)
        except NotFound:
            raise TaskNotFoundError from None
        return Known(job, origin, Letters(self.folder(task_id)).read())

    def folder(self, task_id: str) -> JobFolder:
        """Where the job of a task lives."""
        return JobFolder(self.home, task_id)

    def transcript(self, known: Known, offset: int | None = None) -> Told:
        """What its agent said: from an offset on, or the last of it."""
        output = Output(self.folder(known.job.id))
        whole = known.origin.transcript
        return latest(output, whole=whole) if offset is None else told(output, offset, whole=whole)

    def task(self, known: Known, said: Told | None, *, by_offset: bool = False) -> Task:
        """A task as the protocol has it; without `said`, also without artifacts.

        `by_offset`: the caller follows the transcript by offsets, and needs the next one even if nothing was said.
        """
        artifacts = list[Artifact]() if said is None else result_artifacts(known.job)
        if said is not None and (said.parts or by_offset):
            artifacts.insert(0, transcript_artifact(said))
        return Task(
            id=known.job.id,
            context_id=known.origin.context,
            status=known.status,
            history=_history(known),
            artifacts=artifacts,
            metadata=_metadata(known),
        )

    def listed(self, caller: str, wish: ListTasksRequest) -> ListTasksResponse:
        """A page of a caller's tasks, the latest change first.

        Raises:
            InvalidParamsError: there is no such page.
        """
        validate_history_length(wish)
        size = wish.page_size if wish.HasField("page_size") else DEFAULT_LIST_TASKS_PAGE_SIZE
        validate_page_size(size)
        found = sorted(self._wished(caller, wish), key=lambda known: _place(known).sort_key(), reverse=True)
        left = [known for known in found if _is_behind(known, wish.page_token)]
        page = left[:size]
        tasks = [self.task(known, self.transcript(known) if wish.include_artifacts else None) for known in page]
        return ListTasksResponse(
            tasks=[apply_history_length(task, wish) for task in tasks],
            next_page_token=encode_list_tasks_cursor(_place(page[-1])) if len(left) > size else "",
            page_size=size,
            total_size=len(found),
        )

    def _wished(self, caller: str, wish: ListTasksRequest) -> Iterable[Known]:
        since_ms = wish.status_timestamp_after.ToMilliseconds() if wish.HasField("status_timestamp_after") else None
        for job_id, origin in self.book.look().items():
            if origin.caller != caller or (wish.context_id and origin.context != wish.context_id):
                continue
            try:
                known = self.find(caller, job_id)
            except (TaskNotFoundError, TaskyardError):
                continue  # collected meanwhile, or damaged: it hides no other
            status = known.status
            if wish.status and status.state != wish.status:
                continue
            if since_ms is None or status.timestamp.ToMilliseconds() > since_ms:
                yield known


def transcript_artifact(said: Told) -> Artifact:
    """What an agent said and did."""
    where = {since.OFFSET: said.offset, since.NEXT: said.next, since.MORE: said.more}
    parts = said.parts or [Part(text="")]  # the protocol wants one
    return Artifact(artifact_id=since.TRANSCRIPT, name=since.TRANSCRIPT, parts=parts, metadata=where)


def result_artifacts(job: Job) -> list[Artifact]:
    """The final answer, if there is one."""
    result = as_text(job.facts.get("result")) if job.is_final else ""
    return [Artifact(artifact_id=since.RESULT, name=since.RESULT, parts=[Part(text=result)])] if result else []


def _history(known: Known) -> list[Message]:
    """What was said to the agent, and what it had asked."""
    job, context = known.job, known.origin.context
    first = as_text(job.facts.get("prompt"))
    history = [message(job, context, known.origin.message, first, role=Role.ROLE_USER)]
    for letter in known.letters.values():
        if letter.question:
            history.append(message(job, context, f"{job.id}-asked-{letter.asked}", letter.question))
        history.append(message(job, context, letter.id, letter.text, role=Role.ROLE_USER))
    return history


def _metadata(known: Known) -> dict[str, object]:
    """What callers may know beside: which skill, what it took, and what proves its end."""
    job, end = known.job, known.job.end
    told: dict[str, object] = {"skill": known.origin.skill}
    told |= {name: _camel(job.facts[name]) for name in ("usage", "costUsd") if name in job.facts}
    if end is not None:
        told |= {"cause": end.cause, "proof": end.proof, "durationMs": end.duration_ms}
    return {name: value for name, value in told.items() if value not in (None, "")}


def _camel(value: object) -> object:
    """A value with keys as the protocol has them: `inputTokens`."""
    found = as_object(value)
    if found is None:
        return value
    return {name[:1] + name.title().replace("_", "")[1:]: _camel(each) for name, each in found.items()}


def _place(known: Known) -> ListTasksCursor:
    return ListTasksCursor(known.status.timestamp.ToNanoseconds(), known.job.id)


def _is_behind(known: Known, token: str) -> bool:
    if not token:
        return True
    cursor = decode_list_tasks_cursor(token)
    if cursor is None:
        raise InvalidParamsError("There is no such page.")
    return _place(known).sort_key() < cursor.sort_key()
