"""The A2A backend: run work on an agent service through Agent2Agent, with its official SDK.

A session is a task of the agent:

    submitted, working                  running
    input-required, auth-required       needs input, with the question
    completed, failed, canceled         completed, failed, stopped
    rejected                            failed
    unknown task                        lost

A session is started once: the id of our work is the id of the message and of the context. `submit` looks
for an earlier start by context, if the agent lists its tasks; our own server recognizes a repeated message
id. An agent that does neither may start the work twice if this process is killed between request and
response. A response that is a message, not a task, is complete at once; it is stored in the session id
itself, because the agent does not remember it.

Requests go only to the origins in config.toml (`url`, `interface`), because the token goes with each: an
agent card may name any host, and so may a redirect (not followed). A card must have an interface at one of
these origins. A response is bounded in bytes and in total time. Error texts never contain the token.

Messages and artifacts become lines, each part once: text as it is (streamed parts of an artifact joined
without a break), data as a line of JSON, a file as a line of JSON that describes it without its content.
The last partial line of a growing artifact is withheld until it is complete or the task is over.

The cursor is JSON text with which another process continues:

    said       digests of the latest messages that were returned
    pieces     for each artifact: the number of characters returned, and their digest
    offset     where our own server continues

Our own server has an extension (named in its card) for polls that return only new text: a request with the
extension and an offset gets the transcript from there. The metadata of the artifact states where it begins,
where to continue and whether more is available now.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import json
import uuid
from collections.abc import Collection, Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import httpx
from a2a.client.card_resolver import A2ACardResolver
from a2a.client.client import Client, ClientCallContext, ClientConfig
from a2a.client.client_factory import ClientFactory
from a2a.client.errors import A2AClientError, A2AClientTimeoutError
from a2a.extensions.common import HTTP_EXTENSION_HEADER
from a2a.types.a2a_pb2 import (
    AgentCard,
    Artifact,
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    StreamResponse,
    Task,
    TaskState,
)
from a2a.utils.constants import TransportProtocol
from a2a.utils.errors import (
    A2AError,
    InternalError,
    MethodNotFoundError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from google.protobuf.json_format import MessageToDict, MessageToJson, ParseError

from taskyard.core.text import escape_control
from taskyard.core.values import as_list, as_object, as_text
from taskyard.errors import BadValue, RemoteAway, RemoteRefused
from taskyard.jobs.remote.backend import PollResult, RemoteState, Work
from taskyard.jobs.remote.remotes import Remote

#: Messages remembered and requested: of an agent that sends more between two polls the oldest are missed.
MAX_MESSAGES = 1_000

#: Hexadecimal digits of a digest: among a thousand digests, two collide once in 10^9 sessions.
_DIGEST_DIGITS = 12


class ArtifactPosition(NamedTuple):
    """How much of an artifact was returned."""

    length: int
    digest: str


class A2aCursor(NamedTuple):
    """Position up to which a session was returned."""

    said: tuple[str, ...] = ()
    pieces: Mapping[str, ArtifactPosition] = {}
    offset: int = 0

    def __str__(self) -> str:
        pieces = {name: [piece.length, piece.digest] for name, piece in self.pieces.items()}
        fields = {"said": list(self.said), "pieces": pieces, "offset": self.offset}
        return json.dumps({name: value for name, value in fields.items() if value}, separators=(",", ":"))


def parse_cursor(text: str) -> A2aCursor:
    """Parse a cursor; an unreadable one is the beginning."""
    try:
        found = as_object(json.loads(text or "{}")) or {}
    except ValueError:
        found = {}
    said = tuple(each for each in as_list(found.get("said")) or () if isinstance(each, str))
    pieces: dict[str, ArtifactPosition] = {}
    for name, raw in (as_object(found.get("pieces")) or {}).items():
        match as_list(raw):
            case [int(length), str(digest)]:
                pieces[name] = ArtifactPosition(length, digest)
            case _:
                pass
    offset = found.get("offset")
    return A2aCursor(said, pieces, offset if isinstance(offset, int) else 0)


def digest(text: str) -> str:
    """Return a short digest of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_DIGITS]


