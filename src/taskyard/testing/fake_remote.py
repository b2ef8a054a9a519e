"""The remote backend `fake`: scripted sessions in a local server process, for tests and experiments.

    python -m taskyard.testing.fake_remote ~/place &        # serves until it is stopped, on 127.0.0.1 only

    [remotes.here]
    backend = "fake"
    url = "file:///home/ada/place"

Sessions run in that process: they continue when their clients exit, and are forgotten when it exits. A session
executes its prompt line by line:

    /wait 0.5            sleep so many seconds
    /count 2000 0.001    print 1 to 2000, with so many seconds between
    /raw words           print words without a line end
    /ask Which one?      ask, and print the answer
    /meta state merged   set a metadata field: JSON, or text
    /result words        set the final answer
    /fail why            end here, as failed
    /forever             continue until it is stopped
    anything else        is printed

A program (`Work.command`) is run by sh instead, with the prompt in TASKYARD_PROMPT.

Files in the server's directory are switches, read with every request:

    token               clients must send the token in this file
    away                close every connection without a response, while the file exists
    slow                delay each response by the number of seconds in the file
    forgotten/SESSION   treat this session as unknown
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys

from taskyard.core import files
from taskyard.core.values import as_object, as_text
from taskyard.errors import BadValue, RemoteAway, RemoteRefused
from taskyard.jobs.remote.backend import PollResult, RemoteState, Work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from taskyard.jobs.remote.remotes import Remote


#: File in the server's directory with its address.
ADDRESS_FILE = "address"

#: Bytes of a response at most: the text of one poll, and room for the rest.
MAX_RESPONSE_BYTES = 4 * 1024 * 1024

_POLL_FIELDS = ("cursor", "text", "result", "error", "question")


class FakeBackend:
    """`RemoteBackend` for a `FakeServer`."""

    def __init__(self, remote: Remote, token: str = "") -> None:
        self._name = remote.name
        self._token = token
        self._folder = _server_dir(remote)

    async def submit(self, work: Work) -> str:
        """Start the work, unless it was started before."""
        asked = work._asdict() | {"metadata": dict(work.metadata), "env": dict(work.env)}
        return as_text((await self._ask("submit", work=asked)).get("session"))

    async def poll(self, session: str, cursor: str = "") -> PollResult:
        """Return the state of a session and its new output."""
        told = await self._ask("poll", session=session, cursor=cursor)
        cursor, text, result, error, question = (as_text(told.get(key)) for key in _POLL_FIELDS)
        metadata = as_object(told.get("metadata")) or {}
        return PollResult(RemoteState(as_text(told.get("state"))), cursor, text, result, error, question, metadata)

    async def send(self, session: str, text: str) -> None:
        """Answer the session's question."""
        await self._ask("send", session=session, text=text)

    async def stop(self, session: str) -> None:
        """Stop the session, if it is not over."""
        await self._ask("stop", session=session)

    async def close(self) -> None:
        """Do nothing: no connection stays open."""

    async def probe(self) -> str:
        """Return the number of sessions."""
        count = (await self._ask("probe")).get("sessions")
        return f"a fake place with {count} sessions"

    async def _ask(self, verb: str, **words: object) -> dict[str, object]:
        host, port = self._address()
        try:
            reader, writer = await asyncio.open_connection(host, port, limit=MAX_RESPONSE_BYTES)
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
            with open(os.path.join(self._folder, ADDRESS_FILE), encoding="ascii") as file:
                host, _, port = file.read().strip().rpartition(":")
            return host, int(port)
        except (OSError, ValueError) as error:
            advice = f"no server for {self._folder}; `python -m taskyard.testing.fake_remote {self._folder}` does"
            raise RemoteAway(self._name, advice) from error


def _server_dir(remote: Remote) -> str:
    folder = remote.url.removeprefix("file://")
    if not os.path.isabs(folder):
        raise BadValue(f"remotes.{remote.name}.url", remote.url, "file:// and the whole path of a folder")
    return folder


#: Bytes of text returned by one poll at most: longer text comes in pages, as from remotes that page.
_PAGE_BYTES = 64 * 1024

#: Bytes read of a program's output at a time.
_READ_BYTES = 16 * 1024


