"""
An A2A agent as a place that runs agents: a session is a task there.

    submitted, working                  running
    input-required, auth-required       needs input, with what it asks
    completed, failed, canceled         completed, failed, stopped
    rejected                            failed
    a task that is not known            lost

A session is begun once: the id of our work is the message's and the context's. What was sent before is looked for by
the context, where the agent lists its tasks; our own server also knows a message that it got. An agent that does
neither may begin again if we die between sending and hearing. Answers that are no task but a message are over at once,
and are kept in the id of the session itself, as nobody there remembers them.
"""

from __future__ import annotations

import base64
import binascii
import json
import uuid

from a2a.client.client import Client, ClientCallContext, ClientConfig
from a2a.client.client_factory import ClientFactory
from a2a.extensions.common import HTTP_EXTENSION_HEADER
from a2a.types.a2a_pb2 import (
    AgentCard,
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    StreamResponse,
    Task,
)
from a2a.utils.errors import MethodNotFoundError, TaskNotCancelableError, TaskNotFoundError, UnsupportedOperationError

from taskyard.errors import BadValue, RemoteRefused
from taskyard.remote.a2a import card as cards
from taskyard.remote.a2a import since
from taskyard.remote.a2a.cursor import MOST_MESSAGES, parsed
from taskyard.remote.a2a.faults import Faults
from taskyard.remote.a2a.home import Home, checked, origin_of
from taskyard.remote.a2a.lines import ended, text_of
from taskyard.remote.a2a.seeing import Seeing, final
from taskyard.remote.backend import RemoteState, Seen, Work
from taskyard.remote.remotes import Remote
from taskyard.shapes import as_text

#: Seconds an answer may take: agents that answer with a message do so when they are done.
PATIENCE = 120.0

#: What a session begins with that was over at once.
_AT_ONCE = "="

#: Characters of such an answer that are kept: the id stands in records that are read often.
_LONGEST_AT_ONCE = 50_000

_LONGEST_ID = 256

#: How agents say that they do not list their tasks.
_LISTS_NOTHING = (MethodNotFoundError, UnsupportedOperationError, NotImplementedError, RemoteRefused)