#: Bytes of a response: a task comes with all its artifacts.
MAX_RESPONSE_BYTES = 32_000_000

#: Key in a request's extensions: byte limit of the response, if lower.
RESPONSE_LIMIT = "taskyard.most"

_DEFAULT_PORTS = {"http": 80, "https": 443}


class ResponseTooLarge(Exception):
    """A response exceeds its byte limit."""

    def __init__(self, most: int) -> None:
        super().__init__(f"more than {most} bytes")
        self.most = most


class OriginClient(httpx.AsyncClient):
    """HTTP client that sends requests only to the allowed origins of one agent."""

    def __init__(self, remote: str, origins: Collection[str], token: str, *, seconds: float) -> None:
        """Create the client.

        Args:
            remote: Name of the remote, for errors.
            origins: Allowed values of `url_origin`.
            token: Bearer token; "" for none.
            seconds: Total time limit of a response.
        """
        headers = {"Accept-Encoding": "identity", **({"Authorization": f"Bearer {token}"} if token else {})}
        super().__init__(headers=headers, timeout=seconds, follow_redirects=False)
        self._remote = remote
        self._origins = frozenset(origins)
        self._seconds = seconds

    async def send(self, request: httpx.Request, **how: Any) -> httpx.Response:  # pyright: ignore[reportIncompatibleMethodOverride]  # passed on as given
        """Send a request to an allowed origin and return the complete response.

        Raises:
            RemoteRefused: The request would go to another origin.
            ResponseTooLarge: The response exceeds its byte limit.
            httpx.HTTPError: The request failed.
        """
        if (origin := url_origin(str(request.url))) not in self._origins:
            raise RemoteRefused(self._remote, f"a request would have gone to {origin}, which is not where it is")
        try:
            async with asyncio.timeout(self._seconds):
                return await self._answered(request, how | {"stream": True, "follow_redirects": False})
        except TimeoutError as error:
            raise httpx.ReadTimeout(f"no answer in {self._seconds:.0f} s", request=request) from error

    async def _answered(self, request: httpx.Request, how: dict[str, Any]) -> httpx.Response:
        response = await super().send(request, **how)
        most = request.extensions.get(RESPONSE_LIMIT, MAX_RESPONSE_BYTES)
        body = bytearray()
        try:
            async for part in response.aiter_bytes():
                body += part
                if len(body) > most:
                    raise ResponseTooLarge(most)
        finally:
            await response.aclose()
        headers = [(name, value) for name, value in response.headers.raw if name.lower() not in _TRANSFER_HEADERS]
        return httpx.Response(response.status_code, headers=headers, content=bytes(body), request=request)


#: Response headers that describe the transfer, not the content.
_TRANSFER_HEADERS = (b"content-encoding", b"content-length", b"transfer-encoding")


def url_origin(url: str) -> str:
    """Return scheme, host and port of a URL as one text; "" if it has none."""
    try:
        found = httpx.URL(url)
    except (httpx.InvalidURL, ValueError, TypeError):
        return ""
    if found.scheme not in _DEFAULT_PORTS or not found.host:
        return ""
    host = f"[{found.host}]" if ":" in found.host else found.host
    return f"{found.scheme}://{host}:{found.port or _DEFAULT_PORTS[found.scheme]}"


def check_url(setting: str, url: object) -> str:
    """Return a URL of config.toml after checking it.

    Raises:
        BadValue: It is no valid URL, or contains a password.
    """
    if not isinstance(url, str) or not url_origin(url):
        raise BadValue(setting, url, "an address such as https://agents.example")
    if httpx.URL(url).userinfo:
        raise BadValue(setting, "…", "an address without a password: token_env or token_keyring name the token")
    return url


#: The supported protocol bindings.
BINDINGS = [TransportProtocol.JSONRPC.value, TransportProtocol.HTTP_JSON.value]

#: Bytes of a card: hundreds of skills fit.
_MAX_CARD_BYTES = 1_000_000

#: Skills, and characters of one text, shown to users.
_MAX_SKILLS_SHOWN, _MAX_CHARS_SHOWN = 8, 80


