"""Jobs seen as tasks of the A2A protocol: origin, index, transcript, message log, status.

Everything is read from disk at each request. `handler` uses this module.

Origin: the job record states which caller asked, with which message and for which skill. It is written in
one step with the job, so that no second file is needed to find a task again. A record never changes its
origin, so the index reads each record once.

Transcript: assistant text becomes text parts, everything else data parts. Unless the skill states otherwise,
callers see that a tool was used but not its input, which may contain anything of this machine. The prompt is
left out: it is the caller's own, and hooks may have added to it.

Message log: messages to a task after its first are in `<job>/a2a.jsonl`, one line per step:

    {"id": …, "text": …, "at": …, "asked": …, "question": …}      about to be delivered
    {"id": …, "done": true}                                       delivered; or "refused": could not be

A repeated message is delivered again only if the server was killed before delivery was recorded, and not if
the question it answered is gone.

Status:

    job waits for its turn                               submitted
    job runs                                             working; input-required with the question while it asks
    completed                                            completed
    stopped                                              canceled, with the proof that none of its processes runs
    failed, lost, timed out, memory or output limit      failed, with the reason
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from a2a.types.a2a_pb2 import (
    Artifact,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    Part,
    Role,
    Task,
    TaskState,
    TaskStatus,
)
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
from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.struct_pb2 import Value
from google.protobuf.timestamp_pb2 import Timestamp

from taskyard.agents.agent.kind import Agent
from taskyard.agents.engines.engine import assistant_text
from taskyard.core import files
from taskyard.core.files import open_plain
from taskyard.core.system import now_ms
from taskyard.core.values import NamedTuple as RecordsNamedTuple
from taskyard.core.values import as_list, as_object, as_text
from taskyard.errors import NotFound, TaskyardError, UsageError
from taskyard.jobs import query
from taskyard.jobs.exit_record import read_own_json
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.kind import LaunchSpec
from taskyard.jobs.model import Job, JobStatus, is_job_id
from taskyard.jobs.output import Output
from taskyard.jobs.remote import a2a

#: Key of the origin in the facts of a job.
ORIGIN_KEY = "a2a"


class TaskOrigin(RecordsNamedTuple):
    """The caller, message and skill that a job was started for."""

    caller: str
    message: str  #: id of the first message; the same id again starts nothing
    context: str
    skill: str
    transcript: bool = False  #: whether the caller sees the input of tools


def parse_origin(facts: Mapping[str, object]) -> TaskOrigin | None:
    """Return the origin in the facts of a job; None if no A2A caller started it."""
    found = as_object(facts.get(ORIGIN_KEY))
    if found is None:
        return None
    caller, message, context, skill = (as_text(found.get(name)) for name in TaskOrigin._fields[:4])
    if not (caller and message and context and skill):
        return None
    return TaskOrigin(caller, message, context, skill, found.get("transcript") is True)


class SkillJob(RecordsNamedTuple):
    """An agent job started for an A2A caller; see `taskyard.jobs.kind.Spec`."""

    agent: Agent
    origin: TaskOrigin

    @property
    def type(self) -> str:
        """The job kind: that of the agent."""
        return self.agent.type

    @property
    def letter(self) -> str:
        """Prefix of the job's id."""
        return self.agent.letter

    def wanted(self) -> LaunchSpec:
        """Return the agent's launch spec with the origin; its end is reported to the caller, not to a model here."""
        wanted = self.agent.wanted()
        return wanted._replace(
            is_silent=True, asks_out_of_band=True, facts={**wanted.facts, ORIGIN_KEY: self.origin._asdict()}
        )