class A2aBackend:
    """Speaks to one agent."""

    def __init__(self, remote: Remote, token: str = "") -> None:
        where = f"remotes.{remote.name}"
        self._name = remote.name
        self._url = checked(f"{where}.url", remote.url)
        allowed = {self._url}
        if (interface := remote.options.get("interface")) is not None:
            allowed.add(checked(f"{where}.interface", interface))
        seconds = remote.options.get("timeout", PATIENCE)
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 1 <= seconds <= 3600:
            raise BadValue(f"{where}.timeout", seconds, "seconds, from 1 to 3,600")
        skill = remote.options.get("skill", "")
        if not isinstance(skill, str):
            raise BadValue(f"{where}.skill", skill, "text")
        self._skill = skill
        self._origins = frozenset(map(origin_of, allowed))
        self._token = token
        self._seconds = float(seconds)
        self._faults = Faults(remote.name, token)
        self._home: Home | None = None
        self._known: tuple[AgentCard, Client] | None = None

    async def submit(self, work: Work) -> str:
        """Begin the work, unless it has begun; `work.command` means nothing here."""
        card, client = await self._client()
        if not _is_ours(card) and (found := await self._begun(client, work.id)) is not None:
            return found
        metadata = {**work.metadata, **({"skill": self._skill} if self._skill else {})}
        message = _message(work.prompt, message_id=work.id, context_id=work.id, metadata=metadata)
        with self._faults.told():
            return self._session(await _sent(client, message))

    async def poll(self, session: str, cursor: str = "") -> Seen:
        """How it stands, and what it said since."""
        if session.startswith(_AT_ONCE):
            return _said_at_once(session, cursor)
        card, client = await self._client()
        seeing = Seeing(parsed(cursor), is_ours=_is_ours(card))
        with self._faults.told(asks=True):
            while True:
                try:
                    task = await self._task(client, session, seeing)
                except TaskNotFoundError:
                    return Seen(RemoteState.LOST, cursor, error=f"{self._name} knows nothing of task {session}")
                if not seeing.hear(task):
                    return seeing.seen(task)

    async def send(self, session: str, text: str) -> None:
        """Tell it something."""
        if session.startswith(_AT_ONCE):
            raise self._faults.refused("it is over")
        _, client = await self._client()
        with self._faults.told():
            await _sent(client, _message(text, message_id=uuid.uuid4().hex, task_id=session))

    async def stop(self, session: str) -> None:
        """End it, if it goes on."""
        if session.startswith(_AT_ONCE):
            return
        _, client = await self._client()
        with self._faults.told(asks=True):
            try:
                await client.cancel_task(CancelTaskRequest(id=session))
            except TaskNotFoundError:
                return
            except TaskNotCancelableError as error:
                task = await client.get_task(GetTaskRequest(id=session, history_length=0))
                if not final(task):
                    raise self._faults.refused(f"task {session} cannot be cancelled") from error

    async def probe(self) -> str:
        """Who is there, by its card, and whether it takes the token."""
        card, client = await self._client()
        with self._faults.told(asks=True):
            try:
                await client.get_task(GetTaskRequest(id=uuid.uuid4().hex, history_length=0))
            except TaskNotFoundError:
                pass  # which only those hear who may ask
        return cards.in_a_line(card)

    async def close(self) -> None:
        """Let go of connections."""
        home, self._home, self._known = self._home, None, None
        if home is not None:
            await home.aclose()

    async def _client(self) -> tuple[AgentCard, Client]:
        if self._known is None:
            self._home = self._home or Home(self._name, self._origins, self._token, seconds=self._seconds)
            with self._faults.told():
                card = cards.ways_in(self._name, await cards.fetch(self._home, self._url), self._origins)
                how = ClientConfig(
                    streaming=False, polling=True, httpx_client=self._home, supported_protocol_bindings=cards.BINDINGS
                )
                self._known = card, ClientFactory(how).create(card)
        return self._known

    async def _begun(self, client: Client, work: str) -> str | None:
        """The session of work that was sent before, as far as the agent tells."""
        wish = ListTasksRequest(context_id=work, history_length=0, include_artifacts=False)
        try:
            with self._faults.told():
                found = await client.list_tasks(wish)
        except _LISTS_NOTHING:
            return None
        ours = [task for task in found.tasks if task.context_id == work]  # one that lists others listens to no filter
        return self._checked(ours[-1].id) if ours else None

    async def _task(self, client: Client, session: str, seeing: Seeing) -> Task:
        more = None
        if seeing.is_ours:
            headers = {HTTP_EXTENSION_HEADER: since.URI, since.HEADER: str(seeing.offset)}
            more = ClientCallContext(service_parameters=headers)
        return await client.get_task(GetTaskRequest(id=session, history_length=MOST_MESSAGES), context=more)

    def _session(self, answer: StreamResponse) -> str:
        if answer.HasField("task"):
            return self._checked(answer.task.id)
        said = text_of(answer.message.parts)
        if len(said) > _LONGEST_AT_ONCE:
            said = f"{said[:_LONGEST_AT_ONCE]}\n({len(said) - _LONGEST_AT_ONCE:,} characters more were left out)"
        return _AT_ONCE + base64.urlsafe_b64encode(json.dumps({"text": said}).encode()).decode()

    def _checked(self, task: str) -> str:
        """A task's id: it becomes part of addresses."""
        if not 0 < len(task) <= _LONGEST_ID or not task.isprintable() or set(task) & set("/?#%\\") or task[0] in "=.":
            raise self._faults.refused("the id of its task cannot be one")
        return task


def _is_ours(card: AgentCard) -> bool:
    return any(extension.uri == since.URI for extension in card.capabilities.extensions)


def _message(text: str, *, metadata: dict[str, str] | None = None, **ids: str) -> Message:
    return Message(role=Role.ROLE_USER, parts=[Part(text=text)], metadata=metadata, **ids)


async def _sent(client: Client, message: Message) -> StreamResponse:
    async for answer in client.send_message(SendMessageRequest(message=message)):
        return answer
    raise ValueError("no answer")


def _said_at_once(session: str, cursor: str) -> Seen:
    try:
        said = as_text(json.loads(base64.urlsafe_b64decode(session[1:]))["text"])
    except (ValueError, TypeError, KeyError, binascii.Error):
        return Seen(RemoteState.LOST, cursor, error="the id of its session cannot be read")
    return Seen(RemoteState.COMPLETED, "all", "" if cursor else ended(said), result=said)
