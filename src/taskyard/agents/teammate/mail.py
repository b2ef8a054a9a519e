"""Receive, dispatch and answer a teammate's messages.

`MailHandler` fetches mail when it arrives, `Inbox` queues what the teammate works on, `RecentMessages` keeps
the last messages for views. By message type:

    shutdown_request           approved; the teammate ends after its task; a second one ends it at once, task released
    plan_approval_response     the verdict on a plan; so is a plain message of the lead while one is awaited
    task_assignment            the task is on the list: checking the list is enough
    anything else              a message to work on
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import contextmanager

from taskyard.agents.mail import MESSAGE
from taskyard.agents.teammate import rules
from taskyard.core.system import iso, now_ms
from taskyard.core.values import PERSON, NamedTuple, as_text, escape_unstorable
from taskyard.storage.async_change_feed import subscribe_async

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from taskyard.agents.mail import Message
    from taskyard.agents.teammate.client import TeammateClient
    from taskyard.agents.teammate.rules import PlanVerdict
    from taskyard.agents.teammate.workers import SharedWorkers
    from taskyard.jobs.context import JobContext
    from taskyard.tasks.model import Task


#: Messages kept for views; a longer conversation is in the transcript.
RECENT = 50

#: Characters of each message that views show.
LONGEST_SHOWN = 1_000

#: Maximum messages taken from the mailbox but not handled yet; the others wait there.
MOST_WAITING = 10


class IncomingMessage(NamedTuple):
    """A message to a teammate."""

    text: str
    sender: str | None = None  #: None: typed into its job
    id: str = ""  #: id of the mail, to acknowledge it
    is_reply: bool = False  #: a reply to one of ours; must not be answered
    may_answer: bool = True  #: may answer our questions; messages of other teammates may not


class Inbox:
    """Queue of messages in arrival order.

    While the teammate asks a question, the next message that `may_answer` is the answer.
    """

    def __init__(self, read: Callable[[IncomingMessage], None]) -> None:
        """Create an empty inbox; `read` is called with each message that was handled."""
        self._queue: deque[IncomingMessage] = deque()
        self._read = read
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._awaited = 0
        self._asked: asyncio.Future[str] | None = None

    def put(self, letter: IncomingMessage) -> None:
        """Queue a message, or use it as the answer to the pending question."""
        if letter.may_answer and self._asked is not None and not self._asked.done():
            self._asked.set_result(letter.text)
            self._read(letter)
        else:
            self._queue.append(letter)
            self.ring()

    def take(self) -> IncomingMessage | None:
        """Return the oldest message, if any; the caller handles it and then calls `done`."""
        if not self._queue:
            return None
        self._room.set()
        return self._queue.popleft()

    def done(self, letter: IncomingMessage) -> None:
        """Mark a message as handled."""
        self._read(letter)

    async def next(self) -> IncomingMessage:
        """Wait for the oldest message; it counts as handled."""
        while (letter := self.take()) is None:
            self.arm()
            await self.news()
        self.done(letter)
        return letter

    async def answer(self) -> str:
        """Wait for the answer to a question: the next message that may answer."""
        self._asked = asyncio.get_running_loop().create_future()
        try:
            with self.awaiting():
                return await self._asked
        finally:
            self._asked = None

    @contextmanager
    def awaiting(self) -> Generator[None]:
        """Lift the queue limit meanwhile: the awaited message may be behind many others."""
        self._awaited += 1
        self._room.set()
        try:
            yield
        finally:
            self._awaited -= 1

    def arm(self) -> None:
        """Reset the wake-up; call it, check for work, and only then wait on `news`."""
        self._news.clear()

    async def news(self) -> None:
        """Wait until a message or a wake-up came since `arm`."""
        if not self._queue:
            await self._news.wait()

    def ring(self) -> None:
        """Wake the task that waits on `news`."""
        self._news.set()

    async def room(self) -> None:
        """Wait while the queue is full, so that further mail stays in the mailbox."""
        while len(self._queue) >= MOST_WAITING and not self._awaited:
            self._room.clear()
            await self._room.wait()

    def __len__(self) -> int:
        return len(self._queue)


class RecentMessages:
    """The last messages, each clipped for views: bounded memory."""

    def __init__(self) -> None:
        self._lines: deque[dict[str, object]] = deque(maxlen=RECENT)

    def add(self, line: Mapping[str, object]) -> None:
        """Add one line of the transcript."""
        self._lines.append({"at": now_ms(), **{name: _clip_value(value) for name, value in line.items()}})

    def shown(self) -> list[dict[str, object]]:
        """Return the messages, oldest first."""
        return list(self._lines)


def _clip_value(value: object) -> object:
    if value is None or isinstance(value, (int, float, bool)):
        return value
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"


#: Maximum characters of a reply.
_LONGEST_REPLY = 50_000


class MailHandler:
    """The mail of one teammate."""

    def __init__(
        self,
        office: SharedWorkers,
        desk: TeammateClient,
        inbox: Inbox,
        *,
        backend: str,
        end: Callable[[str, bool], None],
    ) -> None:
        """Create a handler.

        Args:
            office: Shared threads.
            desk: The teammate's list, mail and team.
            inbox: Queue of messages to work on.
            backend: What the teammate runs in, sent with shutdown approvals.
            end: `end(why, now)` ends the teammate.
        """
        self._workers = office
        self._desk = desk
        self._inbox = inbox
        self._backend = backend
        self._end = end
        self._shutdown_requests = 0
        self._request = ""
        self._verdict: asyncio.Future[PlanVerdict | None] | None = None

    # -- incoming ----------------------------------------------------------------------------

    async def fetch(self) -> None:
        """Fetch mail whenever inotify or the database reports some, until cancelled."""
        with subscribe_async(*self._desk.watched_folders()) as folder, self._desk.hears(folder.ring):
            while True:
                await folder.news()
                while found := await self._workers.do(self._desk.mail):
                    for message in found:
                        await self._dispatch(message)
                    await self._inbox.room()

    async def listen(self, context: JobContext) -> None:
        """Receive text typed into the job, until its input closes."""
        async for text in context.messages():
            await self._inbox.room()
            if self._take_verdict(IncomingMessage(text)):
                continue
            self._inbox.put(IncomingMessage(text))

    async def _dispatch(self, message: Message) -> None:
        if message.type == "shutdown_request" and await self._workers.do(
            lambda: self._desk.is_authorised(message.sender)
        ):
            await self._workers.do(lambda: self._shut_down(message))
            self._shutdown_requests += 1
            self._leave(f"{message.sender} asked it to", now=self._shutdown_requests > 1)
        elif message.type == "shutdown_request":
            await self._workers.do(lambda: self._refuse(message))
        elif await self._is_verdict(message):
            await self._workers.do(lambda: self._desk.read(message.id))
        elif message.type == MESSAGE:
            answers = bool(message.data.get("inReplyTo"))
            may_answer = await self._workers.do(lambda: self._desk.is_authorised(message.sender))
            self._inbox.put(IncomingMessage(message.text, message.sender, message.id, answers, may_answer))
        else:
            self._desk.may_be_assigned = True
            await self._workers.do(lambda: self._desk.read(message.id))
            self._inbox.ring()

    def _leave(self, why: str, *, now: bool) -> None:
        if self._verdict is not None and not self._verdict.done():
            self._verdict.set_result(None)
        self._end(why, now)

    def _shut_down(self, message: Message) -> None:
        data = {
            "requestId": as_text(message.data.get("requestId")) or message.id,
            "from": self._desk.who.name,
            "timestamp": iso(now_ms()),
            "backendType": self._backend,
        }
        self._desk.write(message.sender, type="shutdown_approved", data=data)
        self._desk.read(message.id)

    def _refuse(self, message: Message) -> None:
        """Reply to an unauthorised shutdown request with the names of those who may shut it down."""
        leads = " or ".join(dict.fromkeys((self._desk.lead(), PERSON)))
        text = f"{self._desk.who.name} goes on: only {leads} can shut it down."
        self._desk.write(message.sender, text=text, data={"inReplyTo": message.id})
        self._desk.read(message.id)

    # -- outgoing ----------------------------------------------------------------------------

    def idle(self, result: str) -> None:
        """Notify the lead that this teammate is idle."""
        data = rules.idle_notification(self._desk.who.name, at=now_ms(), result=escape_unstorable(result))
        self._desk.mail_lead(type="idle_notification", data=data)

    def reply(self, letter: IncomingMessage, text: str) -> None:
        """Reply to a message; a reply is never answered, otherwise two teammates would loop forever."""
        if letter.sender is None or letter.is_reply or not text.strip():
            return
        self._desk.write(letter.sender, text=escape_unstorable(text)[:_LONGEST_REPLY], data={"inReplyTo": letter.id})

    def read(self, letter: IncomingMessage) -> None:
        """Acknowledge a handled message."""
        if letter.id:
            self._workers.begin(lambda: self._desk.read(letter.id))

    # -- plans -------------------------------------------------------------------------------

    async def request_approval(self, task: Task, text: str, request_id: str) -> PlanVerdict | None:
        """Send a plan to the lead and wait for the verdict, without timeout.

        None: the teammate must end instead.
        """
        self._request = request_id
        self._verdict = asyncio.get_running_loop().create_future()
        asked = rules.plan_request(
            self._desk.who.name, escape_unstorable(text), request_id=request_id, task_id=task.id, at=now_ms()
        )
        try:
            await self._workers.do(lambda: self._desk.mail_lead(type=rules.PLAN_REQUEST, data=asked))
            with self._inbox.awaiting():
                return await self._verdict
        finally:
            self._verdict = None

    async def _is_verdict(self, message: Message) -> bool:
        if self._verdict is None or self._verdict.done():
            return message.type == rules.PLAN_RESPONSE  # about a plan that is no longer awaited
        found = rules.parse_verdict(message, self._request)
        if found is None or not await self._workers.do(lambda: self._desk.is_authorised(message.sender)):
            return message.type == rules.PLAN_RESPONSE
        self._verdict.set_result(found)
        return True

    def _take_verdict(self, letter: IncomingMessage) -> bool:
        """Use text typed by the user as the verdict, if one is awaited; return whether it was."""
        if self._verdict is None or self._verdict.done():
            return False
        self._verdict.set_result(rules.parse_verdict_text(letter.text))
        return True