class TaskIndex:
    """The A2A tasks of this user on this host, including those that another server started."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._known: dict[str, TaskOrigin | None] = {}
        self._door = threading.Lock()

    def look(self) -> dict[str, TaskOrigin]:
        """Return every current task by job id."""
        try:
            names = set(filter(is_job_id, os.listdir(f"{self._home}/jobs")))
        except FileNotFoundError:
            names = set[str]()
        with self._door:
            for gone in self._known.keys() - names:
                del self._known[gone]
            for name in names - self._known.keys():
                self._known[name] = self._read(name)
            return {name: origin for name, origin in self._known.items() if origin is not None}

    def origin(self, job_id: str) -> TaskOrigin | None:
        """Return the origin of a job; None if it is not an A2A task or is gone."""
        return self._read(job_id) if is_job_id(job_id) else None

    def begun(self, caller: str, message: str) -> str | None:
        """Return the job that a message started, if any."""
        found = self.look().items()
        return next((job for job, origin in found if (origin.caller, origin.message) == (caller, message)), None)

    def _read(self, job_id: str) -> TaskOrigin | None:
        record = read_own_json(JobPaths(self._home, job_id).record) or {}
        return parse_origin(as_object(record.get("facts")) or {})


#: Bytes of a transcript returned at once.
PAGE_BYTES = 1_000_000

#: Line types whose text callers see; assistant text is passed on as it is.
_TEXT_TYPES = ("question", "answer", "user")


class TranscriptPage(NamedTuple):
    """A section of a transcript."""

    parts: list[Part]
    offset: int
    next: int  #: offset at which to continue
    more: bool = False  #: more is available now


def read_page(output: Output, offset: int, *, whole: bool) -> TranscriptPage:
    """Return the complete lines from `offset` on; `whole`: with tool input and every other field."""
    part = output.read(offset, PAGE_BYTES)
    text, is_full = part.text, len(part.text) >= PAGE_BYTES
    end = text.rfind(b"\n") + 1
    if not end and is_full:  # an oversized line; its remainder is not JSON and is skipped
        return TranscriptPage(
            [_data_part({"type": "omitted", "bytes": len(text)})], offset, part.next_offset, more=True
        )
    parts = [each for line in text[:end].splitlines() for each in line_parts(line, whole=whole)]
    return TranscriptPage(parts, offset, part.offset + end, more=is_full)


def read_last_page(output: Output, *, whole: bool) -> TranscriptPage:
    """Return the end of a transcript; all of it, if it is short."""
    return read_page(output, max(output.end() - PAGE_BYTES + 1, 0), whole=whole)


def line_parts(line: bytes, *, whole: bool) -> list[Part]:
    """Return what callers see of a line."""
    try:
        found = as_object(json.loads(line))
    except (ValueError, RecursionError):
        found = None
    if found is None or found.get("type") == "prompt":
        return []
    text = assistant_text(found)
    parts = [Part(text=text if text.endswith("\n") else f"{text}\n")] if text else []
    is_plain_speech = found.keys() <= {"type", "text", "at"} and found.get("type") == "assistant"
    if whole:
        return parts if is_plain_speech else [_data_part(found)]
    return [*parts, *(_data_part(each) for each in _summarize_line(found))]


def _summarize_line(line: Mapping[str, object]) -> list[dict[str, object]]:
    """Return the data of a line beside assistant text, without input and output of tools."""
    kind = line.get("type")
    if kind == "tool_use":
        return [{"type": "tool_use", "name": as_text(line.get("name"))}]
    if kind in _TEXT_TYPES:
        return [{"type": kind, "text": as_text(line.get("text"))}]
    content = as_list((as_object(line.get("message")) or {}).get("content")) or []
    blocks = [as_object(raw) or {} for raw in content] if kind == "assistant" else []
    return [
        {"type": "tool_use", "name": as_text(each.get("name"))} for each in blocks if each.get("type") == "tool_use"
    ]


def _data_part(value: Mapping[str, object]) -> Part:
    try:
        return Part(data=ParseDict(dict(value), Value()))
    except (ParseError, ValueError):
        return Part(
            data=ParseDict({"type": "omitted", "bytes": 0}, Value())
        )  # a number or a nesting depth that Value cannot store


#: Messages to one task, and characters of each kept for its history.
MAX_MESSAGES, MAX_TEXT_CHARS = 500, 10_000

_MAX_LOG_BYTES = MAX_MESSAGES * MAX_TEXT_CHARS * 8


class TaskMessage(RecordsNamedTuple):
    """One message to a task."""

    id: str
    text: str
    at: int  #: epoch ms
    asked: int = 0  #: when the question it answers was asked (epoch ms); 0: it answers none
    question: str = ""
    is_done: bool = False  #: it was delivered


class MessageLog:
    """Log of the messages to one task."""

    def __init__(self, folder: JobPaths) -> None:
        self._path = f"{folder.path}/a2a.jsonl"

    def read(self) -> dict[str, TaskMessage]:
        """Return the messages by id, oldest first, without refused ones."""
        found: dict[str, TaskMessage] = {}
        for line in (files.read(self._path, most=_MAX_LOG_BYTES) or b"").splitlines():
            _apply_entry(found, line)
        return found

    def begin(self, letter: TaskMessage) -> None:
        """Record that a message is about to be delivered.

        Raises:
            UsageError: The task already had `MAX_MESSAGES` messages.
        """
        if len(self.read()) >= MAX_MESSAGES:
            raise UsageError(f"A task takes {MAX_MESSAGES} messages, and this one has had them.")
        self._append(
            {**letter._asdict(), "text": letter.text[:MAX_TEXT_CHARS], "question": letter.question[:MAX_TEXT_CHARS]}
        )

    def done(self, message_id: str) -> None:
        """Record that the message was delivered."""
        self._append({"id": message_id, "done": True})

    def refused(self, message_id: str) -> None:
        """Record that the message could not be delivered: it counts as never sent."""
        self._append({"id": message_id, "refused": True})

    def _append(self, entry: dict[str, object]) -> None:
        try:
            fd = open_plain(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        except OSError as error:
            raise files.storage_error(self._path, error) from error
        try:
            files.write_all(
                fd, f"\n{json.dumps(entry)}\n".encode()
            )  # the leading newline ends a partial line of a killed writer
        finally:
            os.close(fd)


def new_message(message_id: str, text: str, *, asked: int, question: str) -> TaskMessage:
    """Return a message with the current time."""
    return TaskMessage(message_id, text, now_ms(), asked, question)


def _apply_entry(found: dict[str, TaskMessage], line: bytes) -> None:
    try:
        entry = as_object(json.loads(line)) if line.strip() else None
    except ValueError:
        return  # a partial line of a killed writer
    match entry or {}:
        case {"id": str(message_id), "refused": True}:
            found.pop(message_id, None)
        case {"id": str(message_id), "done": True} if message_id in found:
            found[message_id] = found[message_id]._replace(is_done=True)
        case {"id": str(message_id), "text": str(text), "at": int(at), "asked": int(asked), "question": str(question)}:
            found[message_id] = TaskMessage(message_id, text, at, asked, question)
        case _:
            pass


FINAL_STATES = frozenset({TaskState.TASK_STATE_COMPLETED, TaskState.TASK_STATE_FAILED, TaskState.TASK_STATE_CANCELED})


def task_status(job: Job, context: str, letters: Iterable[TaskMessage] = ()) -> TaskStatus:
    """Return the task status; an answered question no longer counts, even before the agent has read the answer."""
    if job.is_final:
        return _make_status(job, context, _final_state(job), job.end_time or 0, _failure_text(job), "end")
    asked = asked_at(job)
    if asked and not any(letter.is_done and letter.asked == asked for letter in letters):
        question = as_text(job.facts.get("question")) or "It needs input."
        return _make_status(job, context, TaskState.TASK_STATE_INPUT_REQUIRED, asked, question, f"asked-{asked}")
    is_waiting = job.status is JobStatus.PENDING
    state = TaskState.TASK_STATE_SUBMITTED if is_waiting else TaskState.TASK_STATE_WORKING
    return _make_status(job, context, state, job.start_time, "", "")


def asked_at(job: Job) -> int:
    """Return when the pending question of a job was asked, in epoch ms; 0 if there is none."""
    asked = job.facts.get("askedAt")
    return asked if job.needs_input and isinstance(asked, int) else 0


def is_settled(status: TaskStatus) -> bool:
    """Return whether a waiting caller has its answer: the task is over or asks a question."""
    return status.state in FINAL_STATES or status.state == TaskState.TASK_STATE_INPUT_REQUIRED


def make_message(job: Job, context: str, name: str, text: str, *, role: Role = Role.ROLE_AGENT) -> Message:
    """Build a message of a task."""
    return Message(message_id=name, context_id=context, task_id=job.id, role=role, parts=[Part(text=text)])


def to_timestamp(epoch_ms: int) -> Timestamp:
    """Convert epoch ms to a protobuf timestamp."""
    stamp = Timestamp()
    stamp.FromMilliseconds(epoch_ms)
    return stamp


def _final_state(job: Job) -> TaskState:
    if job.status is JobStatus.COMPLETED:
        return TaskState.TASK_STATE_COMPLETED
    was_stopped = job.end is not None and job.end.cause == "stopped"
    return TaskState.TASK_STATE_CANCELED if was_stopped else TaskState.TASK_STATE_FAILED


_CANNOT_START = " cannot be started: "

#: A path of this machine: absolute, or relative to a home directory.
_LOCAL_PATH = re.compile(r"(?<![\w:/.])~?/[^\s'\"`:;,()]+")

_REASONS = {
    "timeout": "It exceeded its time limit.",
    "output_cap": "It exceeded its output limit.",
    "oom": "It ran out of memory.",
}


def _failure_text(job: Job) -> str:
    """Return why the job did not complete."""
    end = job.end
    if end is None or job.status is JobStatus.COMPLETED:
        return ""
    if end.cause == "stopped":
        return "It was stopped." if end.proof == "proved" else f"It was stopped ({end.proof or 'no proof'})."
    ending = f"It ended with exit code {end.exit_code}." if end.exit_code is not None else f"It ended by {end.cause}."
    return _redact_error(end.error or "") or _REASONS.get(end.cause) or ending


def _redact_error(error: str) -> str:
    """Remove programs and paths of this machine from an error."""
    program, cannot, why = error.partition(_CANNOT_START)
    return _LOCAL_PATH.sub("…", f"The agent{cannot}{why}" if cannot else program)


def _make_status(job: Job, context: str, state: TaskState, when: int, text: str, name: str) -> TaskStatus:
    said = make_message(job, context, f"{job.id}-{name}", text) if text else None
    return TaskStatus(state=state, message=said, timestamp=to_timestamp(when))


class TaskRecord(NamedTuple):
    """A task as read from its job's files."""

    job: Job
    origin: TaskOrigin
    letters: dict[str, TaskMessage]

    @property
    def status(self) -> TaskStatus:
        """The current A2A status."""
        return task_status(self.job, self.origin.context, self.letters.values())


