"""
One run of an agent: hello, a session, a turn for the prompt and one for whatever was sent meanwhile, the end.

Every wait is bounded: for an answer to hello and to a new session by `agent_start`, in the middle of a turn by
`agent_silence` without a word. A program that dies, falls silent or talks nonsense has failed, and never answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

from acp import PROTOCOL_VERSION, text_block
from acp.client.connection import ClientSideConnection
from acp.exceptions import RequestError
from acp.schema import (
    AgentCapabilities,
    ClientCapabilities,
    EnvVariable,
    Implementation,
    InitializeResponse,
    McpServerStdio,
    PromptResponse,
)

from taskyard import __version__, config
from taskyard.engines import own_server, quiet
from taskyard.engines.acp import gemini_sessions
from taskyard.engines.acp.models import choose
from taskyard.engines.acp.updates import FAILURES, Memory, Updates
from taskyard.engines.acp.wire import Wire
from taskyard.engines.engine import Brief, RateLimit, Said
from taskyard.engines.json_lines import PASSING
from taskyard.engines.limit_text import LONGEST_REASON, lifts_at, limit_in
from taskyard.engines.load import is_load
from taskyard.engines.opencode import MOST_ERRORS, permission_settings, stream_error
from taskyard.engines.process import Program
from taskyard.shapes import as_object, as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.engines.engine import Watcher

T = TypeVar("T")

#: Seconds for an agent that is to stop to say so; it is ended right after, and the whole has to fit a job's grace.
_CANCELLING = 1.5

#: Seconds in which a program that closed its output is expected to be gone.
_DYING = 2.0

#: What the protocol answers where somebody has to log in first.
_AUTH_REQUIRED = -32000

#: Seconds of silence that end the history of a session, whose messages follow each other without a pause; and for all.
_HISTORY_PAUSE, _LONGEST_HISTORY = 0.5, 10.0

#: Characters of an error that are repeated.
_LONGEST = 1_000


class Failed(Exception):
    """The run is over, with nothing to show; says why."""

    def __init__(self, why: str, *, is_retryable: bool = False, rate_limit: RateLimit | None = None) -> None:
        super().__init__(why)
        self.said = Said(error=why, is_retryable=is_retryable, rate_limit=rate_limit)


async def run(brief: Brief, watcher: Watcher, memory: Memory) -> Said:
    """What came of it. The session in `memory` is the one to go on with, where the agent can."""
    quiet.keep_libraries_quiet()
    brief = own_server.permitted(brief)
    if os.path.basename(brief.command[0]) == "opencode":  # it asks about nothing unless its rules say so
        brief = brief._replace(env={**brief.env, **permission_settings(brief)})
    brief = brief._replace(env={**_codex_mode(brief), **brief.env})
    try:
        program = await Program.start(brief.command, brief, watcher)
    except OSError as error:
        return Said(error=f"{brief.command[0]} cannot be started: {error.strerror}")
    async with program:
        one = _Run(brief, watcher, program, memory)
        try:
            said = await one.work()
            await program.hang_up()  # most agents end by themselves, in good order, when nobody talks to them any more
            return said
        except Failed as failure:
            return failure.said
        finally:
            await one.close()


def _codex_mode(brief: Brief) -> dict[str, str]:
    """What has Codex' adapter ask a person: in its default mode a model reviews requests."""
    if os.path.basename(brief.command[0]) != "codex-acp" or brief.permissions not in _CODEX_MODES:
        return {}
    return {"INITIAL_AGENT_MODE": _CODEX_MODES[brief.permissions]}


