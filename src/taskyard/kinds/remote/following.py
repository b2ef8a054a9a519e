"""An agent elsewhere, followed from its first word to its last."""

from __future__ import annotations

import asyncio
import random

from taskyard.errors import StorageError
from taskyard.kinds.agent_messages import received
from taskyard.kinds.remote import results
from taskyard.kinds.remote.checking import Checking
from taskyard.kinds.remote.ending import end_there
from taskyard.kinds.remote.line import Line, Trouble
from taskyard.kinds.remote.sidecar import Sidecar
from taskyard.kinds.remote.writing import Writing
from taskyard.remote import ultraplan
from taskyard.remote.backend import RemoteState, Work
from taskyard.remote.pace import next_wait
from taskyard.remote.remotes import remote_named
from taskyard.runtime.kind import Outcome, in_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from taskyard.kinds.remote_agent import RemoteAgent
    from taskyard.remote.backend import RemoteBackend, Seen
    from taskyard.runtime.context import JobContext

#: Characters of a question that are shown.
_LONGEST_QUESTION = 2_000


async def follow(spec: RemoteAgent, context: JobContext) -> Outcome:
    """Begin it, unless that was done before, and stay with it to its end."""
    return await Following(spec, context).run()


def _sending(session: str, text: str) -> Callable[[RemoteBackend], Awaitable[None]]:
    return lambda backend: backend.send(session, text)