class CallerTasks:
    """The tasks of all callers; each caller sees only its own."""

    def __init__(self, home: str) -> None:
        self.home = home
        self.book = TaskIndex(home)

    def find(self, caller: str, task_id: str) -> TaskRecord:
        """Return a task of a caller.

        Raises:
            TaskNotFoundError: The caller has no task of this id; one of another caller counts as none.
        """
        origin = self.book.origin(task_id)
        if origin is None or origin.caller != caller:
            raise TaskNotFoundError
        try:
            job = query.read_job(self.home, task_id)
        except NotFound:
            raise TaskNotFoundError from None
        return TaskRecord(job, origin, MessageLog(self.folder(task_id)).read())

    def folder(self, task_id: str) -> JobPaths:
        """Return the paths of the task's job."""
        return JobPaths(self.home, task_id)

    def transcript(self, known: TaskRecord, offset: int | None = None) -> TranscriptPage:
        """Return the transcript from an offset on, or its end."""
        output = Output(self.folder(known.job.id))
        whole = known.origin.transcript
        return read_last_page(output, whole=whole) if offset is None else read_page(output, offset, whole=whole)

    def task(self, known: TaskRecord, said: TranscriptPage | None, *, by_offset: bool = False) -> Task:
        """Build the protocol's task; without `said`, also without artifacts.

        Args:
            known: The task on disk.
            said: The section of the transcript to include.
            by_offset: The caller follows the transcript by offset and needs the next one even without new output.
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
        """Return a page of a caller's tasks, latest status change first.

        Raises:
            InvalidParamsError: There is no such page.
        """
        validate_history_length(wish)
        size = wish.page_size if wish.HasField("page_size") else DEFAULT_LIST_TASKS_PAGE_SIZE
        validate_page_size(size)
        found = sorted(self._filter_tasks(caller, wish), key=lambda known: _list_cursor(known).sort_key(), reverse=True)
        left = [known for known in found if _is_after_cursor(known, wish.page_token)]
        page = left[:size]
        tasks = [self.task(known, self.transcript(known) if wish.include_artifacts else None) for known in page]
        return ListTasksResponse(
            tasks=[apply_history_length(task, wish) for task in tasks],
            next_page_token=encode_list_tasks_cursor(_list_cursor(page[-1])) if len(left) > size else "",
            page_size=size,
            total_size=len(found),
        )

    def _filter_tasks(self, caller: str, wish: ListTasksRequest) -> Iterable[TaskRecord]:
        since_ms = wish.status_timestamp_after.ToMilliseconds() if wish.HasField("status_timestamp_after") else None
        for job_id, origin in self.book.look().items():
            if origin.caller != caller or (wish.context_id and origin.context != wish.context_id):
                continue
            try:
                known = self.find(caller, job_id)
            except (TaskNotFoundError, TaskyardError):
                continue  # deleted meanwhile or damaged: skip it, list the others
            status = known.status
            if wish.status and status.state != wish.status:
                continue
            if since_ms is None or status.timestamp.ToMilliseconds() > since_ms:
                yield known


def transcript_artifact(said: TranscriptPage) -> Artifact:
    """Build the artifact with the transcript section."""
    where = {a2a.OFFSET_KEY: said.offset, a2a.NEXT_KEY: said.next, a2a.MORE_KEY: said.more}
    parts = said.parts or [Part(text="")]  # the protocol requires a part
    return Artifact(artifact_id=a2a.TRANSCRIPT, name=a2a.TRANSCRIPT, parts=parts, metadata=where)


def result_artifacts(job: Job) -> list[Artifact]:
    """Return the artifact with the final result, if there is one."""
    result = as_text(job.facts.get("result")) if job.is_final else ""
    return [Artifact(artifact_id=a2a.RESULT, name=a2a.RESULT, parts=[Part(text=result)])] if result else []


def _history(known: TaskRecord) -> list[Message]:
    """Return the messages to the agent and its questions, in order."""
    job, context = known.job, known.origin.context
    first = as_text(job.facts.get("prompt"))
    history = [make_message(job, context, known.origin.message, first, role=Role.ROLE_USER)]
    for letter in known.letters.values():
        if letter.question:
            history.append(make_message(job, context, f"{job.id}-asked-{letter.asked}", letter.question))
        history.append(make_message(job, context, letter.id, letter.text, role=Role.ROLE_USER))
    return history


def _metadata(known: TaskRecord) -> dict[str, object]:
    """Return the skill, usage and cost, and the exit facts that a caller may see."""
    job, end = known.job, known.job.end
    told: dict[str, object] = {"skill": known.origin.skill}
    told |= {name: _camel_case(job.facts[name]) for name in ("usage", "costUsd") if name in job.facts}
    if end is not None:
        told |= {"cause": end.cause, "proof": end.proof, "durationMs": end.duration_ms}
    return {name: value for name, value in told.items() if value not in (None, "")}


def _camel_case(value: object) -> object:
    """Convert the keys of a value to camelCase, as in `inputTokens`."""
    found = as_object(value)
    if found is None:
        return value
    return {name[:1] + name.title().replace("_", "")[1:]: _camel_case(each) for name, each in found.items()}


def _list_cursor(known: TaskRecord) -> ListTasksCursor:
    return ListTasksCursor(known.status.timestamp.ToNanoseconds(), known.job.id)


def _is_after_cursor(known: TaskRecord, token: str) -> bool:
    if not token:
        return True
    cursor = decode_list_tasks_cursor(token)
    if cursor is None:
        raise InvalidParamsError("There is no such page.")
    return _list_cursor(known).sort_key() < cursor.sort_key()