class _Run:
    """One program, from hello to its end."""

    def __init__(self, brief: Brief, watcher: Watcher, program: Program, memory: Memory) -> None:
        self._brief = brief
        self._watcher = watcher
        self._program = program
        self._wire = Wire(program, watcher)
        self._memory = memory
        self._updates = Updates(watcher, memory, folder=brief.cwd, permissions=brief.permissions, reads=brief.reads)
        self._errors = 0
        self._failed: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        program.on_stderr = self._log
        self._agent = ClientSideConnection(self._updates, self._wire)  # type: ignore[arg-type]  # what we offer of it
        self._sent: list[str] = []
        self._reading = asyncio.create_task(self._read_messages())
        self._session = ""

    async def work(self) -> Said:
        """Greet it, and give it one prompt after the other."""
        await self._open()
        prompt = self._brief.prompt
        while True:
            said = await self._turn(prompt)
            if said.error or not self._sent:
                return said
            prompt = "\n\n".join(self._sent)
            self._sent.clear()
            self._watcher.record({"type": "user", "text": prompt})

    async def close(self) -> None:
        """Nothing more is heard."""
        self._reading.cancel()
        self._updates.speech.pause()
        await self._agent.close()

    async def _read_messages(self) -> None:
        async for text in self._watcher.messages():
            self._sent.append(text)

    # -- hello --------------------------------------------------------------------------------

    async def _open(self) -> None:
        try:
            hello: InitializeResponse = await self._soon("initialize", self._agent.initialize(
                protocol_version=PROTOCOL_VERSION,
                client_capabilities=ClientCapabilities(field_meta=FAILURES),
                client_info=Implementation(name="taskyard", title="Taskyard", version=__version__),
            ))  # fmt: skip
        except RequestError as error:
            raise self._refused("`initialize`", error) from error
        if hello.protocol_version != PROTOCOL_VERSION:
            raise Failed(f"it speaks version {hello.protocol_version} of the protocol, not {PROTOCOL_VERSION}")
        try:
            await self._enter(hello.agent_capabilities or AgentCapabilities())
        except RequestError as error:
            if error.code == _AUTH_REQUIRED:
                ways = ", ".join(one.name for one in hello.auth_methods or [])
                why = f"somebody has to log in to it first{f' ({ways})' if ways else ''}: start it once by hand"
                raise Failed(why) from error
            raise self._refused("a session", error) from error

    async def _enter(self, can: AgentCapabilities) -> None:
        """Go on with the session there was, or begin one."""
        where: dict[str, Any] = {"cwd": self._brief.cwd, "mcp_servers": self._servers()}
        abilities, before = can.session_capabilities, self._memory.session
        if before is not None and await self._is_entered(before, can, where):
            self._session = before
            self._updates.goes_on()
        else:
            made = await self._soon("session/new", self._agent.new_session(**where))
            self._session = self._memory.session = made.session_id
            self._memory.is_ours = True
            await self._choose_model(made.config_options or [])
        if can.load_session or (abilities is not None and abilities.resume is not None):
            self._watcher.record({"type": "system", "subtype": "init", "session_id": self._session})

    async def _is_entered(self, before: str, can: AgentCapabilities, where: dict[str, Any]) -> bool:
        """Whether the session there was goes on: an agent may not be able to, or know it no longer."""
        abilities = can.session_capabilities
        self._updates.is_muted = True  # what it repeats of it is known
        try:
            if abilities is not None and abilities.resume is not None:
                await self._soon("session/resume", self._agent.resume_session(session_id=before, **where))
            elif can.load_session:
                is_gemini = gemini_sessions.is_known(before, self._brief.env)
                if is_gemini:
                    await self._await_next_minute(before)
                await self._soon("session/load", self._agent.load_session(session_id=before, **where))
                if is_gemini:
                    await self._await_end_of_history()
            elif not self._memory.is_ours:
                raise Failed(f"it cannot go on with conversation {before!r}: it keeps none")
            else:
                return False
        except RequestError as error:
            if not self._memory.is_ours:
                raise  # somebody wants this one, and no other
            self._watcher.record({"type": "note", "text": f"its session cannot go on: {str(error)[:_LONGEST]}"})
            return False
        finally:
            self._updates.is_muted = False
        return True

    async def _await_next_minute(self, session: str) -> None:
        """Wait until Gemini CLI can load a session without overwriting it."""
        seconds = gemini_sessions.unsafe_for(session, self._brief.env, now=time.time())
        if seconds > 0:
            why = f"Gemini CLI cannot load a session in the minute in which it began: waiting {seconds:.0f} s"
            self._watcher.record({"type": "note", "text": why})
            await asyncio.sleep(seconds)

    async def _await_end_of_history(self) -> None:
        """Wait for what Gemini CLI repeats of a session: it sends that after its answer to `session/load`."""
        deadline = time.monotonic() + _LONGEST_HISTORY
        self._wire.heard_at = time.monotonic()
        until = min(self._wire.heard_at + _HISTORY_PAUSE, deadline)
        while (left := until - time.monotonic()) > 0:
            await asyncio.sleep(left)
            until = min(self._wire.heard_at + _HISTORY_PAUSE, deadline)

    async def _choose_model(self, settings: list[Any]) -> None:
        if not self._brief.model:
            return
        wanted = choose(self._brief.model, settings)
        if wanted.error:
            raise Failed(wanted.error)
        await self._soon("session/set_config_option", self._agent.set_config_option(
            config_id=wanted.config_id, session_id=self._session, value=wanted.value
        ))  # fmt: skip

    def _servers(self) -> list[Any]:
        """Our own tools for it, where they can be had."""
        if not (self._brief.own_tools and own_server.is_there()):
            return []
        command, *args = own_server.words(self._brief)
        env = [EnvVariable(name=name, value=value) for name, value in own_server.environment(self._brief).items()]
        return [McpServerStdio(name="taskyard", command=command, args=args, env=env)]

    async def _soon(self, what: str, asking: Coroutine[Any, Any, T]) -> T:
        """An answer that every agent gives at once."""
        patience = config.load().agent_start
        try:
            return await asyncio.wait_for(asking, patience)
        except TimeoutError:
            raise Failed(f"it did not answer `{what}` within {patience:g} s{self._last_words()}") from None
        except ConnectionError:
            raise await self._gone(is_retryable=False) from None
        except ValueError as error:
            raise Failed(f"its answer to `{what}` is not what the protocol says: {str(error)[:_LONGEST]}") from error

    # -- a turn -------------------------------------------------------------------------------

    async def _turn(self, prompt: str) -> Said:
        self._updates.begin()
        self._wire.heard_at = time.monotonic()
        asking = asyncio.create_task(self._agent.prompt(session_id=self._session, prompt=[text_block(prompt)]))
        try:
            await self._until_done(asking)
            return self._said(await asking)
        except ConnectionError:
            raise await self._gone(is_retryable=True) from None
        except RequestError as error:
            raise self._refused("the prompt", error) from error
        except ValueError as error:
            raise Failed(f"its answer is not what the protocol says: {str(error)[:_LONGEST]}") from error
        except asyncio.CancelledError:
            await self._cancel(asking)
            raise
        finally:
            asking.cancel()

    async def _until_done(self, asking: asyncio.Task[PromptResponse]) -> None:
        """Wait for the end of the turn, for as long as the agent gives signs of life or somebody has to answer it."""
        patience = config.load().agent_silence
        while not asking.done():
            if self._updates.asking:
                self._wire.heard_at = time.monotonic()
            left = patience - (time.monotonic() - self._wire.heard_at)
            if left <= 0:
                raise Failed(f"it said nothing for {patience:g} s{self._last_words()}", is_retryable=True)
            either: set[asyncio.Future[Any]] = {asking, self._failed}
            await asyncio.wait(either, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if self._failed.done() and not asking.done():
                raise self._failure(self._failed.result(), kind="server_error")  # opencode retries no other error

    def _said(self, response: PromptResponse) -> Said:
        updates = self._updates
        updates.end()
        updates.reports({"_meta": response.field_meta})
        self._count(response)
        if updates.failure is not None:
            category, words = updates.failure
            raise self._failure(words or "its turn failed", kind=category)
        return Said(updates.speech.answer, _WHY.get(response.stop_reason, ""), refused=tuple(updates.refused))

    def _count(self, response: PromptResponse) -> None:
        """Count the tokens of a turn, whichever way the agent tells them."""
        if (usage := response.usage) is None:
            quota = as_object((as_object(response.field_meta) or {}).get("quota")) or {}
            counted = as_object(quota.get("token_count")) or {}  # Gemini CLI: of all requests of the turn
            spent = sum(value for value in counted.values() if type(value) is int)
            self._watcher.used_tokens({"spent_tokens": spent})
            return
        inputs = {
            "input_tokens": usage.input_tokens,
            "cache_read_input_tokens": usage.cached_read_tokens,
            "cache_creation_input_tokens": usage.cached_write_tokens,
        }
        if self._updates.used is None:
            self._watcher.used_tokens({**inputs, "output_tokens": usage.output_tokens})
        elif self._updates.used == sum(value or 0 for value in inputs.values()):
            self._watcher.used_tokens({"output_tokens": usage.output_tokens})  # most agents count it in `used`

    async def _cancel(self, asking: asyncio.Task[PromptResponse]) -> None:
        """Ask it to stop, as the protocol has it. It is ended right after, whatever it answers."""
        with contextlib.suppress(Exception):
            async with asyncio.timeout(_CANCELLING):
                await self._agent.cancel(session_id=self._session)
                await asyncio.wait({asking})

    # -- what goes wrong ----------------------------------------------------------------------

    async def _gone(self, *, is_retryable: bool) -> Failed:
        """Why there is nobody to talk to any more."""
        if self._wire.fault:
            return Failed(self._wire.fault)
        with contextlib.suppress(TimeoutError):
            code = await asyncio.wait_for(self._program.ended(), _DYING)
            how = f"exit code {code}" if code >= 0 else f"signal {-code}"
            return Failed(f"it ended in the middle ({how}){self._last_words()}", is_retryable=is_retryable)
        return Failed(f"it closed its output in the middle{self._last_words()}", is_retryable=is_retryable)

    def _refused(self, what: str, error: RequestError) -> Failed:
        detail = f"{error} {error.data}" if error.data else str(error)
        return self._failure(
            f"it refused {what}: {detail[:_LONGEST]}{self._last_words()}",
            detail=detail,
            kind=as_text((as_object(error.data) or {}).get("errorKind")),
        )

    def _failure(self, why: str, *, detail: str = "", kind: str = "") -> Failed:
        """What an error means: a rate limit, something that may pass, or neither."""
        detail = detail or why
        provider = _PROVIDERS.get(self._brief.command[0].rsplit("/", 1)[-1], self._brief.command[0])
        limit = limit_in(detail, provider=provider, now=time.time())
        if limit is None and (kind in _LIMITED or "exhausted" in detail):
            until = lifts_at(detail, now=time.time())
            reason = " ".join(detail.split())[:LONGEST_REASON]
            limit = RateLimit(provider, reason, None if until is None else round(until * 1000))
        passes = limit is not None or is_load(detail) or kind == "server_error" or PASSING.search(detail) is not None
        return Failed(why, is_retryable=passes, rate_limit=limit)

    def _log(self, line: str) -> None:
        """The program opencode tries a failed request again for ever, and tells of it in its log alone."""
        if (error := stream_error(line)) is None or self._failed.done():
            return
        self._errors += 1
        if self._errors >= MOST_ERRORS or limit_in(error, provider="", now=time.time()) is not None:
            self._failed.set_result(error)

    def _last_words(self) -> str:
        return f": {self._program.last_words}" if self._program.last_words else ""


#: Who serves the model of each program, as people know it.
_PROVIDERS = {"claude-agent-acp": "anthropic", "codex-acp": "openai", "gemini": "google"}

#: The modes of Codex' adapter in which a person decides, by ours.
_CODEX_MODES = {"ask": "read-only", "edit": "workspace-write"}

#: What agents call an error that is a rate limit.
_LIMITED = ("rate_limit", "rate_limited", "usage_limit", "overloaded")

#: Why a turn ended, where that is no answer.
_WHY = {
    "max_tokens": "it reached the most tokens it may use in a turn, before it was done",
    "max_turn_requests": "it reached the most requests it may make in a turn, before it was done",
    "refusal": "it refused to go on",
    "cancelled": "it says that it was cancelled, before it was done",
}
