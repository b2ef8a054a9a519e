"""
Requests to the dashboard of Ray: bounded in time and size, and what goes wrong told in our own words.

The token goes into a header and nowhere else: it is taken out of whatever the other side says before that is shown.
No redirect is followed: a token is for the host that a person named.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from functools import lru_cache
from urllib.parse import urlsplit

import httpx

from taskyard.errors import BadValue, RemoteAway, RemoteRefused
from taskyard.harmless import safe
from taskyard.shapes import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping
    from ssl import SSLContext

    from taskyard.remote.remotes import Remote

#: Seconds until a connection is there, and between two pieces of an answer: the first submit to a new head takes three,
#: and it waits ten for a node that does not answer.
_CONNECT, _SILENCE = 10.0, 20.0

#: Seconds for a whole answer, however steadily it drips.
_LONGEST = 50.0

#: Bytes of an answer, beside a log: it repeats the command and the environment, which Linux keeps below this.
_LARGEST = 4 * 1024 * 1024

#: Bytes of an error that are read: enough for the stack of calls it shows, whose last line says what is wrong.
_LARGEST_ERROR = 64 * 1024

#: What stands for the token in text from the other side.
_HIDDEN = "…"

_NOT_RAY = "The url must be that of Ray's dashboard, such as http://head.example:8265."
_CREDENTIALS = (
    "A cluster started with RAY_AUTH_MODE=token takes its token as `Authorization: Bearer`: "
    "token_env or token_keyring of the remote says where it is, `ray get-auth-token` tells it."
)


class Answer:
    """One answer, whose body may still have to come."""

    def __init__(self, dashboard: Dashboard, response: httpx.Response) -> None:
        self._dashboard = dashboard
        self._response = response
        self.status = response.status_code

    async def pieces(self, take: Callable[[bytes], bool]) -> None:
        """Give the body piece by piece, until no more is wanted."""
        async for piece in self._response.aiter_raw():
            if not take(piece):
                return

    async def json(self) -> dict[str, object]:
        """The body, which must be an object.

        Raises:
            RemoteRefused: it is something else, or too long.
        """
        body = await self._body(_LARGEST)
        try:
            found = as_object(json.loads(body))
        except (ValueError, RecursionError):
            found = None
        if found is None:
            kind = self._response.headers.get("content-type", "something unnamed")
            raise self._dashboard.refused(f"its answer ({kind}) is none that Ray gives", _NOT_RAY)
        return found

    async def text(self) -> str:
        """The body as text, as far as anybody would read an error."""
        return (await self._body(_LARGEST_ERROR)).decode("utf-8", "replace")

    async def _body(self, most: int) -> bytes:
        """The body, or a little more than `most` bytes of it."""
        body = bytearray()

        def take(piece: bytes) -> bool:
            body.extend(piece)
            return len(body) <= most

        await self.pieces(take)
        return bytes(body)


class Dashboard:
    """The dashboard of a cluster, where its jobs are asked for."""

    def __init__(self, remote: Remote, token: str) -> None:
        """Connects to nothing yet.

        Raises:
            BadValue: the url cannot be one of a dashboard.
            RemoteRefused: the token cannot be one.
        """
        self._name = remote.name
        self._token = token
        if not (token.isascii() and token.isprintable()):
            raise RemoteRefused(self._name, "the token has characters that no token has", "Was a file read wrongly?")
        headers = {"accept-encoding": "identity"}  # what is packed may unpack to any size
        if token:
            headers["authorization"] = f"Bearer {token}"
        self._client = httpx.AsyncClient(
            base_url=_checked_url(remote),
            headers=headers,
            timeout=httpx.Timeout(_SILENCE, connect=_CONNECT),
            verify=_trusted(),
        )

    async def close(self) -> None:
        """Let go of connections."""
        await self._client.aclose()

    @asynccontextmanager
    async def asked(
        self, method: str, path: str, *, query: Mapping[str, str] | None = None, body: object = None
    ) -> AsyncGenerator[Answer]:
        """Ask, and give the answer while its body comes. Statuses that say that nothing was done are raised.

        Raises:
            RemoteRefused: the credentials are not taken, or what answers is no dashboard.
            RemoteAway: it cannot be reached, or breaks off.
        """
        try:
            async with (
                asyncio.timeout(_LONGEST),
                self._client.stream(method, path, params=query, json=body) as response,
            ):
                self._check(response)
                yield Answer(self, response)
        except (httpx.HTTPError, TimeoutError) as error:
            raise self.away(_why(error)) from error

    def refused(self, why: str, advice: str = "") -> RemoteRefused:
        """The error that says so."""
        return RemoteRefused(self._name, self.clean(why).rstrip("."), advice)

    def away(self, why: str) -> RemoteAway:
        """The error that says so."""
        return RemoteAway(self._name, self.clean(why).rstrip("."))

    def clean(self, text: str, *, lines: bool = False) -> str:
        """Text from the other side as it may be shown: harmless, and without the token."""
        return safe(text.replace(self._token, _HIDDEN) if self._token else text, lines=lines)

    def _check(self, response: httpx.Response) -> None:
        status = response.status_code
        if status in (401, 403):
            why = "it wants a token" if status == 401 and not self._token else "it does not take the token"
            raise self.refused(f"{why} (HTTP status {status})", _CREDENTIALS)
        if response.is_redirect or 300 <= status < 400:
            where = response.headers.get("location", "elsewhere")
            raise self.refused(f"it redirects to {where}, and no redirect is followed", _NOT_RAY)
        if response.headers.get("content-encoding", "identity") != "identity":
            raise self.refused("its answer is packed, which was not asked for", _NOT_RAY)
        if status in (408, 429, 502, 503, 504):
            raise self.away(f"it answers with HTTP status {status}")


@lru_cache(maxsize=1)
def _trusted() -> SSLContext:
    """Whose certificates are believed: read once, as that takes longer than most requests."""
    return httpx.create_ssl_context()


def last_line(text: str) -> str:
    """What an error that shows its stack of calls says in the end."""
    lines = [line.strip() for line in text.split("\n") if line.strip(" .\r\t")]
    return lines[-1] if lines else "it does not say why"


def _why(error: Exception) -> str:
    if isinstance(error, httpx.TimeoutException | TimeoutError):
        return "it does not answer in time"
    return str(error) or type(error).__name__


def _checked_url(remote: Remote) -> httpx.URL:
    setting, wanted = f"remotes.{remote.name}.url", "http:// or https:// and a host, such as http://head.example:8265"
    try:
        url = httpx.URL(urlsplit(remote.url).geturl())  # each finds faults that the other does not
    except (ValueError, httpx.InvalidURL):
        raise BadValue(setting, "…", wanted) from None
    if url.userinfo:
        raise BadValue(setting, "…", "an address without a password: token_env or token_keyring says where a token is")
    if url.scheme not in ("http", "https") or not url.host or url.query or url.fragment:
        raise BadValue(setting, remote.url, wanted)
    return url
