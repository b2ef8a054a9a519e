"""Runs in the job process of a `remote_agent`: submit, poll, append output, forward messages, stop.

`SessionFollower` follows one session of a remote backend from `submit` to its final state. If this process is
killed, the session continues, and the next process resumes from the sidecar.

Sidecar: `<job>/remote.json` has the session id and the position of its output. It is written before the
first request, replaced atomically after each poll with something new, and removed by the runtime when the
job ends.

Output is appended exactly once: first the text is appended, then cursor and size are saved together. After a
kill in between, the output is longer than the sidecar states, and that much of the next text is skipped.

Connection: opened on demand, and again after an error. While the remote does not answer, the job shows as
disconnected, with reason and start time; loss and return are events. An error of the remote or its backend
never ends the session.

Stop: the session counts as ended only when the remote confirms it. The final answer is the one the remote
reports, else the one found in the output.

A completion checker is third-party code: it has a timeout and runs in a thread of its own, never two at once.
A thread that hangs is abandoned: it blocks neither the polls nor the exit of the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import random
import threading

from taskyard.core import files
from taskyard.core.system import boottime, now_ms
from taskyard.core.values import NamedTuple, as_list, as_number, as_object, as_text
from taskyard.errors import Conflict, Damaged, RemoteRefused, StorageError, TaskyardError
from taskyard.jobs.agent_reports import parse_message
from taskyard.jobs.exit_record import STOP_CONFIRMED, STOP_ERROR, read_json
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.kind import Outcome, error_text
from taskyard.jobs.query import read_job
from taskyard.jobs.remote import completion, create_backend
from taskyard.jobs.remote.backend import (
    POLL_INTERVAL,
    RemoteState,
    Work,
    final_answer,
    next_delay,
    poll_interval,
)
from taskyard.jobs.remote.completion import extract_plan, extract_review, load_checker
from taskyard.jobs.remote.remotes import find_remote, read_token

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import TypeVar

    from taskyard.jobs.context import JobContext
    from taskyard.jobs.kinds.remote_agent import RemoteAgent
    from taskyard.jobs.remote.backend import PollResult, RemoteBackend
    from taskyard.jobs.remote.completion import Checker


def resume_fields(home: str, job_id: str, prompt: str) -> dict[str, object]:
    """Return the fields of a remote agent that continues the session of `job_id`, whose own job is over.

    Raises:
        JobNotFound: There is no such job.
        Conflict: It is not a remote agent, or not over, or never had a session.
    """
    job = read_job(home, job_id)
    if job.type != "remote_agent":
        raise Conflict(f"{job.id} is not a remote agent: it is a {job.type}.")
    if not job.is_final:
        raise Conflict(f"{job.id} is followed already: `taskyard send {job.id} TEXT` sends it a message.")
    session, remote = as_text(job.facts.get("sessionId")), as_text(job.facts.get("remote"))
    if not session or not remote:
        raise Conflict(f"{job.id} never had a session, or its record was removed.")
    arguments = as_object((read_json(JobPaths(home, job.id).arguments) or {}).get("arguments")) or {}
    metadata = as_object(job.facts.get("remoteTaskMetadata")) or {}
    return {
        "prompt": prompt,
        "remote": remote,
        "remote_task_type": as_text(job.facts.get("remoteTaskType")),
        "metadata": {key: value for key, value in metadata.items() if isinstance(value, str)},
        "session": session,
        "resumes": job.id,
        "name": as_text(job.facts.get("name")) or None,
        "checker": as_text(arguments.get("checker")),
    }


#: Seconds for a checker, which may send requests: no poll is made meanwhile.
CHECK_TIMEOUT = 30.0


class CheckerRunner:
    """Runs the completion checker of one job."""

    def __init__(self, remote_task_type: str, context: JobContext, reference: str = "") -> None:
        """Use the checker `reference` that the job recorded; if empty, that of a package or the built-in one."""
        self._type = remote_task_type
        self._reference = reference
        self._checker: Checker | None = None  # None until loaded
        self._context = context
        self._thread: threading.Thread | None = None

    async def ask(self, metadata: Mapping[str, object]) -> str | None:
        """Return the checker's text; None without a checker or if incomplete. Its errors become a fact of the job."""
        try:
            self._checker = self._checker or load_checker(self._type, self._reference)
            if self._checker is None:
                return None
            async with asyncio.timeout(CHECK_TIMEOUT):
                text = await self._said(self._checker, metadata)
        except Exception as error:  # third-party code: record the error, and try again at the next poll
            why = "it does not answer" if isinstance(error, TimeoutError) else error_text(error)
            self._context.tell(checkerError=why[:500])
            return None
        self._context.tell(checkerError="")
        return text if isinstance(text, str) and text else None

    async def _said(self, checker: Checker, metadata: Mapping[str, object]) -> object:
        if self._thread is not None and self._thread.is_alive():
            raise TimeoutError
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[object] = loop.create_future()

        def settle(error: Exception | None, said: object) -> None:
            if not answer.done():
                answer.set_exception(error) if error is not None else answer.set_result(said)

        def call() -> None:
            error, said = None, None
            try:
                said = checker(metadata)
            except Exception as raised:  # the top of a thread
                error = raised
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, error, said)

        self._thread = threading.Thread(target=call, name="taskyard-checker", daemon=True)
        self._thread.start()
        said = await answer
        return await said if inspect.isawaitable(said) else said