async def fetch_card(home: OriginClient, url: str) -> AgentCard:
    """Fetch the card of the agent at `url`, which is the agent's address or that of the card itself.

    Raises:
        AgentCardResolutionError, ResponseTooLarge: It cannot be fetched.
        ValueError, TypeError, AttributeError, KeyError: It is not a card.
    """
    resolver = A2ACardResolver(home, url)
    itself = "/" if url.endswith(".json") else None
    return await resolver.get_agent_card(itself, http_kwargs={"extensions": {RESPONSE_LIMIT: _MAX_CARD_BYTES}})


def restrict_interfaces(remote: str, card: AgentCard, origins: frozenset[str]) -> AgentCard:
    """Return a copy of the card with only the interfaces that are supported and at an allowed origin.

    Raises:
        RemoteRefused: There are none.
    """
    known = [way for way in card.supported_interfaces if way.protocol_binding in BINDINGS]
    ours = [way for way in known if url_origin(way.url) in origins]
    if not ours:
        raise _no_interface(remote, card, [url_origin(way.url) for way in known])
    kept = AgentCard()
    kept.CopyFrom(card)
    del kept.supported_interfaces[:]
    kept.supported_interfaces.extend(ours)
    return kept


def format_card(card: AgentCard) -> str:
    """Summarize a card for users."""
    skills = [_shorten(skill.name or skill.id) for skill in card.skills]
    more = f" and {len(skills) - _MAX_SKILLS_SHOWN} more" if len(skills) > _MAX_SKILLS_SHOWN else ""
    name = " ".join(filter(None, (_shorten(card.name) or "an agent without a name", _shorten(card.version))))
    return f"{name}: {', '.join(skills[:_MAX_SKILLS_SHOWN])}{more}" if skills else name


def _no_interface(remote: str, card: AgentCard, elsewhere: list[str]) -> RemoteRefused:
    places = sorted({place for place in elsewhere if place})
    if places:
        advice = f'If that is right, say so: `interface = "{places[0]}"` in [remotes.{remote}].'
        return RemoteRefused(remote, f"its agent card names another host: {', '.join(places[:3])}", advice)
    spoken = sorted({_shorten(way.protocol_binding) for way in card.supported_interfaces})
    why = f"it supports {', '.join(spoken[:5])}" if spoken else "its agent card names no interface"
    return RemoteRefused(remote, f"{why}; required is {' or '.join(BINDINGS)}")


def _shorten(text: str) -> str:
    shown = escape_control(text)
    return shown if len(shown) <= _MAX_CHARS_SHOWN else f"{shown[:_MAX_CHARS_SHOWN]}…"


#: Key in the data of an error: a retry may succeed.
RETRYABLE = "retryable"

#: HTTP statuses that mean "try again later".
_RETRY_STATUSES = frozenset({408, 425, 429})

#: Exceptions raised by malformed responses.
_PARSE_ERRORS = (ParseError, ValueError, TypeError, AttributeError, KeyError, RecursionError)


