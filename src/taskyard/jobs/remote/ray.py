"""The Ray backend: run a remote agent as a Ray job through the REST API of the cluster's dashboard.

The Ray package is not needed. A session is a Ray job whose submission id is the id of our job. Its
state comes from the Ray Jobs API; its log is read byte for byte from the node it ran on
(docs/adr/0017-rays-log-as-bytes.md). A final state is reported only together with the last output.

    [remotes.cluster]
    backend = "ray"
    url = "http://head.example:8265"
    command = "my-agent --json"
    entrypoint_num_cpus = 1                          # resources to reserve, under Ray's own names
    runtime_env = { working_dir = "s3://…", pip = ["my-agent"] }

Requests are bounded in time and size. The token is sent in a header only and is redacted from every text
of the remote side before it is shown. Redirects are not followed: the token is for the configured host.

Ray returns a log from its beginning each time. A cursor is the number of bytes already returned and a
checksum of the last of them, which detects a log that was replaced. Two lines in a log are Ray's own and
are left out: one at the beginning, and one that states the entrypoint; the latter may stand in the middle
of a line of the program, because Ray writes it after starting the program.
"""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import asynccontextmanager
from functools import lru_cache
from urllib.parse import quote, urlsplit
from zlib import crc32

import httpx

from taskyard.core.system import boottime
from taskyard.core.text import escape_control
from taskyard.core.values import NamedTuple, as_list, as_number, as_object, as_text, nearest
from taskyard.errors import BadValue, RemoteAway, RemoteRefused, quote_value
from taskyard.jobs.remote.backend import PollResult, RemoteState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping
    from ssl import SSLContext

    from taskyard.jobs.remote.backend import Work
    from taskyard.jobs.remote.remotes import Remote


#: Seconds to connect, and between two chunks of a response: the first submit to a new head takes 3 s, and
#: the head waits 10 s for a node that does not answer.
_CONNECT_TIMEOUT, _READ_TIMEOUT = 10.0, 20.0

#: Seconds for a whole response, even if it keeps trickling in.
_REQUEST_TIMEOUT = 50.0

#: Bytes of a response that is no log: it repeats the command and the environment, which Linux keeps below this.
_MAX_RESPONSE_BYTES = 4 * 1024 * 1024

#: Bytes read of an error body: enough for its stack trace, whose last line is the reason.
_MAX_ERROR_BYTES = 64 * 1024

#: Replacement for the token in text from the remote side.
_REDACTED = "…"

_NOT_RAY = "The url must be that of Ray's dashboard, such as http://head.example:8265."
_CREDENTIALS = (
    "A cluster started with RAY_AUTH_MODE=token takes its token as `Authorization: Bearer`: "
    "token_env or token_keyring of the remote names where it is stored, `ray get-auth-token` prints it."
)


class DashboardResponse:
    """One response; its body may not have been read yet."""

    def __init__(self, dashboard: DashboardClient, response: httpx.Response) -> None:
        self._dashboard = dashboard
        self._response = response
        self.status = response.status_code

    async def pieces(self, take: Callable[[bytes], bool]) -> None:
        """Pass the body to `take` chunk by chunk until it returns False."""
        async for piece in self._response.aiter_raw():
            if not take(piece):
                return

    async def json(self) -> dict[str, object]:
        """Return the body, which must be a JSON object.

        Raises:
            RemoteRefused: The body is not a JSON object, or too long.
        """
        body = await self._body(_MAX_RESPONSE_BYTES)
        try:
            found = as_object(json.loads(body))
        except (ValueError, RecursionError):
            found = None
        if found is None:
            kind = self._response.headers.get("content-type", "something unnamed")
            raise self._dashboard.refused(f"its answer ({kind}) is not one of Ray's", _NOT_RAY)
        return found

    async def text(self) -> str:
        """Return the body as text, up to about `_MAX_ERROR_BYTES`."""
        return (await self._body(_MAX_ERROR_BYTES)).decode("utf-8", "replace")

    async def _body(self, most: int) -> bytes:
        """Return the body, cut off in the first chunk past `most` bytes."""
        body = bytearray()

        def take(piece: bytes) -> bool:
            body.extend(piece)
            return len(body) <= most

        await self.pieces(take)
        return bytes(body)


