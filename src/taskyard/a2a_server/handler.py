"""The protocol's verbs, over jobs on disk: what the SDK's routes call."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from functools import partial
from typing import NoReturn

from a2a.extensions.common import HTTP_EXTENSION_HEADER
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.types.a2a_pb2 import (
    AgentCard,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
    ListTasksRequest,
    ListTasksResponse,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
)
from a2a.utils.errors import (
    A2AError,
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
from google.protobuf.message import Message as AnyMessage

from taskyard.a2a_server.inbox import Inbox
from taskyard.a2a_server.states import FINAL
from taskyard.a2a_server.streams import Desk, Update
from taskyard.errors import Busy, TaskyardError, UsageError
from taskyard.remote.a2a import since
from taskyard.remote.a2a.faults import RETRYABLE
from taskyard.runtime import steering

#: Seconds a message waits for its answer; whoever wants to wait longer asks again, or listens to the stream.
LONGEST_WAIT = 600.0

#: Streams at once, of all callers and of one.
MOST_STREAMS, CALLER_STREAMS = 100, 25

_log = logging.getLogger("taskyard.a2a")


class Handler(RequestHandler):
    """Answers for one server."""

    def __init__(self, desk: Desk, inbox: Inbox) -> None:
        self._desk = desk
        self._inbox = inbox
        self._streams: dict[str, int] = {}

    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> Task:
        """Begin a task, or tell one something; the answer comes when it is over or asks, unless it is to come now."""
        with _told(params):
            task_id = await self._taken(params, context)
            caller = context.user.user_name
            waits = 0.0 if params.configuration.return_immediately else LONGEST_WAIT
            known = await self._desk.settled(caller, task_id, seconds=waits)
            return apply_history_length(await self._desk.task(known), params.configuration)

    async def on_message_send_stream(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Update]:
        """The same, with everything that becomes of it on the way."""
        with _told(params), self._streaming(context):
            task_id = await self._taken(params, context)
            updates = self._desk.stream(context.user.user_name, task_id, past_questions=False)
            async for update in updates:
                yield apply_history_length(update, params.configuration) if isinstance(update, Task) else update

    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Update]:
        """Everything that becomes of a task from now on, also past its questions."""
        with _told(params), self._streaming(context):
            known = await self._desk.find(context.user.user_name, params.id)
            if known.status.state in FINAL:
                raise UnsupportedOperationError("The task is over: nothing more comes.")
            async for update in self._desk.stream(context.user.user_name, params.id, past_questions=True):
                yield update

    async def on_get_task(self, params: GetTaskRequest, context: ServerCallContext) -> Task:
        """How a task stands, with what was said; from an offset on, for those who know our extension."""
        with _told(params):
            validate_history_length(params)
            known = await self._desk.find(context.user.user_name, params.id)
            return apply_history_length(await self._desk.task(known, _offset(context)), params)

    async def on_list_tasks(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        """The tasks of whoever asks."""
        with _told(params):
            return await self._desk.look(partial(self._desk.tasks.listed, context.user.user_name, params))

    async def on_cancel_task(self, params: CancelTaskRequest, context: ServerCallContext) -> Task:
        """End a task with everything it started; the answer comes when nothing of it runs any more."""
        with _told(params):
            caller = context.user.user_name
            known = await self._desk.find(caller, params.id)
            if known.job.is_final:
                raise TaskNotCancelableError("The task is over.")
            stop = partial(steering.stop, self._desk.tasks.home, [known.job.id], by=f"a2a caller {caller}")
            [stopped] = await self._desk.act(stop)
            if not stopped.job.is_final:
                raise TaskNotCancelableError("It was told to end, and has not ended yet.")
            return await self._desk.task(await self._desk.find(caller, params.id))

    async def on_create_task_push_notification_config(
        self, params: TaskPushNotificationConfig, context: ServerCallContext
    ) -> NoReturn:
        """Not offered: nothing here calls addresses that others name."""
        raise PushNotificationNotSupportedError

    async def on_get_task_push_notification_config(
        self, params: GetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> NoReturn:
        """Not offered."""
        raise PushNotificationNotSupportedError

    async def on_list_task_push_notification_configs(
        self, params: ListTaskPushNotificationConfigsRequest, context: ServerCallContext
    ) -> ListTaskPushNotificationConfigsResponse:
        """Not offered."""
        raise PushNotificationNotSupportedError

    async def on_delete_task_push_notification_config(
        self, params: DeleteTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> None:
        """Not offered."""
        raise PushNotificationNotSupportedError

    async def on_get_extended_agent_card(
        self, params: GetExtendedAgentCardRequest, context: ServerCallContext
    ) -> AgentCard:
        """There is no other card than the public one."""
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
        if own >= CALLER_STREAMS or sum(self._streams.values()) >= MOST_STREAMS:
            raise InvalidRequestError("Too many streams are open. Try again later.", data={RETRYABLE: "true"})
        self._streams[caller] = own + 1
        try:
            yield
        finally:
            self._streams[caller] -= 1
            if not self._streams[caller]:
                del self._streams[caller]


def _offset(context: ServerCallContext) -> int | None:
    """Where a request wants the transcript from; None: the end of it, as for everybody."""
    headers = context.state.get("headers", {})
    given = str(headers.get(since.HEADER.lower(), ""))
    wants = since.URI in str(headers.get(HTTP_EXTENSION_HEADER.lower(), ""))
    return int(given) if wants and given.isascii() and given.isdigit() and len(given) < 16 else None


@contextmanager
def _told(params: AnyMessage) -> Generator[None]:
    """Check what was sent, and say what goes wrong in the protocol's words; nothing of this machine's is in them."""
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
        raise InternalError("Another is served just now. Try again.", data={RETRYABLE: "true"}) from error
    except TaskyardError as error:
        _log.warning("A request could not be carried out: %s", error)
        raise InternalError("It could not be carried out here; whoever serves can read why.") from error
    except Exception as error:
        _log.exception("A request could not be answered.")
        raise InternalError from error
