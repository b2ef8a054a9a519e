"""Runtime interface of a job handler: output, facts, progress events, notices, and incoming messages.

A notice from a running job is signed like all notices, and has no status. It is created atomically, under
its own id, by the one process that does the job's work: never twice; what is lost when that is killed is
still in the output. If too many notices of the job are unread, `notify` returns False and the handler must
wait.
"""

from __future__ import annotations

import asyncio
import json
import os
from _thread import allocate_lock
from functools import partial

from taskyard import config
from taskyard.core import files
from taskyard.core.system import now_ms
from taskyard.core.values import as_object
from taskyard.errors import UsageError
from taskyard.jobs import event_log, notice_payload
from taskyard.jobs.exit_record import FactsFile, read_json
from taskyard.jobs.job_dir import JobPaths, outbox_path, supervisor_pid
from taskyard.jobs.notice_payload import PEOPLE, sign
from taskyard.storage.maildir import Maildir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from taskyard.agents.services import Services


#: Most unread notices of one job; with 4 kB each, they do not fill a model's turn.
MAX_UNREAD = 20

#: Most characters of a text in a notice; the rest is cut off.
_MAX_TEXT = 16_000

#: Most characters of a question, counted from its end.
_MAX_QUESTION = 2_000


class JobNotifier:
    """Notices of one job while it runs."""

    def __init__(self, folder: JobPaths) -> None:
        self._folder = folder
        self._told: list[tuple[Maildir, str]] = []  # the latest ones, with the box of each

    def tell(self, what: str, event: str) -> bool:
        """Send an event notice; return False, without sending, if too many are unread."""
        record = read_json(self._folder.record) or {}  # current: it may have gone to the background meanwhile
        if notice_payload.has_no_recipient(record):
            return True
        if len(self._told) == MAX_UNREAD and self._is_unread(*self._told[0]):
            return False
        stored = self._store(record, summary=f'{what}: "{record.get("description")}"', event=event[:_MAX_TEXT])
        self._told = [*self._told, stored][-MAX_UNREAD:]
        return True

    def ask(self, question: str) -> None:
        """Send a notice that the job waits for an answer, without a status: nothing ended.

        It goes to the job's starter; for a silent job, to people alone.
        """
        record = read_json(self._folder.record) or {}
        is_silent = bool(record.get("silent"))
        if record.get("asksElsewhere") or (not is_silent and notice_payload.has_no_recipient(record)):
            return  # its caller is asked over the protocol, or the user watches it in the foreground
        self._store(
            record,
            **({"recipient": PEOPLE} if is_silent else {}),
            summary=f'{notice_payload.kind_noun(record)} "{record.get("description")}" waits for an answer',
            tail=question[-_MAX_QUESTION:],
            hint=f"Answer with: taskyard send {self._folder.id} TEXT",
        )

    def _store(self, record: Mapping[str, object], **fields: str) -> tuple[Maildir, str]:
        """Put a signed notice about the job into its recipient's outbox; return the box and the notice's id."""
        about = {
            **notice_payload.base_payload(self._folder, record),
            "priority": str(record.get("priority") or "later"),
        }
        notice = sign(self._folder.home, {**about, **fields, "at": now_ms()})
        box = Maildir(self._folder.home, outbox_path(self._folder.home, str(notice["recipient"])))
        box.open()
        box.put(str(notice["id"]), json.dumps({"news": notice}).encode())
        return box, str(notice["id"])

    @staticmethod
    def _is_unread(box: Maildir, notice_id: str) -> bool:
        return box.state(notice_id) == "stored"


#: Messages queued for a handler that does not read; more are refused.
MAX_MESSAGES = 1000


