"""All that a handler sees of the runtime: where to write, whom to tell, what it was sent."""

from __future__ import annotations

import asyncio
import os
from _thread import allocate_lock
from functools import partial

from taskyard import config
from taskyard.disk import files
from taskyard.runtime import telling
from taskyard.runtime.ending import read
from taskyard.runtime.facts import Facts
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.liveness import keeper_of
from taskyard.runtime.running_news import RunningNews
from taskyard.shapes import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

#: Messages that wait for a handler which does not read; the next sender is told no.
MOST_MESSAGES = 1000


class JobContext:
    """One job, for the code that does its work. After the job's end, nothing that the code says has any effect."""

    def __init__(self, folder: JobFolder, output: int, *, append: Callable[[bytes], None] | None = None) -> None:
        """`output` is its open descriptor; `append` writes there where no supervisor holds the cap of the output."""
        self.id = folder.id
        self.home = folder.home
        self.folder = folder.path
        self._output = output
        self._append = append or partial(files.write_all, output)
        self._one_at_a_time = allocate_lock()  # a handler may write from several threads
        self._job = folder
        self._record: Mapping[str, object] | None = None
        self._segments: int | None = None
        self._facts = Facts(folder)
        self._news = RunningNews(folder)
        self._messages: asyncio.Queue[str | None] = asyncio.Queue(MOST_MESSAGES)
        self._goes_on = asyncio.Event()
        self._goes_on.set()
        self._is_closed = False

    def write(self, text: str) -> None:
        """Append to the job's output, whole."""
        data = text.encode("utf-8", "surrogateescape")
        with self._one_at_a_time:
            if not self._is_closed:
                self._append(data)

    def written(self, offset: int = 0) -> bytes:
        """What was written from `offset` on; nothing if that is beyond its end."""
        return b"" if self._is_closed else os.pread(self._output, max(self.size - offset, 0), offset)

    @property
    def size(self) -> int:
        """How many bytes were written so far."""
        return 0 if self._is_closed else os.fstat(self._output).st_size

    def is_being_ended(self) -> bool:
        """Whether its keeper lives and wants it to end; else a cancellation is about this process alone."""
        if keeper_of(self._job) is None:
            return False
        return as_object((read(self._job.record) or {}).get("stopping")) is not None

    def tell(self, **facts: object) -> bool:
        """Say what is known of the work by now: any process that looks at the job sees it. False if nothing is new."""
        return not self._is_closed and self._facts.change(facts)

    def progress(
        self, *, usage: Mapping[str, int] | None = None, last_tool_name: str | None = None, **more: object
    ) -> None:
        """Tell those who follow events that the work gets on.

        Args:
            usage: `total_tokens`, `tool_uses` and `duration_ms`, those that are known.
            last_tool_name: The tool that was used last.
            more: What else there is to say, such as a step of a workflow.
        """
        if self._is_closed:
            return
        if self._record is None:
            self._record = read(self._job.record) or {}
            self._segments = config.load().event_segments
        telling.progress(
            self._job, self._record, usage=usage, last_tool_name=last_tool_name, keep=self._segments, **more
        )

    def notify(self, event: str, *, what: str = "Event") -> bool:
        """Have whoever started the job told of an event, while the job goes on.

        Call it at a bounded pace. False if so many are unread that it was not told: say it later, with what came since.
        """
        return not self._is_closed and self._news.tell(what, event)

    def ask(self, question: str) -> None:
        """Tell people that the job waits for an answer, once: a notice without a status, and an event."""
        if self._is_closed:
            return
        self._news.ask(question)
        self.progress(needs_input=True, question=question[-2_000:])

    async def messages(self) -> AsyncIterator[str]:
        """What is sent to the job (`taskyard send`), until nothing more can come."""
        while (text := await self._messages.get()) is not None:
            yield text

    async def turn(self) -> None:
        """Wait here while the job is paused: a handler inside a program calls it between two steps."""
        await self._goes_on.wait()

    # -- the runtime's side ------------------------------------------------------------------

    async def take_in(self, text: str | None) -> None:
        """Hand a message to the handler, None for the last, as soon as there is room."""
        await self._messages.put(text)

    def deliver(self, text: str | None) -> bool:
        """Hand over a message now; False if the handler does not read what it has."""
        try:
            self._messages.put_nowait(text)
        except asyncio.QueueFull:
            return False
        return True

    def pause(self, *, on: bool) -> None:
        """Hold the handler at its next turn, or let it go on."""
        if on:
            self._goes_on.clear()
        else:
            self._goes_on.set()

    def close(self) -> None:
        """Ignore whatever the handler still says: the job ends, and its descriptor may soon be another file's."""
        with self._one_at_a_time:
            self._is_closed = True

    @property
    def facts(self) -> Facts:
        """The facts, for the runtime's last word."""
        return self._facts


def of_this_process() -> JobContext:
    """The context of the job that this process was started for by its keeper."""
    folder = JobFolder(os.environ["TASKYARD_HOME"], os.environ["TASKYARD_JOB"])
    return JobContext(folder, 1)