class ErrorMapper:
    """Maps exceptions of the SDK and of httpx to `RemoteAway` and `RemoteRefused`, for one agent."""

    def __init__(self, remote: str, token: str) -> None:
        self._remote = remote
        self._token = token

    @contextmanager
    def told(self, *, asks: bool = False) -> Generator[None]:
        """Raise exceptions of the body as ours.

        Args:
            asks: The request only reads or is idempotent: an internal error of the agent may be retried.
        """
        try:
            yield
        except A2AClientTimeoutError as error:
            raise RemoteAway(self._remote, "it does not answer in time") from error
        except A2AClientError as error:
            raise self._by_cause(error) from None  # its text may repeat the request, with the token
        except A2AError as error:
            raise self._said(error, asks=asks) from None  # as above
        except httpx.HTTPError as error:
            raise RemoteAway(self._remote, self._clean(error)) from error
        except ResponseTooLarge as error:
            raise self.refused(f"its answer has more than {error.most:,} bytes") from error
        except _PARSE_ERRORS as error:
            raise self.refused(f"its answer cannot be understood ({type(error).__name__})") from error

    def refused(self, why: str, advice: str = "") -> RemoteRefused:
        """Build the error of an agent that was reached and refuses."""
        return RemoteRefused(self._remote, why, advice)

    def _by_cause(self, error: A2AClientError) -> RemoteAway | RemoteRefused:
        cause = error.__cause__
        if isinstance(cause, httpx.HTTPStatusError):
            return self._by_status(cause.response)
        if isinstance(cause, httpx.HTTPError):
            return RemoteAway(self._remote, self._clean(cause))
        return self.refused("its answer cannot be understood", "Is an A2A agent at that address?")

    def _by_status(self, response: httpx.Response) -> RemoteAway | RemoteRefused:
        status = response.status_code
        if status in _RETRY_STATUSES or status >= 500:
            return RemoteAway(self._remote, f"it answers with HTTP {status}")
        if status in (401, 403):
            why = "it rejects the token" if self._token else "it requires a token"
            return self.refused(f"{why} (HTTP {status})", f"See token_env in [remotes.{self._remote}].")
        if response.is_redirect:
            where = url_origin(response.headers.get("location", "")) or "another path"
            return self.refused(f"it points to {where}, and redirects are not followed", "Set url to where it is.")
        return self.refused(f"it answers with HTTP {status}", "Is an A2A agent at that address?")

    def _said(self, error: A2AError, *, asks: bool) -> RemoteAway | RemoteRefused:
        """Map an error that the agent itself returned."""
        why = self._clean(error)
        more = as_object(error.data) or {}  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        if str(more.get(RETRYABLE)).lower() == "true" or (asks and type(error) is InternalError):
            return RemoteAway(self._remote, why)
        return self.refused(why)

    def _clean(self, error: Exception) -> str:
        text = str(error) or type(error).__name__
        return (text.replace(self._token, "…") if self._token else text).strip().rstrip(".")


#: Integers up to this are exact in a float.
_MAX_EXACT_INT = 1 << 53


def parts_text(parts: Iterable[Part]) -> str:
    """Return parts as one text; a list with more parts appended begins with the same text."""
    told = ""
    for part in parts:
        if part.HasField("text"):
            told += part.text
            continue
        told += "\n" if told and not told.endswith("\n") else ""
        told += json.dumps(_part_json(part), ensure_ascii=False, sort_keys=True) + "\n"  # key order varies
    return told


def new_text(task: Task, cursor: A2aCursor, *, is_over: bool) -> tuple[str, A2aCursor]:
    """Return the new output of a task as whole lines, and the cursor after it."""
    told: list[str] = []
    said = dict.fromkeys(cursor.said)
    for message in _agent_messages(task):
        mark = _message_digest(message)
        if mark not in said:
            said[mark] = None
            told.append(with_newline(parts_text(message.parts)))
    pieces = dict(cursor.pieces)
    for artifact in task.artifacts:
        name = digest(artifact.artifact_id)
        text, pieces[name] = _new_artifact_text(artifact, pieces.get(name), is_over=is_over)
        told.append(text)
    return "".join(told), A2aCursor(tuple(said)[-MAX_MESSAGES:], pieces, cursor.offset)


def with_newline(text: str) -> str:
    """Return the text with its last line terminated."""
    return text if not text or text.endswith("\n") else text + "\n"


def normalize_json(value: object) -> object:
    """Return JSON with whole floats as integers: the protocol's data has only floats."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _MAX_EXACT_INT:
        return int(value)
    if (fields := as_object(value)) is not None:
        return {name: normalize_json(each) for name, each in fields.items()}
    several = as_list(value)
    return value if several is None else [normalize_json(each) for each in several]


def _new_artifact_text(
    artifact: Artifact, heard: ArtifactPosition | None, *, is_over: bool
) -> tuple[str, ArtifactPosition]:
    """Return the text of an artifact after the known position; all of it, if it was replaced."""
    text = parts_text(artifact.parts)
    text = with_newline(text) if is_over else text[: text.rfind("\n") + 1]
    start = heard.length if heard is not None and digest(text[: heard.length]) == heard.digest else 0
    return text[start:], ArtifactPosition(len(text), digest(text))


def _agent_messages(task: Task) -> list[Message]:
    """Return the agent's messages, oldest first; the status message is not in the history yet."""
    everything = [*task.history, task.status.message] if task.status.HasField("message") else task.history
    return [message for message in everything if message.role == Role.ROLE_AGENT]