class JobContext:
    """One job, for the code that does its work. After the job has ended, calls have no effect."""

    def __init__(
        self,
        folder: JobPaths,
        output: int,
        *,
        append: Callable[[bytes], None] | None = None,
        services: Services | None = None,
    ) -> None:
        """Create the context of a running job.

        Args:
            folder: The job's folder.
            output: The open descriptor of its output.
            append: Writes to the output if no supervisor enforces its cap.
            services: Stores, mail and registration, for jobs of agents.
        """
        self.id = folder.id
        self.home = folder.home
        self.folder = folder.path
        self._output = output
        self._append = append or partial(files.write_all, output)
        self._mutex = allocate_lock()  # a handler may write from several threads
        self._job = folder
        self._record: Mapping[str, object] | None = None
        self._segments: int | None = None
        self._facts = FactsFile(folder)
        self._news = JobNotifier(folder)
        self._messages: asyncio.Queue[str | None] = asyncio.Queue(MAX_MESSAGES)
        self._goes_on = asyncio.Event()
        self._goes_on.set()
        self._is_closed = False
        self._services = services

    @property
    def services(self) -> Services:
        """Stores, mail and registration of the program that this job runs in.

        Raises:
            UsageError: the program provided none.
        """
        if self._services is None:
            raise UsageError("An agent's job needs the stores of a yard: start it through `taskyard.open_async()`.")
        return self._services

    def write(self, text: str) -> None:
        """Append all of `text` to the job's output."""
        data = text.encode("utf-8", "surrogateescape")
        with self._mutex:
            if not self._is_closed:
                self._append(data)

    def written(self, offset: int = 0) -> bytes:
        """Return what was written from `offset` on; nothing if that is beyond its end."""
        return b"" if self._is_closed else os.pread(self._output, max(self.size - offset, 0), offset)

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return 0 if self._is_closed else os.fstat(self._output).st_size

    def is_being_ended(self) -> bool:
        """Return whether its supervisor is running and stops it; else a cancellation concerns this process alone."""
        if supervisor_pid(self._job) is None:
            return False
        return as_object((read_json(self._job.record) or {}).get("stopping")) is not None

    def tell(self, **facts: object) -> bool:
        """Record facts about the work, visible to every reader of the job; return False if nothing changed."""
        return not self._is_closed and self._facts.change(facts)

    def progress(
        self, *, usage: Mapping[str, int] | None = None, last_tool_name: str | None = None, **more: object
    ) -> None:
        """Log a progress event.

        Args:
            usage: `total_tokens`, `tool_uses` and `duration_ms`, those that are known.
            last_tool_name: The tool that was used last.
            more: Further fields, such as a step of a workflow.
        """
        if self._is_closed:
            return
        if self._record is None:
            self._record = read_json(self._job.record) or {}
            self._segments = config.load_settings().event_segments
        event_log.log_progress(
            self._job, self._record, usage=usage, last_tool_name=last_tool_name, keep=self._segments, **more
        )

    def notify(self, event: str, *, what: str = "Event") -> bool:
        """Notify the job's starter of an event, while the job keeps running.

        Call it at a bounded rate. Return False if too many notices are unread: retry later, with what came
        since.
        """
        return not self._is_closed and self._news.tell(what, event)

    def ask(self, question: str) -> None:
        """Report once that the job waits for an answer: a notice without a status, and an event."""
        if self._is_closed:
            return
        self._news.ask(question)
        self.progress(needs_input=True, question=question[-2_000:])

    async def messages(self) -> AsyncIterator[str]:
        """Yield messages sent to the job (`taskyard send`), until its input is closed."""
        while (text := await self._messages.get()) is not None:
            yield text

    async def turn(self) -> None:
        """Wait here while the job is paused: an in-process handler calls it between two steps."""
        await self._goes_on.wait()

    # -- called by the runtime ---------------------------------------------------------------

    async def put_message(self, text: str | None) -> None:
        """Queue a message for the handler, None for the last, as soon as there is room."""
        await self._messages.put(text)

    def deliver(self, text: str | None) -> bool:
        """Queue a message now; return False if the handler does not read."""
        try:
            self._messages.put_nowait(text)
        except asyncio.QueueFull:
            return False
        return True

    def pause(self, *, on: bool) -> None:
        """Pause the handler at its next `turn`, or resume it."""
        if on:
            self._goes_on.clear()
        else:
            self._goes_on.set()

    def close(self) -> None:
        """Ignore further calls of the handler: the job ends, and its descriptor may soon be reused."""
        with self._mutex:
            self._is_closed = True

    @property
    def facts(self) -> FactsFile:
        """The facts, for the runtime to record the outcome."""
        return self._facts


def context_from_env(services: Services | None = None) -> JobContext:
    """Return the context of the job for which the supervisor started this process."""
    folder = JobPaths(os.environ["TASKYARD_HOME"], os.environ["TASKYARD_JOB"])
    return JobContext(folder, 1, services=services)
