"""Somebody else's backend, published by an entry point: it knocks at a URL, and understands one word."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

from taskyard.errors import RemoteRefused
from taskyard.jobs.remote.backend import PollResult, Work
from taskyard.jobs.remote.remotes import Remote


class Knock:
    """A place that answers `welcome` to whoever has the token."""

    def __init__(self, remote: Remote, token: str = "") -> None:
        self._url = urlsplit(remote.url)
        self._name = remote.name
        self._token = token

    async def submit(self, work: Work) -> str:
        raise RemoteRefused(self._name, "it only opens")

    async def poll(self, session: str, cursor: str = "") -> PollResult:
        raise RemoteRefused(self._name, "it only opens")

    async def send(self, session: str, text: str) -> None:
        raise RemoteRefused(self._name, "it only opens")

    async def stop(self, session: str) -> None:
        raise RemoteRefused(self._name, "it only opens")

    async def close(self) -> None:
        pass

    async def probe(self) -> str:
        reader, writer = await asyncio.open_connection(self._url.hostname, self._url.port)
        try:
            writer.write(self._token.encode() + b"\n")
            said = (await reader.readline()).decode()
        finally:
            writer.close()
        if said.startswith("401"):
            raise RemoteRefused(self._name, f"401: it does not take {self._token}", "Ask for another token.")
        if said.strip() != "welcome":
            raise RemoteRefused(self._name, "something else is there")
        return "a door"
