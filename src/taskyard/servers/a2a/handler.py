"""Request handler of the A2A server: the protocol's methods over jobs on disk.

`A2aHandler` is called by the SDK's routes. `MessageReceiver` delivers messages: the first one of a task
starts a job, each further one is sent to that job. Delivery is idempotent by message id: the job record
names the first message, `tasks.MessageLog` the later ones. `AsyncTasks` reads in threads and streams a task:
first its current state, then every addition until it ends; it wakes on inotify events and rereads every
`_POLL_INTERVAL` seconds as a fallback.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from functools import partial
from typing import NoReturn, TypeVar

import anyio
import anyio.to_thread
from a2a.extensions.common import HTTP_EXTENSION_HEADER
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.types.a2a_pb2 import (
    AgentCard,
    Artifact,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    Part,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskArtifactUpdateEvent,
    TaskPushNotificationConfig,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from a2a.utils.errors import (
    A2AError,
    ContentTypeNotSupportedError,
    ExtendedAgentCardNotConfiguredError,
    InternalError,
    InvalidParamsError,
    InvalidRequestError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    UnsupportedOperationError,
)
from a2a.utils.proto_utils import validate_proto_required_fields
from a2a.utils.task import apply_history_length, validate_history_length
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message as AnyMessage
from google.protobuf.struct_pb2 import Struct

from taskyard.agents.agent.kind import LONGEST_PROMPT
from taskyard.core.values import as_text, check_text, nearest
from taskyard.errors import Busy, Conflict, JobEnded, TaskyardError, UsageError
from taskyard.jobs import control
from taskyard.jobs.agent_reports import encode_message
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.remote import a2a
from taskyard.jobs.remote.a2a import RETRYABLE, normalize_json
from taskyard.servers.a2a.skills import Skill
from taskyard.servers.a2a.tasks import (
    FINAL_STATES,
    CallerTasks,
    MessageLog,
    SkillJob,
    TaskOrigin,
    TaskRecord,
    asked_at,
    is_settled,
    new_message,
    result_artifacts,
    transcript_artifact,
)
from taskyard.storage.async_change_feed import subscribe_async
from taskyard.storage.locks import RangeLock

_inbox_log = logging.getLogger("taskyard.a2a")

#: Characters of an id chosen by a client.
_MAX_ID_CHARS = 256

#: Seconds to wait for the lock of another server of this user that is starting a task.
_LOCK_TIMEOUT = 15.0


class MessageReceiver:
    """Delivers messages of callers: starts a job or sends to one."""

    def __init__(self, jobs: Jobs, tasks: CallerTasks, skills: Mapping[str, Skill], *, most: int) -> None:
        """Limit each caller to `most` running tasks."""
        self._jobs = jobs
        self._tasks = tasks
        self._skills = skills
        self._most = most

    def take(self, caller: str, wish: SendMessageRequest) -> str:
        """Deliver a message; return the id of its task, which it may have started.

        Raises:
            A2AError: The message is refused, for the reason in the error.
        """
        message = wish.message
        if message.role != Role.ROLE_USER:
            raise InvalidParamsError("A message to an agent has the role of a user.")
        check_text("message id", message.message_id, longest=_MAX_ID_CHARS, allow_empty=False)
        check_text("context id", message.context_id, longest=_MAX_ID_CHARS)
        text = message_text(message.parts)
        if message.task_id:
            return self._told(caller, message, text)
        with RangeLock(f"{self._tasks.home}/a2a.lock") as lock:
            lock.take(0, timeout=_LOCK_TIMEOUT, what="the tasks of A2A callers")
            begun = self._tasks.book.begun(caller, message.message_id)
            return begun or self._begin(caller, wish, text)

    def _begin(self, caller: str, wish: SendMessageRequest, text: str) -> str:
        skill = self._skill(wish)
        self._check_task_limit(caller)
        message = wish.message
        context = message.context_id or uuid.uuid4().hex
        origin = TaskOrigin(caller, message.message_id, context, skill.name, skill.transcript)
        try:
            return self._jobs.start(SkillJob(skill.agent(text), origin)).id
        except UsageError as error:  # an error of the skill's configuration, which the caller may not see
            _inbox_log.warning("The skill %s could not be started: %s", skill.name, error)
            raise InternalError("This skill cannot work on the message; the server's log has the reason.") from error

    def _skill(self, wish: SendMessageRequest) -> Skill:
        """Return the requested skill: named in the metadata, if there are several."""
        named = _metadata_text(wish.message.metadata, "skill") or _metadata_text(wish.metadata, "skill")
        if not named and len(self._skills) == 1:
            return next(iter(self._skills.values()))
        if named not in self._skills:
            known = ", ".join(nearest(named, self._skills) or self._skills)
            raise InvalidParamsError(f"The message's metadata must name a skill: `skill` is one of {known}.")
        return self._skills[named]

    def _check_task_limit(self, caller: str) -> None:
        living = {job.id for job in self._jobs.list()}
        count = sum(origin.caller == caller and job in living for job, origin in self._tasks.book.look().items())
        if count >= self._most:
            said = f"{count} tasks go on, and no more may at once. Try again when one is over."
            raise InvalidRequestError(said, data={RETRYABLE: "true"})

    def _told(self, caller: str, message: Message, text: str) -> str:
        known = self._tasks.find(caller, message.task_id)
        if message.context_id and message.context_id != known.origin.context:
            raise InvalidParamsError("That task belongs to another context.")
        if message.message_id == known.origin.message or self._was_delivered(known, message.message_id):
            return known.job.id
        letters = MessageLog(self._tasks.folder(known.job.id))
        asked, question = asked_at(known.job), as_text(known.job.facts.get("question"))
        letters.begin(new_message(message.message_id, text, asked=asked, question=question if asked else ""))
        try:
            self._jobs.answer(known.job.id, encode_message(caller, text))
        except TaskyardError as error:
            letters.refused(message.message_id)
            if isinstance(error, JobEnded):
                raise UnsupportedOperationError(f"The task is over: it has {error.status}.") from error
            if isinstance(error, Conflict):
                raise UnsupportedOperationError("The task takes no messages now.") from error
            raise
        letters.done(message.message_id)
        return known.job.id

    def _was_delivered(self, known: TaskRecord, message_id: str) -> bool:
        """Return whether a message was delivered; after a crash, an answer was if its question is gone."""
        letter = known.letters.get(message_id)
        if letter is None:
            return False
        return letter.is_done or (letter.asked > 0 and letter.asked != asked_at(known.job))


def message_text(parts: Iterable[Part]) -> str:
    """Return text and data parts as text; files are refused, and URLs are never fetched.

    Raises:
        ContentTypeNotSupportedError: A part is neither text nor data.
        BadText: The text is empty, too long, or cannot be stored.
    """
    told: list[str] = []
    for part in parts:
        if part.HasField("text"):
            told.append(part.text)
        elif part.HasField("data"):
            told.append(json.dumps(normalize_json(MessageToDict(part.data)), ensure_ascii=False))
        else:
            raise ContentTypeNotSupportedError("Text and data are accepted, files and URLs are not.")
    return check_text("message", "\n".join(told), longest=LONGEST_PROMPT, allow_empty=False)


def _metadata_text(metadata: Struct, name: str) -> str:
    return as_text(MessageToDict(metadata).get(name))


T = TypeVar("T")

Update = Task | TaskStatusUpdateEvent | TaskArtifactUpdateEvent

#: Seconds in which output of an agent is collected into one update.
_BATCH_DELAY = 0.03

#: Seconds after which a task is read again without an inotify event.
_POLL_INTERVAL = 5.0

#: Threads that read the disk, and threads that wait for an action to finish.
_READ_THREADS, _ACTION_THREADS = 8, 16


class AsyncTasks:
    """Runs reads and actions in bounded thread pools, so that the event loop never waits for the disk."""

    def __init__(self, tasks: CallerTasks) -> None:
        self.tasks = tasks
        self._looks = anyio.CapacityLimiter(_READ_THREADS)
        self._acts = anyio.CapacityLimiter(_ACTION_THREADS)

    async def look(self, what: Callable[[], T]) -> T:
        """Run a read in a thread."""
        return await anyio.to_thread.run_sync(what, abandon_on_cancel=True, limiter=self._looks)

    async def act(self, what: Callable[[], T]) -> T:
        """Run an action in a thread; it completes even if the request is cancelled."""
        return await anyio.to_thread.run_sync(what, abandon_on_cancel=True, limiter=self._acts)

    async def find(self, caller: str, task_id: str) -> TaskRecord:
        """Return a task of a caller."""
        return await self.look(partial(self.tasks.find, caller, task_id))

    async def task(self, known: TaskRecord, offset: int | None = None) -> Task:
        """Return a task as the protocol's type."""

        def read() -> Task:
            return self.tasks.task(known, self.tasks.transcript(known, offset), by_offset=offset is not None)

        return await self.look(read)

    async def settled(self, caller: str, task_id: str, *, seconds: float) -> TaskRecord:
        """Wait until a task is over or asks a question, at most `seconds`; return its state."""
        with anyio.move_on_after(seconds), subscribe_async(self.tasks.folder(task_id).path) as folder:
            while True:
                folder.look()
                known = await self.find(caller, task_id)
                if is_settled(known.status):
                    return known
                await folder.news(_POLL_INTERVAL)
                await anyio.sleep(_BATCH_DELAY)
        return await self.find(caller, task_id)

    async def stream(self, caller: str, task_id: str, *, past_questions: bool) -> AsyncGenerator[Update]:
        """Yield every update of a task until it is over or, unless `past_questions`, asks a question."""
        with subscribe_async(self.tasks.folder(task_id).path) as folder:
            folder.look()
            known = await self.find(caller, task_id)
            said = await self.look(partial(self.tasks.transcript, known))
            status, has_said = known.status, bool(said.parts)
            yield self.tasks.task(known, said)
            while not _is_stream_done(status, past_questions=past_questions):
                await folder.news(_POLL_INTERVAL)
                await anyio.sleep(_BATCH_DELAY)
                folder.look()
                known = await self.find(
                    caller, task_id
                )  # status before transcript: the last output is on disk when the job is final
                while True:
                    said = await self.look(partial(self.tasks.transcript, known, said.next))
                    if said.parts:
                        yield _artifact_event(known, transcript_artifact(said), append=has_said)
                        has_said = True
                    if not said.more:
                        break
                now = known.status
                if now != status:
                    for artifact in result_artifacts(known.job):
                        yield _artifact_event(known, artifact)
                    yield TaskStatusUpdateEvent(task_id=task_id, context_id=known.origin.context, status=now)
                status = now


