"""
A place for tests, and for trying things out: scripted sessions in a small process beside us.

    python -m taskyard.remote.fake_place ~/place &        # it serves until it is ended, on this machine alone

    [remotes.here]
    backend = "fake"
    url = "file:///home/ada/place"

What a session does is its prompt, line by line (`fake_script`). Sessions live in that process: they go on whatever
becomes of those who ask for them, and are forgotten when it ends. Files in its folder are switches (`fake_place`).
"""

from __future__ import annotations

import asyncio
import json
import os

from taskyard.errors import BadValue, RemoteAway, RemoteRefused
from taskyard.remote.backend import RemoteState, Seen
from taskyard.shapes import as_object, as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.remote.backend import Work
    from taskyard.remote.remotes import Remote

#: The file in its folder that says where it listens.
ADDRESS = "address"

#: Bytes of an answer at most: what one poll tells, and room for the rest.
LONGEST_ANSWER = 4 * 1024 * 1024

_TEXTS = ("cursor", "text", "result", "error", "question")


class FakeBackend:
    """Speaks to a place that `fake_place` serves."""

    def __init__(self, remote: Remote, token: str = "") -> None:
        self._name = remote.name
        self._token = token
        self._folder = _folder_of(remote)

    async def submit(self, work: Work) -> str:
        """Begin the work, unless it has begun."""
        asked = work._asdict() | {"metadata": dict(work.metadata), "env": dict(work.env)}
        return as_text((await self._ask("submit", work=asked)).get("session"))

    async def poll(self, session: str, cursor: str = "") -> Seen:
        """How it stands, and what it said since."""
        told = await self._ask("poll", session=session, cursor=cursor)
        cursor, text, result, error, question = (as_text(told.get(key)) for key in _TEXTS)
        metadata = as_object(told.get("metadata")) or {}
        return Seen(RemoteState(as_text(told.get("state"))), cursor, text, result, error, question, metadata)

    async def send(self, session: str, text: str) -> None:
        """Answer what it asked."""
        await self._ask("send", session=session, text=text)

    async def stop(self, session: str) -> None:
        """End it, if it goes on."""
        await self._ask("stop", session=session)

    async def close(self) -> None:
        """Nothing stays open."""

    async def probe(self) -> str:
        """How many sessions it has."""
        count = (await self._ask("probe")).get("sessions")
        return f"a fake place with {count} sessions"

    async def _ask(self, verb: str, **words: object) -> dict[str, object]:
        host, port = self._address()
        try:
            reader, writer = await asyncio.open_connection(host, port, limit=LONGEST_ANSWER)
        except OSError as error:
            raise RemoteAway(self._name, error.strerror or str(error)) from error
        try:
            writer.write(json.dumps({"verb": verb, "token": self._token, **words}).encode() + b"\n")
            answer = as_object(json.loads(await reader.readline() or b"null"))
        except (OSError, ValueError) as error:
            raise RemoteAway(self._name, f"it broke off ({type(error).__name__})") from error
        finally:
            writer.close()
        if answer is None:
            raise RemoteAway(self._name, "it hung up")
        if "refused" in answer:
            raise RemoteRefused(self._name, as_text(answer["refused"]), as_text(answer.get("advice")))
        return answer

    def _address(self) -> tuple[str, int]:
        try:
            with open(os.path.join(self._folder, ADDRESS), encoding="ascii") as file:
                host, _, port = file.read().strip().rpartition(":")
            return host, int(port)
        except (OSError, ValueError) as error:
            advice = f"nobody serves {self._folder}; `python -m taskyard.remote.fake_place {self._folder}` does"
            raise RemoteAway(self._name, advice) from error


def _folder_of(remote: Remote) -> str:
    folder = remote.url.removeprefix("file://")
    if not os.path.isabs(folder):
        raise BadValue(f"remotes.{remote.name}.url", remote.url, "file:// and the whole path of a folder")
    return folder
