"""
A teammate's mail: fetched as it comes, sorted, answered.

    shutdown_request           answered, and it ends after its task; a second one ends it at once, task given back
    plan_approval_response     the verdict on a plan; so is a plain message of the lead while one is awaited
    task_assignment            the task is on the list: a look there is all it takes
    anything else              a letter to work on
"""

from __future__ import annotations

import asyncio

from taskyard.clock import iso, now_ms
from taskyard.disk.async_follow import followed
from taskyard.names import storable
from taskyard.shapes import as_text
from taskyard.tasklist.message import MESSAGE
from taskyard.teamwork import idle, plan
from taskyard.teamwork.failing import PERSON
from taskyard.teamwork.messages import Letter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.runtime.context import JobContext
    from taskyard.tasklist.message import Message
    from taskyard.tasklist.model import Task
    from taskyard.teamwork.desk import Desk
    from taskyard.teamwork.messages import Inbox
    from taskyard.teamwork.office import Office
    from taskyard.teamwork.plan import Verdict

#: Characters of an answer that are mailed back.
_LONGEST_REPLY = 50_000


class Postman:
    """One teammate's."""

    def __init__(
        self, office: Office, desk: Desk, inbox: Inbox, *, backend: str, end: Callable[[str, bool], None]
    ) -> None:
        """`end(why, now)` has the teammate end; `backend` is what it runs in, for those who ask it to."""
        self._office = office
        self._desk = desk
        self._inbox = inbox
        self._backend = backend
        self._end = end
        self._shutdowns = 0
        self._request = ""
        self._verdict: asyncio.Future[Verdict | None] | None = None

    # -- coming in ---------------------------------------------------------------------------

    async def fetch(self) -> None:
        """Bring in mail whenever the kernel or the database says that there is some, until cancelled."""
        with followed(*self._desk.watched_folders()) as folder, self._desk.hears(folder.ring):
            while True:
                await folder.news()
                while found := await self._office.do(self._desk.mail):
                    for message in found:
                        await self._sort(message)
                    await self._inbox.room()

    async def listen(self, context: JobContext) -> None:
        """Bring in what is typed into the job, until nothing more can come."""
        async for text in context.messages():
            await self._inbox.room()
            if self._decides(Letter(text)):
                continue
            self._inbox.put(Letter(text))

    async def _sort(self, message: Message) -> None:
        if message.type == "shutdown_request" and await self._office.do(lambda: self._desk.obeys(message.sender)):
            await self._office.do(lambda: self._shut_down(message))
            self._shutdowns += 1
            self._leave(f"{message.sender} asked it to", now=self._shutdowns > 1)
        elif message.type == "shutdown_request":
            await self._office.do(lambda: self._refuse(message))
        elif await self._is_verdict(message):
            await self._office.do(lambda: self._desk.read(message.id))
        elif message.type == MESSAGE:
            answers = bool(message.data.get("inReplyTo"))
            decides = await self._office.do(lambda: self._desk.obeys(message.sender))
            self._inbox.put(Letter(message.text, message.sender, message.id, answers, decides))
        else:
            self._desk.may_have_been_given = True
            await self._office.do(lambda: self._desk.read(message.id))
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
        """Tell somebody who cannot shut it down who can."""
        leads = " or ".join(dict.fromkeys((self._desk.lead(), PERSON)))
        text = f"{self._desk.who.name} goes on: only {leads} can shut it down."
        self._desk.write(message.sender, text=text, data={"inReplyTo": message.id})
        self._desk.read(message.id)

    # -- going out ---------------------------------------------------------------------------

    def idle(self, result: str) -> None:
        """Tell the lead that there is nothing left to do."""
        data = idle.notification(self._desk.who.name, at=now_ms(), result=storable(result))
        self._desk.tell_lead(type="idle_notification", data=data)

    def reply(self, letter: Letter, text: str) -> None:
        """Answer a letter; an answer is not answered, or two teammates would never stop."""
        if letter.sender is None or letter.is_reply or not text.strip():
            return
        self._desk.write(letter.sender, text=storable(text)[:_LONGEST_REPLY], data={"inReplyTo": letter.id})

    def read(self, letter: Letter) -> None:
        """A letter was dealt with."""
        if letter.id:
            self._office.begin(lambda: self._desk.read(letter.id))

    # -- plans -------------------------------------------------------------------------------

    async def approval(self, task: Task, text: str, request_id: str) -> Verdict | None:
        """What the lead says of a plan, whenever that is; None: the teammate is to end instead."""
        self._request = request_id
        self._verdict = asyncio.get_running_loop().create_future()
        asked = plan.request(self._desk.who.name, storable(text), request_id=request_id, task_id=task.id, at=now_ms())
        try:
            await self._office.do(lambda: self._desk.tell_lead(type=plan.REQUEST, data=asked))
            with self._inbox.awaiting():
                return await self._verdict
        finally:
            self._verdict = None

    async def _is_verdict(self, message: Message) -> bool:
        if self._verdict is None or self._verdict.done():
            return message.type == plan.ANSWER  # about a plan that nobody waits for
        found = plan.verdict(message, self._request)
        if found is None or not await self._office.do(lambda: self._desk.obeys(message.sender)):
            return message.type == plan.ANSWER
        self._verdict.set_result(found)
        return True

    def _decides(self, letter: Letter) -> bool:
        """Whether what a person typed is the verdict on a plan."""
        if self._verdict is None or self._verdict.done():
            return False
        self._verdict.set_result(plan.in_words(letter.text))
        return True