def _artifact_event(known: TaskRecord, artifact: Artifact, *, append: bool = False) -> TaskArtifactUpdateEvent:
    return TaskArtifactUpdateEvent(
        task_id=known.job.id, context_id=known.origin.context, artifact=artifact, append=append
    )


def _is_stream_done(status: TaskStatus, *, past_questions: bool) -> bool:
    asks = status.state == TaskState.TASK_STATE_INPUT_REQUIRED and not past_questions
    return status.state in FINAL_STATES or asks


#: Seconds a message waits for its answer; a client that wants to wait longer polls or streams.
MAX_WAIT = 600.0

#: Concurrent streams of all callers, and of one.
MAX_STREAMS, MAX_CALLER_STREAMS = 100, 25

_handler_log = logging.getLogger("taskyard.a2a")


class A2aHandler(RequestHandler):
    """The SDK's request handler, for one server."""

    def __init__(self, desk: AsyncTasks, inbox: MessageReceiver) -> None:
        self._desk = desk
        self._inbox = inbox
        self._streams: dict[str, int] = {}

    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> Task:
        """Start a task or send to one; respond when it is over or asks, or at once if requested."""
        with _map_errors(params):
            task_id = await self._taken(params, context)
            caller = context.user.user_name
            waits = 0.0 if params.configuration.return_immediately else MAX_WAIT
            known = await self._desk.settled(caller, task_id, seconds=waits)
            return apply_history_length(await self._desk.task(known), params.configuration)

    async def on_message_send_stream(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Update]:
        """Start a task or send to one, and stream its updates."""
        with _map_errors(params), self._streaming(context):
            task_id = await self._taken(params, context)
            updates = self._desk.stream(context.user.user_name, task_id, past_questions=False)
            async for update in updates:
                yield apply_history_length(update, params.configuration) if isinstance(update, Task) else update

    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Update]:
        """Stream the updates of a task from now on, also past its questions."""
        with _map_errors(params), self._streaming(context):
            known = await self._desk.find(context.user.user_name, params.id)
            if known.status.state in FINAL_STATES:
                raise UnsupportedOperationError("The task is over: nothing more comes.")
            async for update in self._desk.stream(context.user.user_name, params.id, past_questions=True):
                yield update

    async def on_get_task(self, params: GetTaskRequest, context: ServerCallContext) -> Task:
        """Return a task with its transcript; from an offset on, for clients of our extension."""
        with _map_errors(params):
            validate_history_length(params)
            known = await self._desk.find(context.user.user_name, params.id)
            return apply_history_length(await self._desk.task(known, _requested_offset(context)), params)

    async def on_list_tasks(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        """List the caller's tasks."""
        with _map_errors(params):
            return await self._desk.look(partial(self._desk.tasks.listed, context.user.user_name, params))

    async def on_cancel_task(self, params: CancelTaskRequest, context: ServerCallContext) -> Task:
        """Stop a task and every process it started; respond when none of them runs any more."""
        with _map_errors(params):
            caller = context.user.user_name
            known = await self._desk.find(caller, params.id)
            if known.job.is_final:
                raise TaskNotCancelableError("The task is over.")
            stop = partial(control.stop, self._desk.tasks.home, [known.job.id], by=f"a2a caller {caller}")
            [stopped] = await self._desk.act(stop)
            if not stopped.job.is_final:
                raise TaskNotCancelableError("It was asked to stop, and has not ended yet.")
            return await self._desk.task(await self._desk.find(caller, params.id))

    async def on_create_task_push_notification_config(
        self, params: TaskPushNotificationConfig, context: ServerCallContext
    ) -> NoReturn:
        """Refuse: the server never calls URLs that clients name."""
        raise PushNotificationNotSupportedError

    async def on_get_task_push_notification_config(
        self, params: GetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> NoReturn:
        """Refuse: push notifications are not supported."""
        raise PushNotificationNotSupportedError

    async def on_list_task_push_notification_configs(
        self, params: ListTaskPushNotificationConfigsRequest, context: ServerCallContext
    ) -> ListTaskPushNotificationConfigsResponse:
        """Refuse: push notifications are not supported."""
        raise PushNotificationNotSupportedError

    async def on_delete_task_push_notification_config(
        self, params: DeleteTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> None:
        """Refuse: push notifications are not supported."""
        raise PushNotificationNotSupportedError

    async def on_get_extended_agent_card(
        self, params: GetExtendedAgentCardRequest, context: ServerCallContext
    ) -> AgentCard:
        """Refuse: there is only the public card."""
        raise ExtendedAgentCardNotConfiguredError

    async def _taken(self, params: SendMessageRequest, context: ServerCallContext) -> str:
        if params.configuration.HasField("task_push_notification_config"):
            raise PushNotificationNotSupportedError
        validate_history_length(params.configuration)
        return await self._desk.act(partial(self._inbox.take, context.user.user_name, params))

    @contextmanager
    def _streaming(self, context: ServerCallContext) -> Generator[None]:
        caller = context.user.user_name
        own = self._streams.get(caller, 0)
        if own >= MAX_CALLER_STREAMS or sum(self._streams.values()) >= MAX_STREAMS:
            raise InvalidRequestError("Too many streams are open. Try again later.", data={RETRYABLE: "true"})
        self._streams[caller] = own + 1
        try:
            yield
        finally:
            self._streams[caller] -= 1
            if not self._streams[caller]:
                del self._streams[caller]


def _requested_offset(context: ServerCallContext) -> int | None:
    """Return the requested transcript offset; None for the end of the transcript, as without the extension."""
    headers = context.state.get("headers", {})
    given = str(headers.get(a2a.OFFSET_HEADER.lower(), ""))
    wants = a2a.EXTENSION_URI in str(headers.get(HTTP_EXTENSION_HEADER.lower(), ""))
    return int(given) if wants and given.isascii() and given.isdigit() and len(given) < 16 else None


@contextmanager
def _map_errors(params: AnyMessage) -> Generator[None]:
    """Check a request and map exceptions to A2A errors; they contain no details of this machine."""
    validate_proto_required_fields(params)
    if getattr(params, "tenant", ""):
        raise InvalidParamsError("There are no tenants here.")
    try:
        yield
    except A2AError:
        raise
    except UsageError as error:
        raise InvalidParamsError(str(error)) from error
    except Busy as error:
        raise InternalError("The server is busy with another request. Try again.", data={RETRYABLE: "true"}) from error
    except TaskyardError as error:
        _handler_log.warning("A request could not be carried out: %s", error)
        raise InternalError("The request failed; the server's log has the reason.") from error
    except Exception as error:
        _handler_log.exception("A request could not be answered.")
        raise InternalError from error
