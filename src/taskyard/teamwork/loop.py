"""
The loop of a teammate: claim in id order, work, complete, look again; idle when there is nothing.

    a letter waits          work on it, as a prompt of its own
    a task is to be had     plan it if plans are wanted, work on it, say that it is done
    neither                 end, if the whole list is done; else idle, and sleep until there is news

Whatever happens is decided here; what it does to list, mail and team is `desk`, who wakes it is `lookout`.
"""

from __future__ import annotations

import asyncio
import time

from taskyard.engines.engine import Said
from taskyard.teamwork import plan, prompts
from taskyard.teamwork.idle import Idleness
from taskyard.teamwork.lookout import Ticket
from taskyard.turn import RESUMED
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from taskyard.engines.engine import RateLimit
    from taskyard.identity import Acting
    from taskyard.kinds.teammate import Teammate
    from taskyard.runtime.context import JobContext
    from taskyard.runtime.rate_limit import RateLimited
    from taskyard.tasklist.model import Task
    from taskyard.teamwork.desk import Desk
    from taskyard.teamwork.messages import Inbox, Letter
    from taskyard.teamwork.office import Office
    from taskyard.teamwork.post import Postman
    from taskyard.teamwork.watching import Watch
    from taskyard.turn import Turns

    Work = Callable[["Turn"], Awaitable[Said]]
    OnIdle = Callable[[Acting, bool], None]

#: How often a task that was refused goes back to its worker before it counts as failed.
_MOST_ROUNDS = 3

#: How often hooks may send a teammate on that has nothing to do.
_MOST_HOOKS = 10

#: Seconds before a turn that failed for a passing reason (a cut stream, a server error) is tried again.
DELAYS = (1.0, 5.0, 20.0)


_SHUT_DOWN = "its worker was shut down"


class Turn(NamedTuple):
    """One thing for a teammate to work on."""

    prompt: str
    who: Acting
    task: Task | None  #: None: it is a message, or a hook's word
    watch: Watch
    session: str | None = None  #: the conversation to go on with, by the name its engine gave it

    def say(self, text: str) -> None:
        """Put something into its conversation, for those who look on."""
        self.watch.record({"type": "assistant", "text": text})