class Following:
    """One session, and the job that stands for it here."""

    def __init__(self, spec: RemoteAgent, context: JobContext) -> None:
        self._spec = spec
        self._context = context
        self._sidecar = Sidecar(spec, context)
        self._writing = Writing(context, self._sidecar)
        self._line = Line(spec.remote, context)
        self._checking = Checking(spec.remote_task_type, context, spec.checker)
        self._news = asyncio.Event()  # something is to be sent
        self._phase = str(context.facts.known.get("ultraplanPhase") or "")
        self._quiet = 0

    async def run(self) -> Outcome:
        """How it went."""
        reading = asyncio.ensure_future(self._read())
        try:
            if self._context.is_being_ended():
                raise asyncio.CancelledError  # the process before us did not live to carry that out
            return await self._followed()
        except asyncio.CancelledError:
            if self._context.is_being_ended():
                await self._end()
            raise  # else this process alone is to end: another will go on
        finally:
            reading.cancel()
            await self._line.close()

    async def _followed(self) -> Outcome:
        if (refused := await self._begun()) is not None:
            return refused
        while True:
            await self._send()
            seen = await self._polled()
            if seen is None:
                continue
            complete = await self._checking.ask(self._metadata(seen))
            if complete is not None:
                if not seen.state.is_final:
                    await self._end()  # nobody would look after it
                return Outcome(complete, facts={"notice": complete})
            if seen.state.is_final:
                return self._outcome(seen)
            await self._rest(next_wait(quick=self._line.quick, quiet=self._quiet))

    async def _begun(self) -> Outcome | None:
        """See that there is a session; None if so, else how that failed."""
        while not self._sidecar.place.session:
            self._sidecar.may_have_begun = True
            self._sidecar.save()  # whoever finds it without a session knows that one may have begun
            try:
                session = await self._line.ask(lambda backend: backend.submit(self._work()))
            except Trouble as trouble:
                if trouble.refused:
                    return Outcome(error=trouble.why)
                await self._wait_out(trouble)
                continue
            self._line.found()
            self._sidecar.save(session=session)
        if not self._sidecar.may_have_begun:  # a session that was there before us
            self._sidecar.save(unsent=(self._spec.prompt,) if self._spec.prompt.strip() else ())
        self._context.tell(sessionId=self._sidecar.place.session)
        return None

    def _work(self) -> Work:
        command = self._spec.command or remote_named(self._spec.remote).command
        metadata = {**self._spec.metadata, "remoteTaskType": self._spec.remote_task_type}
        return Work(self._context.id, self._spec.prompt, command, metadata)

    async def _polled(self) -> Seen | None:
        """What came since the last time, written down and shown; None if the place could not be asked."""
        place = self._sidecar.place
        try:
            seen = await self._line.ask(lambda backend: backend.poll(place.session, place.cursor))
        except Trouble as trouble:
            await self._wait_out(trouble)
            return None
        try:
            self._writing.add(seen.text, seen.cursor)
            self._line.found()
            self._show(seen)
        except (OSError, StorageError) as error:  # no room, perhaps: what it says is kept there meanwhile
            self._writing = Writing(self._context, self._sidecar)
            await self._wait_out(Trouble(f"what it says cannot be written here: {in_words(error)}"))
            return None
        self._quiet = 0 if seen.text else self._quiet + 1
        return seen

    def _show(self, seen: Seen) -> None:
        facts: dict[str, object] = {}
        if seen.metadata:
            facts["remoteTaskMetadata"] = self._metadata(seen)
        if self._spec.remote_task_type == "ultraplan":
            self._phase = ultraplan.phase_after(self._phase, seen.text.splitlines())
            facts["ultraplanPhase"] = ultraplan.phase_shown(self._phase, seen.state)
        asks = seen.state is RemoteState.NEEDS_INPUT
        was_asking = self._context.facts.known.get("needsInput") is True
        question = seen.question[-_LONGEST_QUESTION:] if asks else ""
        facts |= {"needsInput": asks, "question": question} if asks or was_asking else {}
        if facts and self._context.tell(**facts) and asks != was_asking:
            self._context.progress(needs_input=asks)

    def _metadata(self, seen: Seen) -> dict[str, object]:
        return {**self._spec.metadata, **seen.metadata}

    def _outcome(self, seen: Seen) -> Outcome:
        self._context.tell(needsInput=False, question="")
        if seen.state is RemoteState.COMPLETED:
            return Outcome(results.result_of(self._spec.remote_task_type, seen.result, self._context))
        why = {RemoteState.STOPPED: f"it was stopped at {self._spec.remote}"}.get(seen.state, "Unknown error")
        if seen.state is RemoteState.LOST:
            why = f"{self._spec.remote} knows nothing of session {self._sidecar.place.session} any more"
            return Outcome(error=f"{why}: {seen.error}" if seen.error else why)
        return Outcome(seen.result, seen.error or why)

    # -- what it is told ---------------------------------------------------------------------

    async def _read(self) -> None:
        async for line in self._context.messages():
            self._sidecar.save(unsent=(*self._sidecar.place.unsent, received(line).text))
            self._news.set()

    async def _send(self) -> None:
        """Tell it what waits, in order; what could not be brought waits on, what is refused is told."""
        while self._sidecar.place.unsent:
            place = self._sidecar.place
            text, *rest = place.unsent
            self._sidecar.save(unsent=tuple(rest))  # first: told twice is worse than asked again
            try:
                await self._line.ask(_sending(place.session, text))
            except Trouble as trouble:
                if trouble.refused:
                    self._context.notify(f"It could not be told {text[:200]!r}: {trouble.why}", what="Not taken")
                    continue
                self._sidecar.save(unsent=(text, *self._sidecar.place.unsent))
                await self._wait_out(trouble)
                return
            self._quiet = 0

    # -- waiting and ending ------------------------------------------------------------------

    async def _wait_out(self, trouble: Trouble) -> None:
        self._line.lost(trouble.why)
        chance = random.random()  # noqa: S311  # no secret: when to come back
        await asyncio.sleep(next_wait(trouble=self._line.troubles, chance=chance))

    async def _rest(self, seconds: float) -> None:
        self._news.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            pass

    async def _end(self) -> None:
        from taskyard.kinds.remote_agent import GRACE

        await end_there(self._line, self._sidecar, self._writing, self._context, grace=GRACE, name=self._spec.remote)