def _message_digest(message: Message) -> str:
    return digest(message.message_id or MessageToJson(message, sort_keys=True))


def _part_json(part: Part) -> object:
    """Return a part that is not text as JSON."""
    if part.HasField("data"):
        return normalize_json(MessageToDict(part.data))
    told: dict[str, object] = {"type": "file", "name": part.filename, "media_type": part.media_type}
    if part.HasField("url"):
        told["url"] = part.url
    if part.HasField("raw"):
        told["bytes"] = len(part.raw)
    return {name: value for name, value in told.items() if value != ""}


#: URI of the extension in cards and requests.
EXTENSION_URI = "urn:taskyard:a2a:since"

#: Header with the offset.
OFFSET_HEADER = "Taskyard-Since"

#: Ids of the artifact returned in parts, and of the one with the final result.
TRANSCRIPT, RESULT = "transcript", "result"

#: Keys in the metadata of the transcript.
OFFSET_KEY, NEXT_KEY, MORE_KEY = "offset", "next", "more"


_STATES = {
    TaskState.TASK_STATE_INPUT_REQUIRED: RemoteState.NEEDS_INPUT,
    TaskState.TASK_STATE_AUTH_REQUIRED: RemoteState.NEEDS_INPUT,
    TaskState.TASK_STATE_COMPLETED: RemoteState.COMPLETED,
    TaskState.TASK_STATE_FAILED: RemoteState.FAILED,
    TaskState.TASK_STATE_CANCELED: RemoteState.STOPPED,
    TaskState.TASK_STATE_REJECTED: RemoteState.FAILED,
}

#: Characters returned by one poll at most, where the rest can be requested later.
_MAX_POLL_CHARS = 8_000_000

#: Errors of a task that ended without a message.
_DEFAULT_ERRORS = {
    TaskState.TASK_STATE_FAILED: "it failed, without giving a reason",
    TaskState.TASK_STATE_REJECTED: "it rejected the task, without giving a reason",
}


class PollBuilder:
    """Collects what one poll of a task returns."""

    def __init__(self, cursor: A2aCursor, *, is_ours: bool) -> None:
        """Start at `cursor`; `is_ours`: our own server, which returns text from an offset on."""
        self.is_ours = is_ours
        self._cursor = cursor
        self._told: list[str] = []
        self._is_behind = False

    @property
    def offset(self) -> int:
        """Offset from which our own server continues."""
        return self._cursor.offset

    def hear(self, task: Task) -> bool:
        """Add the output of a task; return whether to request more at once."""
        if not self.is_ours:
            text, self._cursor = new_text(task, self._cursor, is_over=is_task_final(task))
            self._told.append(text)
            return False
        for artifact in task.artifacts:
            if artifact.artifact_id == TRANSCRIPT:
                self._part(artifact)
        return self._is_behind and sum(map(len, self._told)) < _MAX_POLL_CHARS

    def _part(self, artifact: Artifact) -> None:
        where = MessageToDict(artifact.metadata)
        then = where.get(NEXT_KEY)
        if where.get(OFFSET_KEY) != self._cursor.offset or not isinstance(then, (int, float)):
            return  # not the requested part
        self._told.append(with_newline(parts_text(artifact.parts)))
        self._is_behind = where.get(MORE_KEY) is True and then > self._cursor.offset
        self._cursor = self._cursor._replace(offset=max(int(then), self._cursor.offset))

    def seen(self, task: Task) -> PollResult:
        """Return the result of the poll; a final state only once all output is returned."""
        state = _STATES.get(task.status.state, RemoteState.RUNNING)
        text, metadata = "".join(self._told), as_object(normalize_json(MessageToDict(task.metadata))) or {}
        if self._is_behind and state.is_final:
            return PollResult(RemoteState.RUNNING, str(self._cursor), text, metadata=metadata)
        spoken = parts_text(task.status.message.parts).strip()
        error = spoken or _DEFAULT_ERRORS.get(task.status.state, "") if state is RemoteState.FAILED else ""
        question = spoken or "It needs input." if state is RemoteState.NEEDS_INPUT else ""
        result = _task_result(task, spoken) if state is RemoteState.COMPLETED else ""
        return PollResult(state, str(self._cursor), text, result, error, question, metadata)