class Tally(NamedTuple):
    """What became of its tasks."""

    completed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class Loop:
    """One teammate at work."""

    def __init__(
        self,
        spec: Teammate,
        context: JobContext,
        office: Office,
        desk: Desk,
        inbox: Inbox,
        watch: Watch,
        work: Work,
        turns: Turns,
    ) -> None:
        self._spec, self._context, self._office, self._turns = spec, context, office, turns
        self._desk, self._inbox, self._watch, self._work = desk, inbox, watch, work
        self._intro = prompts.introduction(desk.who.name, desk.who.team, office.list_name, spec.prompt)
        self._idleness = Idleness()
        self._hooked = 0
        self._last = ""
        self._working: asyncio.Future[Said] | None = None
        self._is_cut = False
        self._about: str | None = None  # the task that its conversation is about
        self.on_idle: list[OnIdle] = []  #: each is told of every change
        self.ask_hooks: Callable[[], Awaitable[str]]  #: what TeammateIdle hooks want done; "": nothing
        self.postman: Postman
        self.tally = Tally()
        self.ends = ""  #: why it is to end, once it is
        self.limit = ""  #: the rate limit that it ends for, if that is why
        self.ticket = Ticket(desk.who.name, desk.suits, inbox.ring, ends_when_done=spec.until == "done")

    async def go(self) -> None:
        """Work until there is a reason to end."""
        self._office.lookout.enter(self.ticket)
        try:
            while not self.ends:
                await self._context.turn()
                await self._round()
        finally:
            self._office.lookout.leave(self.ticket)

    def end(self, why: str, *, now: bool = False) -> None:
        """Have it end after what it works on; with `now`, in the middle of it."""
        self.ends = self.ends or why
        self._is_cut = self._is_cut or now
        if now and self._working is not None:
            self._working.cancel()
        self._turns.end()
        self._inbox.ring()

    def show_limit(self, limit: RateLimited | None) -> None:
        """Show that it waits for its provider: its claim stays, and its silence is no stall."""
        if limit is None and not self._watch.is_limited:
            return
        self._watch.show_limit(limit)
        self._office.begin(lambda: self._desk.progress("working" if limit is None else "idle"))

    async def _round(self) -> None:
        if (letter := self._inbox.take()) is not None:
            await self._deal_with(letter)
            return
        if (held := await self._turns.clear()) is not None:
            self._stop_for(held)  # before a task is claimed that another account's member could do
            return
        self._inbox.arm()
        self.ticket.is_waiting = True
        try:
            task = await self._office.do(self._desk.take)
            if task is None:
                await self._rest()
                return
        finally:
            self.ticket.is_waiting = False
        await self._do(task)

    # -- nothing to do -----------------------------------------------------------------------

    async def _rest(self) -> None:
        if self._desk.is_outcast:
            self.ends = "it is in the team no longer"
        elif self._spec.until == "done" and await self._office.do(self._desk.is_finished):
            self.ends = "every task is completed"
        elif await self._may_idle():
            await self._change(idle=True)
            self.ticket.is_waiting = True
            await self._inbox.news()

    async def _may_idle(self) -> bool:
        """Whether it may rest; a hook that has something for it is obeyed first."""
        if not self._idleness.is_news(idle=True):
            return True
        more = await self.ask_hooks() if self._hooked < _MOST_HOOKS else ""
        if not more:
            return True
        self._hooked += 1
        self._office.lookout.leave(self.ticket)  # busy: new tasks are for those who really wait
        try:
            await self._turn(prompts.from_hook(more), None)
        finally:
            self._office.lookout.enter(self.ticket)
        return False

    async def _change(self, *, idle: bool) -> None:
        """Tell everybody whom it concerns that it is idle now, or no longer; once per change."""
        if not self._idleness.is_news(idle=idle):
            return
        self._idleness = self._idleness.after(idle=idle)
        self._watch.tell(isIdle=idle)
        if idle:
            await self._office.do(lambda: self.postman.idle(self._last))
        await self._office.do(lambda: self._desk.progress("idle" if idle else "working"))
        for told in self.on_idle:
            told(self._desk.who, idle)

    # -- something to do ---------------------------------------------------------------------

    async def _deal_with(self, letter: Letter) -> None:
        said = await self._turn(prompts.from_somebody(letter.sender, letter.text), None)
        if said.rate_limit is not None:
            self._stop_for(said.rate_limit)
        told = "\n\n".join(filter(None, (said.text, said.failure)))
        await self._office.do(lambda: self.postman.reply(letter, told))
        self._inbox.done(letter)

    async def _do(self, task: Task) -> None:
        self._hooked = 0
        approved = ""
        if self._spec.plan_first:
            found = await self._planned(task)
            if found is None:
                return
            approved = found
        prompt = prompts.for_task(task, approved)
        refusal = ""
        for _ in range(_MOST_ROUNDS):
            said = await self._permitted(task, await self._turn(prompt, task))
            if not said.is_complete:
                await self._incomplete(task, said)
                return
            refusal = await self._completed(task)
            if not refusal:
                return
            prompt = prompts.refused(task, refusal)
        await self._failed(task, refusal)

    async def _permitted(self, task: Task, said: Said) -> Said:
        """The turn, once nothing is refused in it: a person is asked about what was, and the task stays claimed."""
        while said.refused and not said.error and said.rate_limit is None:
            await self._office.do(lambda: self._desk.progress("idle"))  # it waits: that is no stall
            answer = await self._asked(prompts.question(task, said.refused, said.text))
            if answer is None or _is_no(answer):
                return said
            if _is_accepted(answer):
                return said._replace(refused=())
            said = await self._turn(prompts.permitted(task, said.refused, answer), task)
        return said

    async def _asked(self, question: str) -> str | None:
        """What a person answers; None if it is to end instead."""
        asking = asyncio.ensure_future(self._watch.ask(question))
        ending = asyncio.ensure_future(self._turns.ended())
        try:
            await asyncio.wait({asking, ending}, return_when=asyncio.FIRST_COMPLETED)
            return asking.result() if asking.done() else None
        finally:
            for each in (asking, ending):
                each.cancel()
            await asyncio.wait({asking, ending})

    async def _incomplete(self, task: Task, said: Said) -> None:
        """A task whose turn is not completed: back to the pool; only a failure counts as one."""
        if said.rate_limit is not None:
            await self._office.do(lambda: self._desk.release(said.failure))
            self._stop_for(said.rate_limit)
        elif said.refused and not said.error:
            if self.ends:
                await self._office.do(lambda: self._desk.release(said.failure))
            else:
                await self._failed(task, said.failure, most=1)  # another try would be refused as well
        else:
            await self._failed(task, said.error)

    def _stop_for(self, limit: RateLimit) -> None:
        """End, since the rate limit is not to be waited for; one that is to end anyway does so for that reason."""
        if not self.ends:
            self.limit = limit.failure
            self.ends = f"it is {limit.failure}"

    async def _completed(self, task: Task) -> str:
        """Say that it is done; why it is not, if so. Hooks and checks may take their time: in a thread of their own."""
        if self._desk.is_checked(task):
            ending = await asyncio.to_thread(self._desk.complete, task)
        else:
            ending = await self._office.do(lambda: self._desk.complete(task))
        if ending.refusal:
            self._watch.record({"type": "refused", "task": task.id, "text": ending.refusal})
        if ending.gave_up:
            self.tally = self.tally._replace(failed=(*self.tally.failed, task.id)[-1000:])
        if ending.is_done:
            self.tally = self.tally._replace(completed=(*self.tally.completed, task.id)[-1000:])
        return ending.refusal

    async def _failed(self, task: Task, why: str, *, most: int | None = None) -> None:
        if self._is_cut:
            await self._office.do(lambda: self._desk.release(why))
            return
        self._watch.record({"type": "failed", "task": task.id, "text": why})
        self.tally = self.tally._replace(failed=(*self.tally.failed, task.id)[-1000:])
        await self._office.do(lambda: self._desk.fail(why, most=most))

    async def _planned(self, task: Task) -> str | None:
        """A plan that the lead approved; None: there is none, and the task is back in the pool."""
        feedback = ""
        for _ in range(plan.MOST_PLANS):
            said = await self._permitted(task, await self._turn(prompts.for_plan(task, feedback), task))
            if not said.is_complete:
                await self._incomplete(task, said)
                return None
            request_id = plan.new_request()
            self._watch.tell(awaitsApproval=True, planRequest=request_id)
            await self._office.do(lambda: self._desk.progress("idle"))  # it waits: that is no stall
            try:
                verdict = await self.postman.approval(task, said.text, request_id)
            finally:
                self._watch.tell(awaitsApproval=False, planRequest="")
            await self._office.do(lambda: self._desk.progress("working"))
            if verdict is None:
                await self._office.do(lambda: self._desk.release(_SHUT_DOWN))
                return None
            if verdict.approved:
                return said.text
            feedback = verdict.feedback
        await self._failed(task, f"{plan.MOST_PLANS} plans were not approved; the last word was: {feedback}")
        return None

    # -- one turn ----------------------------------------------------------------------------

    async def _turn(self, prompt: str, task: Task | None) -> Said:
        """Work on a prompt, however often a rate limit interrupts that: then the same conversation goes on."""
        await self._change(idle=False)
        about = None if task is None else task.id
        if about is None or about != self._about:
            self._about, self._watch.session = about, None
        self._watch.begin(prompt, None if task is None else f"{self._office.list_name}/{task.id}")
        left = self._spec.task_timeout  # seconds; waiting for a rate limit takes none of them

        async def run(told: str, session: str | None) -> Said:
            nonlocal left
            began = time.monotonic()
            try:
                return await self._once(Turn(told, self._desk.who, task, self._watch, session), left)
            finally:
                self._watch.end_run()
                left = None if left is None else max(left - (time.monotonic() - began), 0.001)

        async def once(is_resumed: bool) -> Said:
            told, session = f"{self._intro}\n\n{prompt}", self._watch.session
            if is_resumed and (session is not None or self._spec.engine != "command"):
                told = f"{RESUMED}\n\n{told}"
            said = await run(told, session)
            if session is None or not said.is_session_lost:
                return said
            self._watch.forget_session(said.error)
            return await run(f"{self._intro}\n\n{prompts.afresh(task, prompt)}", None)

        try:
            said = await self._turns.take(once)
        finally:
            self._watch.end()
        if said.is_complete:
            self._last = said.text
        return said

    async def _once(self, turn: Turn, seconds: float | None) -> Said:
        if self._is_cut:
            return Said(error=_SHUT_DOWN)
        self._working = asyncio.ensure_future(self._work(turn))
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return await self._working
        except TimeoutError:
            if not limit.expired():
                raise
            return Said(error=f"it took longer than {self._spec.task_timeout:g} s")
        except asyncio.CancelledError:
            if _is_cancelled():
                raise
            return Said(error=_SHUT_DOWN if self.ends else "it was cancelled by its own code")
        finally:
            self._working = None


def _is_no(answer: str) -> bool:
    """Whether a person does not want a task tried again."""
    return answer.strip().strip(".!`'\"").lower() in ("fail", "no", "n", "deny", "denied", "abort", "give up")


def _is_accepted(answer: str) -> bool:
    """Whether a person takes the work as it is, although something was refused."""
    return answer.strip().strip(".!`'\"").lower() in ("done", "accept", "accepted")


def _is_cancelled() -> bool:
    """Whether it is this very task that shall end, not only the work it waits for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