if TYPE_CHECKING:
    T = TypeVar("T")

#: Seconds for a response of a remote; a longer request counts as hung.
CONNECTION_TIMEOUT = 60.0

#: Characters kept of the reason for a disconnect.
_MAX_REASON_CHARS = 500


class RemoteCallError(Exception):
    """A request to the remote failed; the text is the reason, without secrets."""

    def __init__(self, why: str, *, refused: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.refused = refused  #: by the reached remote, or by the local configuration


class RemoteConnection:
    """Connection of one job to its remote."""

    def __init__(self, remote: str, context: JobContext) -> None:
        self._remote = remote
        self._context = context
        self._backend: RemoteBackend | None = None
        self._token = ""
        self._is_lost = context.facts.known.get("disconnected") is not None
        self.failed_calls = 0  #: in a row
        self.quick = POLL_INTERVAL  #: seconds between polls while there is new output

    async def ask(self, act: Callable[[RemoteBackend], Awaitable[T]], *, patience: float = CONNECTION_TIMEOUT) -> T:
        """Send a request to the remote and return its response.

        Args:
            act: Calls the backend.
            patience: Timeout in seconds.

        Raises:
            RemoteCallError: No response, or the remote refuses (`refused`). The connection is closed.
        """
        try:
            if self._backend is None:
                place = find_remote(self._remote)
                self._token = read_token(place)
                self._backend = create_backend(place, self._token)
                self.quick = poll_interval(place)
            answer = await asyncio.wait_for(act(self._backend), patience)
        except TimeoutError:
            raise await self._disconnect(f"no answer within {patience:.0f} s") from None
        except TaskyardError as error:
            raise await self._disconnect(self._plain(error), refused=isinstance(error, RemoteRefused)) from None
        except Exception as error:  # third-party backend: an unexpected error does not end the session
            raise await self._disconnect(f"{type(error).__name__}: {self._plain(error)}") from None
        self.failed_calls = 0
        return answer

    def lost(self, why: str) -> None:
        """Show the job as disconnected."""
        self.failed_calls += 1
        since = (as_object(self._context.facts.known.get("disconnected")) or {}).get("since") or now_ms()
        with contextlib.suppress(StorageError):  # a full disk may be the reason
            self._context.tell(disconnected={"since": since, "why": why[:_MAX_REASON_CHARS]})
        if not self._is_lost:
            self._is_lost = True
            self._context.progress(disconnected=True, why=why[:_MAX_REASON_CHARS])

    def found(self) -> None:
        """Show the job as connected again."""
        if self._is_lost:
            self._is_lost = False
            with contextlib.suppress(StorageError):
                self._context.tell(disconnected=None)
            self._context.progress(disconnected=False)

    async def close(self) -> None:
        """Close the connection; the session continues."""
        backend, self._backend = self._backend, None
        if backend is not None:
            with contextlib.suppress(Exception):  # third-party code, and the connection is no longer needed
                await asyncio.wait_for(backend.close(), CONNECTION_TIMEOUT)

    async def _disconnect(self, why: str, *, refused: bool = False) -> RemoteCallError:
        await self.close()  # the configuration may change meanwhile: it is read again
        return RemoteCallError(why, refused=refused)

    def _plain(self, error: Exception) -> str:
        """Return the text of an error without the token."""
        said = str(error)
        return said.replace(self._token, "…") if self._token else said


#: Seconds of the stop grace reserved for recording the result.
_STOP_MARGIN = 0.4

#: Seconds between polls for the end of the session, and before a retry of an unreachable remote.
_POLL_INTERVAL, _RETRY_DELAY = 0.1, 0.5

#: Attempts to reach the remote: the process that stops the job waits for the result.
_MAX_ATTEMPTS = 4


async def stop_session(
    line: RemoteConnection, sidecar: Sidecar, writing: OutputAppender, context: JobContext, *, grace: float, name: str
) -> None:
    """Stop the session and record whether the remote confirms its end, within `grace` seconds."""
    session = sidecar.place.session
    if not session:
        if sidecar.may_have_begun:
            context.tell(**{STOP_ERROR: f"whether it had started at {name} is unknown"})
        else:
            context.tell(**{STOP_CONFIRMED: True})
        return
    deadline, tries, why = boottime() + max(grace - _STOP_MARGIN, 0.5), 0, f"{name} has not ended it in time"
    while (left := deadline - boottime()) > 0 and tries < _MAX_ATTEMPTS:
        try:
            await line.ask(lambda backend: backend.stop(session), patience=left)
            seen = await line.ask(lambda backend: backend.poll(session, sidecar.place.cursor), patience=left)
        except RemoteCallError as trouble:
            why, tries = trouble.why, tries + 1
            await asyncio.sleep(_RETRY_DELAY)
            continue
        writing.add(seen.text, seen.cursor)
        if seen.state.is_final:
            context.tell(**{STOP_CONFIRMED: True, "disconnected": None, "needsInput": False})
            return
        await asyncio.sleep(_POLL_INTERVAL)
    context.tell(**{STOP_ERROR: f"it may still run at {name}: {why}"})


#: Bytes of the output's tail in which the answer is searched, and characters of it that are kept.
_RESULT_SEARCH_BYTES, _MAX_RESULT_CHARS = 8 * 1024 * 1024, 200_000


def find_result(remote_task_type: str, told: str, context: JobContext) -> str:
    """Return the answer of completed work; `told`: as reported by the remote."""
    lines = context.written(max(context.size - _RESULT_SEARCH_BYTES, 0)).decode("utf-8", "replace").splitlines()
    found = ""
    if remote_task_type == "ultrareview":
        found = extract_review(lines)
    elif remote_task_type == "ultraplan":
        found = extract_plan(lines)
    return (found or told or final_answer(lines))[-_MAX_RESULT_CHARS:]


class SessionPosition(NamedTuple):
    """Position up to which a session was read."""

    session: str = ""  #: its id at the remote; "": it may or may not have been started
    cursor: str = ""
    size: int = 0  #: bytes of the job's output that contain everything up to the cursor
    unsent: tuple[str, ...] = ()  #: messages still to be sent


class Sidecar:
    """The file `remote.json`; written only by the process that follows the session."""

    def __init__(self, spec: RemoteAgent, context: JobContext) -> None:
        """Read the file, if it exists.

        Raises:
            Damaged: The file cannot be parsed; nothing is guessed.
        """
        self._path = JobPaths(context.home, context.id).elsewhere
        self._constant: Mapping[str, object] = {
            "taskId": context.id,
            "remote": spec.remote,
            "remoteTaskType": spec.remote_task_type,
            "remoteTaskMetadata": dict(spec.metadata),
        }
        found = read_json(self._path)
        if found is None and files.read(self._path) is not None:
            raise Damaged(self._path, "it does not name the session")
        self.may_have_begun = found is not None  #: whether a session may exist at the remote
        self.place = _parse_position(found or {}) if found is not None else SessionPosition(spec.session or "")

    def save(self, **changes: object) -> None:
        """Change fields of the position and replace the file atomically."""
        self.place = self.place._replace(**changes)  # type: ignore[arg-type]  # fields of it
        place = self.place
        known = {**self._constant, "sessionId": place.session, "cursor": place.cursor, "outputSize": place.size}
        if place.unsent:
            known["unsent"] = list(place.unsent)
        files.replace(self._path, json.dumps(known).encode("utf-8", "surrogatepass"))


def _parse_position(found: Mapping[str, object]) -> SessionPosition:
    unsent = tuple(text for text in as_list(found.get("unsent")) or [] if isinstance(text, str))
    size = as_number(found.get("outputSize"))
    known = as_object(found) or {}
    return SessionPosition(as_text(known.get("sessionId")), as_text(known.get("cursor")), size, unsent)


class OutputAppender:
    """Appends the output of one session exactly once."""

    def __init__(self, context: JobContext, sidecar: Sidecar) -> None:
        self._context = context
        self._sidecar = sidecar
        if context.size < sidecar.place.size:  # output lost in a power failure: read everything again
            sidecar.save(cursor="", size=0)
        self._ahead = context.written(sidecar.place.size)

    def add(self, text: str, cursor: str) -> None:
        """Append the text and save the cursor after it."""
        said = text.encode("utf-8", "surrogateescape")
        new, self._ahead = skip_written(self._ahead, said)
        if new:
            self._context.write(new.decode("utf-8", "surrogateescape"))
        if cursor != self._sidecar.place.cursor or new:
            self._sidecar.save(cursor=cursor, size=self._context.size - len(self._ahead))


def skip_written(ahead: bytes, said: bytes) -> tuple[bytes, bytes]:
    """Return what of `said` is to be appended after `ahead`, already in the output, and the rest of `ahead`.

    If they have nothing in common, another process wrote into the output: then all of `said` is appended.
    """
    if ahead.startswith(said):
        return b"", ahead[len(said) :]
    if said.startswith(ahead):
        return said[len(ahead) :], b""
    return said, b""


#: Characters shown of a question.
_MAX_QUESTION_CHARS = 2_000


async def follow_session(spec: RemoteAgent, context: JobContext) -> Outcome:
    """Start the session, unless that was done before, and follow it until it ends."""
    return await SessionFollower(spec, context).run()


def _send_call(session: str, text: str) -> Callable[[RemoteBackend], Awaitable[None]]:
    return lambda backend: backend.send(session, text)


class SessionFollower:
    """Follows one session for its job."""

    def __init__(self, spec: RemoteAgent, context: JobContext) -> None:
        self._spec = spec
        self._context = context
        self._sidecar = Sidecar(spec, context)
        self._appender = OutputAppender(context, self._sidecar)
        self._line = RemoteConnection(spec.remote, context)
        self._checker_runner = CheckerRunner(spec.remote_task_type, context, spec.checker)
        self._news = asyncio.Event()  # a message is to be sent
        self._phase = str(context.facts.known.get("ultraplanPhase") or "")
        self._quiet = 0

    async def run(self) -> Outcome:
        """Follow the session and return its outcome."""
        reading = asyncio.ensure_future(self._read())
        try:
            if self._context.is_being_ended():
                raise asyncio.CancelledError  # the previous process was killed before it carried out the stop
            return await self._followed()
        except asyncio.CancelledError:
            if self._context.is_being_ended():
                await self._end()
            raise  # else only this process exits: another one resumes
        finally:
            reading.cancel()
            await self._line.close()

    async def _followed(self) -> Outcome:
        if (refused := await self._begun()) is not None:
            return refused
        while True:
            await self._send()
            seen = await self._poll()
            if seen is None:
                continue
            complete = await self._checker_runner.ask(self._metadata(seen))
            if complete is not None:
                if not seen.state.is_final:
                    await self._end()  # no process would follow it any more
                return Outcome(complete, facts={"notice": complete})
            if seen.state.is_final:
                return self._outcome(seen)
            await self._rest(next_delay(quick=self._line.quick, quiet=self._quiet))

    async def _begun(self) -> Outcome | None:
        """Ensure that there is a session; return None, or the outcome if it was refused."""
        while not self._sidecar.place.session:
            self._sidecar.may_have_begun = True
            self._sidecar.save()  # a sidecar without a session id means that one may have been started
            try:
                session = await self._line.ask(lambda backend: backend.submit(self._work()))
            except RemoteCallError as trouble:
                if trouble.refused:
                    return Outcome(error=trouble.why)
                await self._back_off(trouble)
                continue
            self._line.found()
            self._sidecar.save(session=session)
        if not self._sidecar.may_have_begun:  # an existing session given by the caller
            self._sidecar.save(unsent=(self._spec.prompt,) if self._spec.prompt.strip() else ())
        self._context.tell(sessionId=self._sidecar.place.session)
        return None

    def _work(self) -> Work:
        command = self._spec.command or find_remote(self._spec.remote).command
        metadata = {**self._spec.metadata, "remoteTaskType": self._spec.remote_task_type}
        return Work(self._context.id, self._spec.prompt, command, metadata)

    async def _poll(self) -> PollResult | None:
        """Poll, append the new output and update the facts; None if the request failed."""
        place = self._sidecar.place
        try:
            seen = await self._line.ask(lambda backend: backend.poll(place.session, place.cursor))
        except RemoteCallError as trouble:
            await self._back_off(trouble)
            return None
        try:
            self._appender.add(seen.text, seen.cursor)
            self._line.found()
            self._show(seen)
        except (OSError, StorageError) as error:  # possibly a full disk: the remote keeps the output meanwhile
            self._appender = OutputAppender(self._context, self._sidecar)
            await self._back_off(RemoteCallError(f"its output cannot be written here: {error_text(error)}"))
            return None
        self._quiet = 0 if seen.text else self._quiet + 1
        return seen

    def _show(self, seen: PollResult) -> None:
        facts: dict[str, object] = {}
        if seen.metadata:
            facts["remoteTaskMetadata"] = self._metadata(seen)
        if self._spec.remote_task_type == "ultraplan":
            self._phase = completion.next_phase(self._phase, seen.text.splitlines())
            facts["ultraplanPhase"] = completion.visible_phase(self._phase, seen.state)
        asks = seen.state is RemoteState.NEEDS_INPUT
        needed_input = self._context.facts.known.get("needsInput") is True
        question = seen.question[-_MAX_QUESTION_CHARS:] if asks else ""
        facts |= {"needsInput": asks, "question": question} if asks or needed_input else {}
        if facts and self._context.tell(**facts) and asks != needed_input:
            self._context.progress(needs_input=asks)

    def _metadata(self, seen: PollResult) -> dict[str, object]:
        return {**self._spec.metadata, **seen.metadata}

    def _outcome(self, seen: PollResult) -> Outcome:
        self._context.tell(needsInput=False, question="")
        if seen.state is RemoteState.COMPLETED:
            return Outcome(find_result(self._spec.remote_task_type, seen.result, self._context))
        why = {RemoteState.STOPPED: f"it was stopped at {self._spec.remote}"}.get(seen.state, "Unknown error")
        if seen.state is RemoteState.LOST:
            why = f"{self._spec.remote} does not know session {self._sidecar.place.session}"
            return Outcome(error=f"{why}: {seen.error}" if seen.error else why)
        return Outcome(seen.result, seen.error or why)

    # -- messages to the session -------------------------------------------------------------

    async def _read(self) -> None:
        async for line in self._context.messages():
            self._sidecar.save(unsent=(*self._sidecar.place.unsent, parse_message(line).text))
            self._news.set()

    async def _send(self) -> None:
        """Send the waiting messages in order; keep unsent ones, and report a refused one as a notice."""
        while self._sidecar.place.unsent:
            place = self._sidecar.place
            text, *rest = place.unsent
            self._sidecar.save(
                unsent=tuple(rest)
            )  # remove first: a lost message can be repeated, a duplicate cannot be undone
            try:
                await self._line.ask(_send_call(place.session, text))
            except RemoteCallError as trouble:
                if trouble.refused:
                    self._context.notify(f"It refused the message {text[:200]!r}: {trouble.why}", what="Not taken")
                    continue
                self._sidecar.save(unsent=(text, *self._sidecar.place.unsent))
                await self._back_off(trouble)
                return
            self._quiet = 0

    # -- waiting and stopping ----------------------------------------------------------------

    async def _back_off(self, trouble: RemoteCallError) -> None:
        self._line.lost(trouble.why)
        chance = random.random()  # noqa: S311  # no secret: when to come back
        await asyncio.sleep(next_delay(trouble=self._line.failed_calls, chance=chance))

    async def _rest(self, seconds: float) -> None:
        self._news.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            pass

    async def _end(self) -> None:
        from taskyard.jobs.kinds.remote_agent import STOP_GRACE

        await stop_session(
            self._line, self._sidecar, self._appender, self._context, grace=STOP_GRACE, name=self._spec.remote
        )