def is_task_final(task: Task) -> bool:
    """Return whether a task is in a final state."""
    return _STATES.get(task.status.state, RemoteState.RUNNING).is_final


def _task_result(task: Task, spoken: str) -> str:
    """Return the final result: the artifact of that name, else the final message, else the last artifact."""
    named = [each for each in task.artifacts if RESULT in (each.artifact_id, each.name)]
    if not named and spoken:
        return spoken
    last = (named or list(task.artifacts))[-1:]
    return parts_text(last[0].parts).rstrip("\n") if last else ""


#: Seconds for a response: an agent that responds with a message does so when the work is done.
DEFAULT_TIMEOUT = 120.0

#: Prefix of a session id that contains the response itself.
_INLINE_PREFIX = "="

#: Characters kept of such a response: the id is in records that are read often.
_MAX_INLINE_CHARS = 50_000

_MAX_ID_CHARS = 256

#: Errors of agents that do not list their tasks.
_NO_LISTING_ERRORS = (MethodNotFoundError, UnsupportedOperationError, NotImplementedError, RemoteRefused)


class A2aBackend:
    """`RemoteBackend` for one A2A agent."""

    def __init__(self, remote: Remote, token: str = "") -> None:
        where = f"remotes.{remote.name}"
        self._name = remote.name
        self._url = check_url(f"{where}.url", remote.url)
        allowed = {self._url}
        if (interface := remote.options.get("interface")) is not None:
            allowed.add(check_url(f"{where}.interface", interface))
        seconds = remote.options.get("timeout", DEFAULT_TIMEOUT)
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 1 <= seconds <= 3600:
            raise BadValue(f"{where}.timeout", seconds, "seconds, from 1 to 3,600")
        skill = remote.options.get("skill", "")
        if not isinstance(skill, str):
            raise BadValue(f"{where}.skill", skill, "text")
        self._skill = skill
        self._origins = frozenset(map(url_origin, allowed))
        self._token = token
        self._seconds = float(seconds)
        self._faults = ErrorMapper(remote.name, token)
        self._home: OriginClient | None = None
        self._known: tuple[AgentCard, Client] | None = None

    async def submit(self, work: Work) -> str:
        """Start the work, unless it was started before; `work.command` is ignored."""
        card, client = await self._client()
        if not _has_extension(card) and (found := await self._begun(client, work.id)) is not None:
            return found
        metadata = {**work.metadata, **({"skill": self._skill} if self._skill else {})}
        message = _user_message(work.prompt, message_id=work.id, context_id=work.id, metadata=metadata)
        with self._faults.told():
            return self._session(await _send_message(client, message))

    async def poll(self, session: str, cursor: str = "") -> PollResult:
        """Return the state of a session and its new output."""
        if session.startswith(_INLINE_PREFIX):
            return _inline_result(session, cursor)
        card, client = await self._client()
        builder = PollBuilder(parse_cursor(cursor), is_ours=_has_extension(card))
        with self._faults.told(asks=True):
            while True:
                try:
                    task = await self._task(client, session, builder)
                except TaskNotFoundError:
                    return PollResult(RemoteState.LOST, cursor, error=f"{self._name} does not know task {session}")
                if not builder.hear(task):
                    return builder.seen(task)

    async def send(self, session: str, text: str) -> None:
        """Send a message to the session."""
        if session.startswith(_INLINE_PREFIX):
            raise self._faults.refused("it is over")
        _, client = await self._client()
        with self._faults.told():
            await _send_message(client, _user_message(text, message_id=uuid.uuid4().hex, task_id=session))

    async def stop(self, session: str) -> None:
        """Cancel the session, if it is not over."""
        if session.startswith(_INLINE_PREFIX):
            return
        _, client = await self._client()
        with self._faults.told(asks=True):
            try:
                await client.cancel_task(CancelTaskRequest(id=session))
            except TaskNotFoundError:
                return
            except TaskNotCancelableError as error:
                task = await client.get_task(GetTaskRequest(id=session, history_length=0))
                if not is_task_final(task):
                    raise self._faults.refused(f"task {session} cannot be cancelled") from error

    async def probe(self) -> str:
        """Return a summary of the card after checking that the agent accepts the token."""
        card, client = await self._client()
        with self._faults.told(asks=True):
            try:
                await client.get_task(GetTaskRequest(id=uuid.uuid4().hex, history_length=0))
            except TaskNotFoundError:
                pass  # only an authorized client gets this error
        return format_card(card)

    async def close(self) -> None:
        """Close the connections."""
        home, self._home, self._known = self._home, None, None
        if home is not None:
            await home.aclose()

    async def _client(self) -> tuple[AgentCard, Client]:
        if self._known is None:
            self._home = self._home or OriginClient(self._name, self._origins, self._token, seconds=self._seconds)
            with self._faults.told():
                card = restrict_interfaces(self._name, await fetch_card(self._home, self._url), self._origins)
                how = ClientConfig(
                    streaming=False, polling=True, httpx_client=self._home, supported_protocol_bindings=BINDINGS
                )
                self._known = card, ClientFactory(how).create(card)
        return self._known

    async def _begun(self, client: Client, work: str) -> str | None:
        """Return the session of work that was sent before, if the agent lists it."""
        wish = ListTasksRequest(context_id=work, history_length=0, include_artifacts=False)
        try:
            with self._faults.told():
                found = await client.list_tasks(wish)
        except _NO_LISTING_ERRORS:
            return None
        ours = [
            task for task in found.tasks if task.context_id == work
        ]  # an agent that lists others ignores the filter
        return self._checked(ours[-1].id) if ours else None

    async def _task(self, client: Client, session: str, builder: PollBuilder) -> Task:
        more = None
        if builder.is_ours:
            headers = {HTTP_EXTENSION_HEADER: EXTENSION_URI, OFFSET_HEADER: str(builder.offset)}
            more = ClientCallContext(service_parameters=headers)
        return await client.get_task(GetTaskRequest(id=session, history_length=MAX_MESSAGES), context=more)

    def _session(self, answer: StreamResponse) -> str:
        if answer.HasField("task"):
            return self._checked(answer.task.id)
        said = parts_text(answer.message.parts)
        if len(said) > _MAX_INLINE_CHARS:
            said = f"{said[:_MAX_INLINE_CHARS]}\n({len(said) - _MAX_INLINE_CHARS:,} characters more were left out)"
        return _INLINE_PREFIX + base64.urlsafe_b64encode(json.dumps({"text": said}).encode()).decode()

    def _checked(self, task: str) -> str:
        """Check a task id, which becomes part of URLs."""
        if not 0 < len(task) <= _MAX_ID_CHARS or not task.isprintable() or set(task) & set("/?#%\\") or task[0] in "=.":
            raise self._faults.refused("its task id is not valid")
        return task


def _has_extension(card: AgentCard) -> bool:
    return any(extension.uri == EXTENSION_URI for extension in card.capabilities.extensions)


def _user_message(text: str, *, metadata: dict[str, str] | None = None, **ids: str) -> Message:
    return Message(role=Role.ROLE_USER, parts=[Part(text=text)], metadata=metadata, **ids)


async def _send_message(client: Client, message: Message) -> StreamResponse:
    async for answer in client.send_message(SendMessageRequest(message=message)):
        return answer
    raise ValueError("no answer")


def _inline_result(session: str, cursor: str) -> PollResult:
    try:
        said = as_text(json.loads(base64.urlsafe_b64decode(session[1:]))["text"])
    except (ValueError, TypeError, KeyError, binascii.Error):
        return PollResult(RemoteState.LOST, cursor, error="the id of its session cannot be read")
    return PollResult(RemoteState.COMPLETED, "all", "" if cursor else with_newline(said), result=said)
