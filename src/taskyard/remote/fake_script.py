"""
What a session at a fake place does: the lines of its prompt, in order.

    /wait 0.5            nothing, for so many seconds
    /count 2000 0.001    says 1 to 2000, with so many seconds between
    /raw words           says words, without an end of the line
    /ask Which one?      asks, and says what it is answered
    /meta state merged   tells something of itself: JSON, or text
    /result words        its final answer
    /fail why            ends here, as failed
    /forever             goes on until it is stopped
    anything else        is said

A program in its place (`Work.command`) is run by sh, with the prompt in TASKYARD_PROMPT.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal

from taskyard.remote.backend import RemoteState, Seen, Work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

#: Bytes of text that one poll tells at most: longer ones come in parts, as at places that page.
_PAGE = 64 * 1024

#: Bytes of a program's output that are taken at a time.
_PART = 16 * 1024


class Failure(Exception):
    """Its script ends here; the text says why."""


class Session:
    """One session, from its first line to its end."""

    def __init__(self, work: Work) -> None:
        self.state = RemoteState.RUNNING
        self._work = work
        self._said = bytearray()
        self._facts: dict[str, object] = {"work": work.id, **work.metadata}
        self._result = self._error = self._question = ""
        self._answer: asyncio.Future[str] | None = None

    async def run(self) -> None:
        """Everything it was asked for, to whatever end."""
        try:
            await (self._program() if self._work.command else self._script())
            self.state = RemoteState.COMPLETED
        except Failure as failure:
            self._error, self.state = str(failure), RemoteState.FAILED
        except asyncio.CancelledError:
            self.state = RemoteState.STOPPED
        self._question = ""

    def told(self, cursor: str) -> Seen:
        """What it said since; it is over only for who has heard everything."""
        start = int(cursor or 0)
        end = len(self._said) if self.state.is_final else self._said.rfind(b"\n") + 1
        if end - start > _PAGE:
            line = self._said.find(b"\n", start + _PAGE)
            end = end if line < 0 else line + 1
        text = bytes(self._said[start:end]).decode("utf-8", "replace")
        if end < len(self._said) and self.state.is_final:
            return Seen(RemoteState.RUNNING, str(end), text, metadata=self._facts)
        return Seen(self.state, str(end), text, self._result, self._error, self._question, self._facts)

    def answer(self, text: str) -> bool:
        """Tell it something; False if it asked nothing."""
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
            while program.stdout is not None and (part := await program.stdout.read(_PART)):
                self._said += part
            if code := await program.wait():
                raise Failure(f"exit code {code}")
        finally:
            try:
                os.killpg(program.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it is over, with all it began

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
        raise Failure(why or "it failed")

    async def _forever(self, _: str) -> None:
        await asyncio.get_running_loop().create_future()


_VERBS: dict[str, Callable[[Session, str], Awaitable[None]]] = {
    "/wait": Session._wait,  # pyright: ignore[reportPrivateUsage]  # a table of its own verbs
    "/count": Session._count,  # pyright: ignore[reportPrivateUsage]
    "/raw": Session._raw,  # pyright: ignore[reportPrivateUsage]
    "/ask": Session._ask,  # pyright: ignore[reportPrivateUsage]
    "/meta": Session._meta,  # pyright: ignore[reportPrivateUsage]
    "/result": Session._set_result,  # pyright: ignore[reportPrivateUsage]
    "/fail": Session._fail,  # pyright: ignore[reportPrivateUsage]
    "/forever": Session._forever,  # pyright: ignore[reportPrivateUsage]
}