class ScriptFailure(Exception):
    """The script fails here, for the reason in the message."""


class FakeSession:
    """One scripted session."""

    def __init__(self, work: Work) -> None:
        self.state = RemoteState.RUNNING
        self._work = work
        self._said = bytearray()
        self._facts: dict[str, object] = {"work": work.id, **work.metadata}
        self._result = self._error = self._question = ""
        self._answer: asyncio.Future[str] | None = None

    async def run(self) -> None:
        """Execute the program or script, and set the final state."""
        try:
            await (self._program() if self._work.command else self._script())
            self.state = RemoteState.COMPLETED
        except ScriptFailure as failure:
            self._error, self.state = str(failure), RemoteState.FAILED
        except asyncio.CancelledError:
            self.state = RemoteState.STOPPED
        self._question = ""

    def told(self, cursor: str) -> PollResult:
        """Return the output since `cursor`; a final state only once all output is returned."""
        start = int(cursor or 0)
        end = len(self._said) if self.state.is_final else self._said.rfind(b"\n") + 1
        if end - start > _PAGE_BYTES:
            line = self._said.find(b"\n", start + _PAGE_BYTES)
            end = end if line < 0 else line + 1
        text = bytes(self._said[start:end]).decode("utf-8", "replace")
        if end < len(self._said) and self.state.is_final:
            return PollResult(RemoteState.RUNNING, str(end), text, metadata=self._facts)
        return PollResult(self.state, str(end), text, self._result, self._error, self._question, self._facts)

    def answer(self, text: str) -> bool:
        """Answer the session's question; False if it asked none."""
        if self._answer is None or self._answer.done():
            return False
        self._answer.set_result(text)
        return True

    async def _script(self) -> None:
        for line in self._work.prompt.splitlines():
            verb, _, rest = line.partition(" ")
            act = _VERBS.get(verb)
            if act is None:
                self._say(line + "\n")
            else:
                await act(self, rest)

    async def _program(self) -> None:
        environ = os.environ | dict(self._work.env) | {"TASKYARD_PROMPT": self._work.prompt}
        program = await asyncio.create_subprocess_exec(
            "sh", "-c", self._work.command, env=environ, start_new_session=True,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        try:
            while program.stdout is not None and (part := await program.stdout.read(_READ_BYTES)):
                self._said += part
            if code := await program.wait():
                raise ScriptFailure(f"exit code {code}")
        finally:
            try:
                os.killpg(program.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it has exited, with all its children

    def _say(self, text: str) -> None:
        self._said += text.encode("utf-8", "replace")

    async def _wait(self, seconds: str) -> None:
        await asyncio.sleep(float(seconds))

    async def _count(self, words: str) -> None:
        most, _, pause = words.partition(" ")
        for number in range(1, int(most) + 1):
            self._say(f"{number}\n")
            await asyncio.sleep(float(pause or 0))

    async def _raw(self, text: str) -> None:
        self._say(text)

    async def _ask(self, question: str) -> None:
        self._answer = asyncio.get_running_loop().create_future()
        self.state, self._question = RemoteState.NEEDS_INPUT, question
        answer = await self._answer
        self.state, self._question = RemoteState.RUNNING, ""
        self._say(answer + "\n")

    async def _meta(self, words: str) -> None:
        key, _, value = words.partition(" ")
        try:
            self._facts[key] = json.loads(value)
        except ValueError:
            self._facts[key] = value

    async def _set_result(self, text: str) -> None:
        self._result = text

    async def _fail(self, why: str) -> None:
        raise ScriptFailure(why or "it failed")

    async def _forever(self, _: str) -> None:
        await asyncio.get_running_loop().create_future()


_VERBS: dict[str, Callable[[FakeSession, str], Awaitable[None]]] = {
    "/wait": FakeSession._wait,  # pyright: ignore[reportPrivateUsage]  # a table of its own verbs
    "/count": FakeSession._count,  # pyright: ignore[reportPrivateUsage]
    "/raw": FakeSession._raw,  # pyright: ignore[reportPrivateUsage]
    "/ask": FakeSession._ask,  # pyright: ignore[reportPrivateUsage]
    "/meta": FakeSession._meta,  # pyright: ignore[reportPrivateUsage]
    "/result": FakeSession._set_result,  # pyright: ignore[reportPrivateUsage]
    "/fail": FakeSession._fail,  # pyright: ignore[reportPrivateUsage]
    "/forever": FakeSession._forever,  # pyright: ignore[reportPrivateUsage]
}


#: Poll result of an unknown session.
_UNKNOWN_SESSION = PollResult(RemoteState.LOST, "", error="no such session here")


class RequestRefused(Exception):
    """The request is refused, for the reason in the message."""


class FakeServer:
    """Serves all sessions, by id, and reads the switches."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._sessions: dict[str, FakeSession] = {}
        self._session_ids: dict[str, str] = {}
        self._running: dict[str, asyncio.Task[None]] = {}

    async def serve(self) -> None:
        """Serve until the process is stopped."""
        server = await asyncio.start_server(self._on_connection, "127.0.0.1", 0, limit=MAX_RESPONSE_BYTES)
        host, port = server.sockets[0].getsockname()
        files.replace(os.path.join(self._folder, ADDRESS_FILE), f"{host}:{port}\n".encode())
        async with server:
            await server.serve_forever()

    async def _on_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            asked = as_object(json.loads(await reader.readline() or b"null")) or {}
            if (pause := self._switch("slow")) is not None:
                await asyncio.sleep(float(pause))
            if self._switch("away") is None:
                writer.write(json.dumps(self._answered(asked)).encode() + b"\n")
                await writer.drain()
        except (OSError, ValueError):
            pass  # the client is gone, or is not one of ours
        finally:
            writer.close()

    def _answered(self, asked: dict[str, object]) -> dict[str, object]:
        wanted = self._switch("token")
        if wanted is not None and wanted != as_text(
            asked.get("token")
        ):  # a server for tests: the comparison need not be constant-time
            return {"refused": "401: it does not take this token", "advice": f"See {self._folder}/token."}
        try:
            return self._done(as_text(asked.get("verb")), asked)
        except RequestRefused as refusal:
            return {"refused": str(refusal)}

    def _done(self, verb: str, asked: dict[str, object]) -> dict[str, object]:
        name = as_text(asked.get("session"))
        session = None if self._switch(f"forgotten/{name}") is not None else self._sessions.get(name)
        if verb == "probe":
            return {"sessions": len(self._sessions)}
        if verb == "submit":
            return {"session": self._begun(as_object(asked.get("work")) or {})}
        if verb == "poll":
            return (session.told(as_text(asked.get("cursor"))) if session else _UNKNOWN_SESSION)._asdict()
        if verb == "stop":
            if session is not None and not session.state.is_final:
                self._running[name].cancel()
            return {}
        if verb == "send":
            if session is None or not session.answer(as_text(asked.get("text"))):
                raise RequestRefused("it asks nothing now" if session else "no such session here")
            return {}
        raise RequestRefused(f"it cannot {verb}")

    def _begun(self, asked: dict[str, object]) -> str:
        texts = {key: as_text(asked.get(key)) for key in ("id", "prompt", "command")}
        maps = {key: _text_items(asked.get(key)) for key in ("metadata", "env")}
        work = Work(texts["id"], texts["prompt"], texts["command"], maps["metadata"], maps["env"])
        if work.id not in self._session_ids:
            name = f"fake-{os.urandom(6).hex()}"
            session = self._sessions[name] = FakeSession(work)
            self._session_ids[work.id] = name
            self._running[name] = asyncio.create_task(session.run())
        return self._session_ids[work.id]

    def _switch(self, name: str) -> str | None:
        try:
            with open(os.path.join(self._folder, name), encoding="utf-8") as file:
                return file.read().strip()
        except OSError:
            return None


def _text_items(value: object) -> dict[str, str]:
    return {key: each for key, each in (as_object(value) or {}).items() if isinstance(each, str)}


if __name__ == "__main__":
    files.make_private_folder(os.path.abspath(sys.argv[1]))
    try:
        asyncio.run(FakeServer(os.path.abspath(sys.argv[1])).serve())
    except KeyboardInterrupt:
        pass
