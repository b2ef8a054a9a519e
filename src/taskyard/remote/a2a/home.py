"""
The one door to the network: requests go to the places that a person named, and to no other.

A card is written by whoever answers, and may name any host; a redirect may too. The token goes with every request, so
where a request may go is decided here, by the address in config.toml alone. Redirects are not followed. An answer is
bounded in bytes and in time, however slowly it comes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

import httpx

from taskyard.errors import BadValue, RemoteRefused

#: Bytes of an answer: a task comes with all its artifacts.
LONGEST_ANSWER = 32_000_000

#: In a request's extensions: bytes that the answer may have, if that is less.
MOST = "taskyard.most"

_PORTS = {"http": 80, "https": 443}


class TooLarge(Exception):
    """An answer is larger than any should be."""

    def __init__(self, most: int) -> None:
        super().__init__(f"more than {most} bytes")
        self.most = most


class Home(httpx.AsyncClient):
    """An HTTP client for one agent."""

    def __init__(self, remote: str, origins: Collection[str], token: str, *, seconds: float) -> None:
        """`remote`: its name, for errors. `seconds`: how long an answer may take, in all."""
        headers = {"Accept-Encoding": "identity", **({"Authorization": f"Bearer {token}"} if token else {})}
        super().__init__(headers=headers, timeout=seconds, follow_redirects=False)
        self._remote = remote
        self._origins = frozenset(origins)
        self._seconds = seconds

    async def send(self, request: httpx.Request, **how: Any) -> httpx.Response:  # pyright: ignore[reportIncompatibleMethodOverride]  # passed on as given
        """Send a request home, and have its answer whole.

        Raises:
            RemoteRefused: it would go elsewhere.
            TooLarge: its answer has no end.
            httpx.HTTPError: it did not go well.
        """
        if (origin := origin_of(str(request.url))) not in self._origins:
            raise RemoteRefused(self._remote, f"a request would have gone to {origin}, which is not where it is")
        try:
            async with asyncio.timeout(self._seconds):
                return await self._answered(request, how | {"stream": True, "follow_redirects": False})
        except TimeoutError as error:
            raise httpx.ReadTimeout(f"no answer in {self._seconds:.0f} s", request=request) from error

    async def _answered(self, request: httpx.Request, how: dict[str, Any]) -> httpx.Response:
        response = await super().send(request, **how)
        most = request.extensions.get(MOST, LONGEST_ANSWER)
        body = bytearray()
        try:
            async for part in response.aiter_bytes():
                body += part
                if len(body) > most:
                    raise TooLarge(most)
        finally:
            await response.aclose()
        headers = [(name, value) for name, value in response.headers.raw if name.lower() not in _OF_THE_WAY]
        return httpx.Response(response.status_code, headers=headers, content=bytes(body), request=request)


#: Headers of an answer that are true of how it came, not of what it is.
_OF_THE_WAY = (b"content-encoding", b"content-length", b"transfer-encoding")


def origin_of(url: str) -> str:
    """Scheme, host and port of an address, as one text; "" if it has none."""
    try:
        found = httpx.URL(url)
    except (httpx.InvalidURL, ValueError, TypeError):
        return ""
    if found.scheme not in _PORTS or not found.host:
        return ""
    host = f"[{found.host}]" if ":" in found.host else found.host
    return f"{found.scheme}://{host}:{found.port or _PORTS[found.scheme]}"


def checked(setting: str, url: object) -> str:
    """An address from config.toml, if it can be one.

    Raises:
        BadValue: it cannot.
    """
    if not isinstance(url, str) or not origin_of(url):
        raise BadValue(setting, url, "an address such as https://agents.example")
    if httpx.URL(url).userinfo:
        raise BadValue(setting, "…", "an address without a password: token_env or token_keyring name the token")
    return url
