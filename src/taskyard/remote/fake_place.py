"""
The process behind a fake place: it listens on this machine alone, and runs scripted sessions.

Files in its folder are switches, looked at with every request:

    token               whoever asks must have the token that stands in it
    away                whoever asks is hung up on, as long as the file is there
    slow                an answer takes as many seconds as stand in it
    forgotten/SESSION   it knows nothing of this session, any more
"""

from __future__ import annotations

import asyncio
import json
import os
import sys

from taskyard.disk import files
from taskyard.remote.backend import RemoteState, Seen, Work
from taskyard.remote.fake import ADDRESS, LONGEST_ANSWER
from taskyard.remote.fake_script import Session
from taskyard.shapes import as_object, as_text

#: What it knows of a session that it does not know.
_UNKNOWN = Seen(RemoteState.LOST, "", error="no such session here")


class Refusal(Exception):
    """It will not; the text says why."""


class Place:
    """Every session there is, by its id, and the switches."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._sessions: dict[str, Session] = {}
        self._of_work: dict[str, str] = {}
        self._running: dict[str, asyncio.Task[None]] = {}

    async def serve(self) -> None:
        """Answer until it is ended."""
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=LONGEST_ANSWER)
        host, port = server.sockets[0].getsockname()
        files.replace(os.path.join(self._folder, ADDRESS), f"{host}:{port}\n".encode())
        async with server:
            await server.serve_forever()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            asked = as_object(json.loads(await reader.readline() or b"null")) or {}
            if (pause := self._switch("slow")) is not None:
                await asyncio.sleep(float(pause))
            if self._switch("away") is None:
                writer.write(json.dumps(self._answered(asked)).encode() + b"\n")
                await writer.drain()
        except (OSError, ValueError):
            pass  # whoever asked is gone, or is no client of ours
        finally:
            writer.close()

    def _answered(self, asked: dict[str, object]) -> dict[str, object]:
        wanted = self._switch("token")
        if wanted is not None and wanted != as_text(asked.get("token")):  # a place to play with: no secret to keep
            return {"refused": "401: it does not take this token", "advice": f"See {self._folder}/token."}
        try:
            return self._done(as_text(asked.get("verb")), asked)
        except Refusal as refusal:
            return {"refused": str(refusal)}

    def _done(self, verb: str, asked: dict[str, object]) -> dict[str, object]:
        name = as_text(asked.get("session"))
        session = None if self._switch(f"forgotten/{name}") is not None else self._sessions.get(name)
        if verb == "probe":
            return {"sessions": len(self._sessions)}
        if verb == "submit":
            return {"session": self._begun(as_object(asked.get("work")) or {})}
        if verb == "poll":
            return (session.told(as_text(asked.get("cursor"))) if session else _UNKNOWN)._asdict()
        if verb == "stop":
            if session is not None and not session.state.is_final:
                self._running[name].cancel()
            return {}
        if verb == "send":
            if session is None or not session.answer(as_text(asked.get("text"))):
                raise Refusal("it asks nothing now" if session else "no such session here")
            return {}
        raise Refusal(f"it cannot {verb}")

    def _begun(self, asked: dict[str, object]) -> str:
        texts = {key: as_text(asked.get(key)) for key in ("id", "prompt", "command")}
        maps = {key: _texts(asked.get(key)) for key in ("metadata", "env")}
        work = Work(texts["id"], texts["prompt"], texts["command"], maps["metadata"], maps["env"])
        if work.id not in self._of_work:
            name = f"fake-{os.urandom(6).hex()}"
            session = self._sessions[name] = Session(work)
            self._of_work[work.id] = name
            self._running[name] = asyncio.create_task(session.run())
        return self._of_work[work.id]

    def _switch(self, name: str) -> str | None:
        try:
            with open(os.path.join(self._folder, name), encoding="utf-8") as file:
                return file.read().strip()
        except OSError:
            return None


def _texts(value: object) -> dict[str, str]:
    return {key: each for key, each in (as_object(value) or {}).items() if isinstance(each, str)}


if __name__ == "__main__":
    files.make_private_folder(os.path.abspath(sys.argv[1]))
    try:
        asyncio.run(Place(os.path.abspath(sys.argv[1])).serve())
    except KeyboardInterrupt:
        pass