class DashboardClient:
    """HTTP client for the dashboard of one cluster."""

    def __init__(self, remote: Remote, token: str) -> None:
        """Create the client without connecting.

        Raises:
            BadValue: The URL cannot be that of a dashboard.
            RemoteRefused: The token has characters that a header cannot carry.
        """
        self._name = remote.name
        self._token = token
        if not (token.isascii() and token.isprintable()):
            raise RemoteRefused(self._name, "the token has characters that no token has", "Was a file read wrongly?")
        headers = {"accept-encoding": "identity"}  # a compressed body may expand to any size
        if token:
            headers["authorization"] = f"Bearer {token}"
        self._client = httpx.AsyncClient(
            base_url=_check_url(remote),
            headers=headers,
            timeout=httpx.Timeout(_READ_TIMEOUT, connect=_CONNECT_TIMEOUT),
            verify=_ssl_context(),
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    @asynccontextmanager
    async def asked(
        self, method: str, path: str, *, query: Mapping[str, str] | None = None, body: object = None
    ) -> AsyncGenerator[DashboardResponse]:
        """Send a request and yield the response while its body arrives; raise for statuses that mean "not done".

        Raises:
            RemoteRefused: The credentials are rejected, or the server is no dashboard.
            RemoteAway: The server cannot be reached, or the connection breaks.
        """
        try:
            async with (
                asyncio.timeout(_REQUEST_TIMEOUT),
                self._client.stream(method, path, params=query, json=body) as response,
            ):
                self._check(response)
                yield DashboardResponse(self, response)
        except (httpx.HTTPError, TimeoutError) as error:
            raise self.away(_error_text(error)) from error

    def refused(self, why: str, advice: str = "") -> RemoteRefused:
        """Build the error for a request that the server rejects."""
        return RemoteRefused(self._name, self.clean(why).rstrip("."), advice)

    def away(self, why: str) -> RemoteAway:
        """Build the error for a server that cannot be reached."""
        return RemoteAway(self._name, self.clean(why).rstrip("."))

    def clean(self, text: str, *, lines: bool = False) -> str:
        """Escape control characters and redact the token in text from the remote side."""
        return escape_control(text.replace(self._token, _REDACTED) if self._token else text, lines=lines)

    def _check(self, response: httpx.Response) -> None:
        status = response.status_code
        if status in (401, 403):
            why = "it requires a token" if status == 401 and not self._token else "it rejects the token"
            raise self.refused(f"{why} (HTTP status {status})", _CREDENTIALS)
        if response.is_redirect or 300 <= status < 400:
            where = response.headers.get("location", "elsewhere")
            raise self.refused(f"it redirects to {where}, and no redirect is followed", _NOT_RAY)
        if response.headers.get("content-encoding", "identity") != "identity":
            raise self.refused("its answer is packed, which was not asked for", _NOT_RAY)
        if status in (408, 429, 502, 503, 504):
            raise self.away(f"it answers with HTTP status {status}")


@lru_cache(maxsize=1)
def _ssl_context() -> SSLContext:
    """Return the trusted certificates; loaded once, because that takes longer than most requests."""
    return httpx.create_ssl_context()


def last_line(text: str) -> str:
    """Return the last line of an error with a stack trace: the reason."""
    lines = [line.strip() for line in text.split("\n") if line.strip(" .\r\t")]
    return lines[-1] if lines else "it gives no reason"


def _error_text(error: Exception) -> str:
    if isinstance(error, httpx.TimeoutException | TimeoutError):
        return "it does not answer in time"
    return str(error) or type(error).__name__


def _check_url(remote: Remote) -> httpx.URL:
    setting, wanted = f"remotes.{remote.name}.url", "http:// or https:// and a host, such as http://head.example:8265"
    try:
        url = httpx.URL(urlsplit(remote.url).geturl())  # each parser finds errors that the other accepts
    except (ValueError, httpx.InvalidURL):
        raise BadValue(setting, "…", wanted) from None
    if url.userinfo:
        raise BadValue(setting, "…", "an address without a password: token_env or token_keyring says where a token is")
    if url.scheme not in ("http", "https") or not url.host or url.query or url.fragment:
        raise BadValue(setting, remote.url, wanted)
    return url


#: Bytes returned by one poll at most; the rest follows in the next one.
MAX_POLL_BYTES = 4 * 1024 * 1024

#: Bytes of a log that are followed. Ray sends the whole log each time: of a longer one only the tail is returned.
MAX_LOG_BYTES = 32 * 1024 * 1024

#: Bytes and lines of the tail of a log longer than that.
TAIL_BYTES = 256 * 1024
TAIL_LINES = 1000

#: Bytes before the cursor that its checksum covers: a few lines, so that two logs do not match by accident.
_CHECKSUM_BYTES = 256

_SETTING_UP = re.compile(rb"[^\n]{1,100} -- Runtime env is setting up\.\n")

_CURSOR = re.compile(r"([0-9]{1,18})-([0-9a-f]{8})(\+end)?")

_LOG_REPLACED = "[taskyard: the log on the cluster is another one now; it follows from its beginning]\n"
_LOG_TRUNCATED = "[taskyard: the log is too long to be followed; its last lines, `ray job logs {}` shows all of it]\n"


class LogCursor(NamedTuple):
    """Position up to which a log was returned."""

    offset: int = 0  #: bytes
    mark: int = 0  #: CRC-32 of the last bytes before the offset
    is_end: bool = False  #: the tail of a log past the limit was returned

    def __str__(self) -> str:
        """Return the text that `parse_cursor` reads."""
        return f"{self.offset}-{self.mark:08x}{'+end' if self.is_end else ''}"

    @property
    def is_past_limit(self) -> bool:
        """Whether the log is longer than the followed limit."""
        return self.offset >= MAX_LOG_BYTES


class LogChunk(NamedTuple):
    """Result of reading a log."""

    text: str
    cursor: LogCursor
    is_all: bool = True  #: nothing more is available now


def parse_cursor(text: str) -> LogCursor:
    """Parse a cursor; "" is the beginning.

    Raises:
        BadValue: The text is not a cursor of this module.
    """
    if not text:
        return LogCursor()
    found = _CURSOR.fullmatch(text)
    if found is None:
        raise BadValue("cursor", text, "what an earlier poll gave")
    return LogCursor(int(found[1]), int(found[2], 16), found[3] is not None)


class LogReader:
    """Collects a log that arrives in chunks from its beginning, and the part that follows a cursor."""

    def __init__(self, cursor: LogCursor, entrypoint: str, job: str) -> None:
        self._cursor = cursor
        self._announced = f"Running entrypoint for job {job}: {entrypoint}\n".encode("utf-8", "replace")
        self._passed = 0
        self._before = b""  #: the last bytes before the cursor, as they are in this log
        self._kept = bytearray()
        self.length = 0  #: bytes received
        self.is_truncated = False  #: the log has more, which was not received

    def take(self, piece: bytes) -> bool:
        """Add the next chunk; return whether more is needed."""
        self.length += len(piece)
        old = piece[: self._cursor.offset - self._passed]
        self._passed += len(old)
        self._before = (self._before + old)[-_CHECKSUM_BYTES:]
        self._kept += piece[len(old) :]
        return len(self._kept) <= MAX_POLL_BYTES and self.is_same

    @property
    def has_news(self) -> bool:
        """Whether bytes after the cursor were received."""
        return bool(self._kept) and self.is_same

    @property
    def is_same(self) -> bool:
        """Whether the received part is of the log that the cursor belongs to."""
        return self._passed < self._cursor.offset or crc32(self._before) == self._cursor.mark

    def told(self, *, is_over: bool) -> LogChunk | None:
        """Return the new whole lines, with a last partial line if the job is over; None if the log was replaced."""
        if self._passed < self._cursor.offset or not self.is_same:
            return None
        found = bytes(self._kept[:MAX_POLL_BYTES])
        is_all = len(found) == len(self._kept) and not self.is_truncated
        text, places = self._strip_ray_lines(found)
        end = len(text) if is_over and is_all else text.rfind(b"\n") + 1
        torn = b""
        if not end and len(found) < len(self._kept):  # a line longer than one poll may return
            end, torn = _char_boundary(text), b"\n"
        raw = end + sum(length for at, length in places if at < end)
        last = (self._before + found[:raw])[-_CHECKSUM_BYTES:]
        cursor = LogCursor(self._cursor.offset + raw, crc32(last))
        return LogChunk((text[:end] + torn).decode("utf-8", "replace"), cursor, is_all)

    def _strip_ray_lines(self, found: bytes) -> tuple[bytes, list[tuple[int, int]]]:
        """Return the output of the program, and the places and lengths of Ray's lines removed from it."""
        places: list[tuple[int, int]] = []
        if not self._cursor.offset and (first := _SETTING_UP.match(found)):
            places.append((-1, first.end()))
            found = found[first.end() :]
        before, announced, after = found.partition(self._announced)
        if announced:
            places.append((len(before), len(announced)))
        return before + after, places


def mark_replaced(told: LogChunk) -> LogChunk:
    """Prepend a line that states why the whole log is returned again."""
    return told._replace(text=_LOG_REPLACED + told.text)


class LogTail:
    """Keeps the tail of a log of any length."""

    def __init__(self) -> None:
        self._kept = b""

    def take(self, piece: bytes) -> bool:
        """Add the next chunk; always return True (more is needed)."""
        self._kept = (self._kept + piece)[-TAIL_BYTES:]
        return True

    def told(self, cursor: LogCursor, job: str) -> LogChunk:
        """Return the whole lines of the tail, after a line that states what they are."""
        kept = self._kept
        if len(kept) == TAIL_BYTES:
            kept = kept[kept.find(b"\n") + 1 :]
        return LogChunk(_LOG_TRUNCATED.format(job) + kept.decode("utf-8", "replace"), cursor._replace(is_end=True))


def _char_boundary(text: bytes) -> int:
    """Return the last index at or near the end of `text` that does not split a UTF-8 character."""
    end = len(text)
    while end > len(text) - 4 and text[end - 1] & 0xC0 == 0x80:  # a continuation byte
        end -= 1
    return end - 1 if text[end - 1] >= 0xC0 else len(text)


#: Environment variable in which the program finds its prompt.
PROMPT_VARIABLE = "TASKYARD_PROMPT"

#: Bytes of environment and metadata as JSON: Ray passes them in one string, which Linux limits to 131,072,
#: and adds some of its own. A job with more never starts and never ends.
MAX_ENV_BYTES = 120_000

#: Valid names of shell variables.
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

#: Ray expands $NAME and ${NAME} in variables and has no escape for a dollar sign. It is therefore passed as a
#: printf escape, which the shell decodes before the command; the final dot preserves trailing line ends.
_DOLLAR = r"\0044"
_UNESCAPE = """{0}="$(printf '%b.' "${0}")"; {0}="${{{0}%.}}"; export {0}; """

_NUMBERS = ("entrypoint_num_cpus", "entrypoint_num_gpus", "entrypoint_memory")
_TABLES = ("entrypoint_resources", "entrypoint_label_selector", "runtime_env")

#: Settings of every remote, which are not passed to Ray.
_COMMON_OPTIONS = ("poll_seconds",)


def check_options(remote: Remote) -> dict[str, object]:
    """Return the configured Ray options of every job on this remote.

    Raises:
        BadValue: Ray has no such option, or its value has the wrong type.
    """
    options = {key: value for key, value in remote.options.items() if key not in _COMMON_OPTIONS}
    for key, value in options.items():
        setting = f"remotes.{remote.name}.{key}"
        if key not in _NUMBERS + _TABLES:
            near = nearest(key, [*_NUMBERS, *_TABLES]) or [*_NUMBERS, *_TABLES]
            raise BadValue(setting, value, f"no setting of a remote on Ray; there are {', '.join(near)}")
        if key in _NUMBERS and (isinstance(value, bool) or not isinstance(value, int | float) or value < 0):
            raise BadValue(setting, value, "a number")
        if key in _TABLES and as_object(value) is None:
            raise BadValue(setting, value, "a table")
    for name, value in _configured_env(remote).items():
        if not isinstance(value, str):
            raise BadValue(f"remotes.{remote.name}.runtime_env.env_vars.{name}", value, "text")
    return options


def build_request(work: Work, remote: Remote) -> dict[str, object]:
    """Build the body of the submit request.

    Raises:
        RemoteRefused: No command is configured, or Ray cannot pass on the environment.
        BadValue: As `check_options`.
    """
    options = check_options(remote)
    command = work.command or remote.command
    if not command.strip():
        advice = f'Give one, or set it: command = "…" in [remotes.{remote.name}].'
        raise RemoteRefused(remote.name, "no command is set", advice)
    ours = {**work.env, PROMPT_VARIABLE: work.prompt}
    _check_env(ours, remote.name)
    protected = {name: value for name, value in ours.items() if "$" in value}
    env = {**_configured_env(remote), **ours, **{name: _escape_dollars(value) for name, value in protected.items()}}
    asked = {
        **options,
        "entrypoint": "".join(_UNESCAPE.format(name) for name in protected) + command,
        "submission_id": work.id,
        "metadata": {str(key): str(value) for key, value in work.metadata.items()},
        "runtime_env": {**(as_object(options.get("runtime_env")) or {}), "env_vars": env},
    }
    length = len(json.dumps({key: asked[key] for key in ("metadata", "runtime_env")}))
    if length > MAX_ENV_BYTES:
        why = f"prompt and environment take {length:,} bytes, and Ray passes on {MAX_ENV_BYTES:,}"
        raise RemoteRefused(
            remote.name, why, "Put what is long where the program reads it, and say where in the prompt."
        )
    return asked


def _configured_env(remote: Remote) -> dict[str, object]:
    """Return the variables configured for every job; Ray expands $NAME in them."""
    return as_object((as_object(remote.options.get("runtime_env")) or {}).get("env_vars")) or {}


def _check_env(env: dict[str, str], remote: str) -> None:
    for name, value in env.items():
        if not _VARIABLE_NAME.fullmatch(name):
            raise RemoteRefused(remote, f"{quote_value(name)} cannot be the name of a variable")
        if not _is_encodable(value):
            raise RemoteRefused(remote, f"{name} has characters that no variable can hold")


def _is_encodable(value: str) -> bool:
    try:
        return b"\0" not in value.encode()
    except UnicodeEncodeError:  # an unpaired surrogate
        return False


def _escape_dollars(value: str) -> str:
    return value.replace("\\", "\\\\").replace("$", _DOLLAR)


_STATES = {
    "PENDING": RemoteState.RUNNING,
    "RUNNING": RemoteState.RUNNING,
    "SUCCEEDED": RemoteState.COMPLETED,
    "FAILED": RemoteState.FAILED,
    "STOPPED": RemoteState.STOPPED,
}

#: Bytes per second at which logs without new output are read again: a log comes whole, so a long one is polled less.
_IDLE_LOG_RATE = 10_000_000

#: Seconds the head waits for the node that has the log.
_NODE_TIMEOUT = "10"

#: Characters read of Ray's message about a job.
_MAX_MESSAGE_CHARS = 2000

_JOB_UNKNOWN = (
    "its head was restarted, which loses all jobs, or this job was deleted there; whether it still runs is unknown"
)
_NODE_GONE = "its node is gone, and with it the output since the last poll"


class _LogUnavailable(Exception):
    """The log cannot be read, for the reason in the message."""


class RayJob(NamedTuple):
    """A job as Ray reports it."""

    id: str
    status: str
    entrypoint: str
    message: str
    node: str  #: where it runs or ran; "" if it never started
    exit_code: int | None
    metadata: dict[str, object]

    @property
    def state(self) -> RemoteState:
        """The state as a `RemoteState`."""
        return _STATES[self.status]

    @property
    def error(self) -> str:
        """The reason of a failure."""
        if self.state is not RemoteState.FAILED:
            return ""
        return self.message or "it failed; Ray gives no reason"

    def about(self) -> dict[str, object]:
        """Return the further facts that Ray reports."""
        return {**self.metadata, "status": self.status, "exit_code": self.exit_code, "node": self.node}


class RayBackend:
    """`RemoteBackend` for one Ray cluster."""

    def __init__(self, remote: Remote, token: str = "") -> None:
        """Create the backend without connecting.

        Raises:
            BadValue: The URL or another setting is invalid.
            RemoteRefused: The token has characters that a header cannot carry.
        """
        check_options(remote)
        self._remote = remote
        self._dashboard = DashboardClient(remote, token)
        self._resting: dict[
            str, tuple[LogCursor, float]
        ] = {}  #: per job: cursor at which not to read its log again, and until when

    async def submit(self, work: Work) -> str:
        """Submit a job; idempotent: an existing job of this id is returned."""
        asked = build_request(work, self._remote)
        async with self._dashboard.asked("POST", "/api/jobs/", body=asked) as answer:
            if answer.status == 200:
                return as_text((await answer.json()).get("submission_id")) or work.id
            said = await answer.text()
        if f"{work.id} already exists" in said:
            return work.id
        if answer.status < 500 or "status code 400" in said:  # a refusal of a node arrives inside a failure of the head
            raise self._dashboard.refused(last_line(said))
        raise self._dashboard.away(last_line(said))

    async def poll(self, session: str, cursor: str = "") -> PollResult:
        """Return the state of a job and its new output."""
        at = parse_cursor(cursor)
        job = await self._job(session)
        if job is None:
            return PollResult(RemoteState.LOST, cursor, error=_JOB_UNKNOWN)
        if job.state.is_final:
            return await self._poll_final(job, at)
        try:
            told = await self._told(job, at)
        except (RemoteAway, _LogUnavailable) as problem:
            return PollResult(job.state, cursor, metadata={**job.about(), "log": str(problem)})
        return PollResult(job.state, str(told.cursor), told.text, metadata=job.about())

    async def send(self, session: str, text: str) -> None:
        """Refuse: a program on Ray has no input."""
        await self._version()  # raise RemoteAway if the cluster cannot be reached
        raise self._dashboard.refused("a program on Ray takes no input once it runs", "Start another with what to add.")

    async def stop(self, session: str) -> None:
        """Stop the job: SIGTERM, SIGKILL after 3 s. A job that waits for resources ends when it starts."""
        async with self._dashboard.asked("POST", f"/api/jobs/{quote(session, safe='')}/stop") as answer:
            if answer.status == 200:
                return
            said = await answer.text()
        if answer.status == 404:
            await self._version()
        elif answer.status < 500:
            raise self._dashboard.refused(last_line(said))
        else:
            raise self._dashboard.away(last_line(said))

    async def close(self) -> None:
        """Close the connections."""
        await self._dashboard.close()

    async def probe(self) -> str:
        """Return Ray's version and the number of nodes; starts nothing."""
        version, nodes = await self._version(), await self._nodes({})
        count = sum(_is_alive(node) for node in nodes or ())
        return f"Ray {version}" + (f", {count} node{'s' * (count != 1)}" if nodes else "")

    async def _version(self) -> str:
        """Return Ray's version; refuse a server that is not Ray."""
        async with self._dashboard.asked("GET", "/api/version") as answer:
            if answer.status == 200 and (version := as_text((await answer.json()).get("ray_version"))):
                return self._dashboard.clean(version)
            said = await answer.text()
        if answer.status >= 500:
            raise self._dashboard.away(last_line(said))
        raise self._dashboard.refused("what answers there is not Ray", "The url must be that of Ray's dashboard.")

    async def _job(self, session: str) -> RayJob | None:
        async with self._dashboard.asked("GET", f"/api/jobs/{quote(session, safe='')}") as answer:
            if answer.status == 200:
                return self._read_job(session, await answer.json())
            said = await answer.text()
        if answer.status == 404:
            await self._version()  # a 404 of a server that is not Ray proves nothing about the job
            return None
        if answer.status >= 500:
            raise self._dashboard.away(last_line(said))
        raise self._dashboard.refused(last_line(said))

    def _read_job(self, session: str, told: dict[str, object]) -> RayJob:
        status = as_text(told.get("status"))
        if status not in _STATES:
            raise self._dashboard.refused(f"it reports an unknown job status, {status[:40]!r}")
        code = told.get("driver_exit_code")
        return RayJob(
            id=session,
            status=status,
            entrypoint=as_text(told.get("entrypoint")),
            message=_first_line(self._dashboard.clean(as_text(told.get("message"))[:_MAX_MESSAGE_CHARS], lines=True)),
            node=as_text(told.get("driver_node_id")),
            exit_code=as_number(code) if code is not None else None,
            metadata=as_object(told.get("metadata")) or {},
        )

    async def _poll_final(self, job: RayJob, at: LogCursor) -> PollResult:
        """Return the final state, or `RUNNING` until the last output is returned with it."""
        error = job.error
        try:
            told = await (self._last_lines(job, at) if at.is_past_limit else self._told(job, at))
        except _LogUnavailable as problem:
            if await self._is_there(job.node):
                raise self._dashboard.away(f"the log of {job.id} cannot be read now: {problem}") from problem
            told, error = LogChunk("", at), "; ".join(filter(None, (error, _NODE_GONE)))
        is_told = told.is_all and not (told.cursor.is_past_limit and not told.cursor.is_end)
        state = job.state if is_told else RemoteState.RUNNING
        return PollResult(state, str(told.cursor), told.text, error=error if is_told else "", metadata=job.about())

    async def _told(self, job: RayJob, at: LogCursor) -> LogChunk:
        """Return what is new in the log.

        Raises:
            _LogUnavailable: The node does not answer.
        """
        is_over = job.state.is_final
        resting_at, until = self._resting.get(job.id, (None, 0.0))
        if not job.node or at.is_past_limit or (resting_at == at and boottime() < until and not is_over):
            return LogChunk("", at)
        reading = await self._read(job, at)
        told = reading.told(is_over=is_over)
        if told is None:
            reading = await self._read(job, LogCursor())
            told = mark_replaced(reading.told(is_over=is_over) or LogChunk("", LogCursor()))
        self._resting[job.id] = (told.cursor, boottime() + (0 if told.text else reading.length / _IDLE_LOG_RATE))
        return told

    async def _read(self, job: RayJob, at: LogCursor) -> LogReader:
        reading = LogReader(at, job.entrypoint, job.id)
        try:
            await self._fetch(job, "-1", reading.take)
        except RemoteAway:
            if not reading.has_news:
                raise
            reading.is_truncated = (
                True  # return what was received: over a slow connection the next read would not be complete either
            )
        return reading

    async def _last_lines(self, job: RayJob, at: LogCursor) -> LogChunk:
        if at.is_end:
            return LogChunk("", at)
        last = LogTail()
        await self._fetch(job, str(TAIL_LINES), last.take)
        return last.told(at, job.id)

    async def _fetch(self, job: RayJob, lines: str, take: Callable[[bytes], bool]) -> None:
        """Read the last `lines` lines of a log ("-1": all); a log that was never written has none.

        Raises:
            _LogUnavailable: The node does not answer.
        """
        wanted = {"node_id": job.node, "filename": f"job-driver-{job.id}.log", "lines": lines, "timeout": _NODE_TIMEOUT}
        async with self._dashboard.asked("GET", "/api/v0/logs/file", query=wanted) as answer:
            if answer.status == 200:
                return await answer.pieces(take)
            said = await answer.text()
        if "file is not found" not in said:
            raise _LogUnavailable(self._dashboard.clean(last_line(said)))
        return None

    async def _is_there(self, node: str) -> bool:
        """Return whether the head reports the node alive; an unknown state counts as alive."""
        nodes = await self._nodes({"filter_keys": "node_id", "filter_predicates": "=", "filter_values": node})
        return nodes is None or any(_is_alive(node) for node in nodes)

    async def _nodes(self, wanted: dict[str, str]) -> list[object] | None:
        """Return the nodes known to the head; None if it reports none, as just after its start."""
        async with self._dashboard.asked("GET", "/api/v0/nodes", query=wanted) as answer:
            told = as_object((await answer.json()).get("data")) if answer.status == 200 else None
        found = as_object((told or {}).get("result")) or {}
        return as_list(found.get("result")) if as_number(found.get("total")) else None


def _is_alive(node: object) -> bool:
    return as_text((as_object(node) or {}).get("state")) != "DEAD"


def _first_line(message: str) -> str:
    """Return a message without the log tail that Ray appends, which was already returned."""
    return message.strip().split("\n")[0].partition(", last available logs")[0].rstrip(".: ")
