"""
The loop of a teammate: claim in id order, work, complete, look again; idle when there is nothing.

    a letter waits          work on it, as a prompt of its own
    a task is to be had     plan it if plans are wanted, work on it, say that it is done
    neither                 end, if the whole list is done; else idle, and sleep until there is news

Whatever happens is decided here; what it does to list, mail and team is `desk`, who wakes it is `lookout`.
"""

from __future__ import annotations

import asyncio

from taskyard.engines.engine import Said
from taskyard.teamwork import plan, prompts
from taskyard.teamwork.idle import Idleness
from taskyard.teamwork.lookout import Ticket
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from taskyard.identity import Acting
    from taskyard.kinds.teammate import Teammate
    from taskyard.runtime.context import JobContext
    from taskyard.tasklist.model import Task
    from taskyard.teamwork.desk import Desk
    from taskyard.teamwork.messages import Inbox, Letter
    from taskyard.teamwork.office import Office
    from taskyard.teamwork.post import Postman
    from taskyard.teamwork.watching import Watch

    Work = Callable[["Turn"], Awaitable[Said]]
    OnIdle = Callable[[Acting, bool], None]

#: How often a task that was refused goes back to its worker before it counts as failed.
_MOST_ROUNDS = 3

#: How often hooks may send a teammate on that has nothing to do.
_MOST_HOOKS = 10

#: Seconds before a turn that failed for a moment's reason (a limit, a cut line) is tried again.
_DELAYS = (1.0, 5.0, 20.0)


_SHUT_DOWN = "its worker was shut down"


class Turn(NamedTuple):
    """One thing for a teammate to work on."""

    prompt: str
    who: Acting
    task: Task | None  #: None: it is a message, or a hook's word
    watch: Watch

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
        self, spec: Teammate, context: JobContext, office: Office, desk: Desk, inbox: Inbox, watch: Watch, work: Work
    ) -> None:
        self._spec, self._context, self._office = spec, context, office
        self._desk, self._inbox, self._watch, self._work = desk, inbox, watch, work
        self._intro = prompts.introduction(desk.who.name, desk.who.team, office.list_name, spec.prompt)
        self._idleness = Idleness()
        self._hooked = 0
        self._last = ""
        self._working: asyncio.Future[Said] | None = None
        self._is_cut = False
        self.on_idle: list[OnIdle] = []  #: each is told of every change
        self.ask_hooks: Callable[[], Awaitable[str]]  #: what TeammateIdle hooks want done; "": nothing
        self.postman: Postman
        self.tally = Tally()
        self.ends = ""  #: why it is to end, once it is
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
        self._inbox.ring()

    async def _round(self) -> None:
        if (letter := self._inbox.take()) is not None:
            await self._deal_with(letter)
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
        await self._office.do(lambda: self.postman.reply(letter, said.text or said.error))
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
            said = await self._turn(prompt, task)
            if said.error:
                await self._failed(task, said.error)
                return
            refusal = await self._completed(task)
            if not refusal:
                return
            prompt = prompts.refused(task, refusal)
        await self._failed(task, refusal)

    async def _completed(self, task: Task) -> str:
        """Say that it is done; why it is not, if so. Hooks and checks may take their time: in a thread of their own."""
        if self._desk.is_checked(task):
            ending = await asyncio.to_thread(self._desk.complete, task)
        else:
            ending = await self._office.do(lambda: self._desk.complete(task))
        if ending.refusal:
            self._watch.record({"type": "refused", "task": task.id, "text": ending.refusal})
        if ending.is_done:
            self.tally = self.tally._replace(completed=(*self.tally.completed, task.id)[-1000:])
        return ending.refusal

    async def _failed(self, task: Task, why: str) -> None:
        if self._is_cut:
            await self._office.do(lambda: self._desk.release(why))
            return
        self._watch.record({"type": "failed", "task": task.id, "text": why})
        self.tally = self.tally._replace(failed=(*self.tally.failed, task.id)[-1000:])
        await self._office.do(lambda: self._desk.fail(why))

    async def _planned(self, task: Task) -> str | None:
        """A plan that the lead approved; None: there is none, and the task is back in the pool."""
        feedback = ""
        for _ in range(plan.MOST_PLANS):
            said = await self._turn(prompts.for_plan(task, feedback), task)
            if said.error:
                await self._failed(task, said.error)
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
        """Work on a prompt; what failed for a moment's reason is tried again after a while."""
        await self._change(idle=False)
        self._watch.begin(prompt, None if task is None else f"{self._office.list_name}/{task.id}")
        turn = Turn(f"{self._intro}\n\n{prompt}", self._desk.who, task, self._watch)
        try:
            said = await self._once(turn)
            for delay in _DELAYS:
                if not said.is_retryable or self.ends:
                    break
                self._watch.record({"type": "retry", "text": said.error, "after": delay})
                await asyncio.sleep(delay)
                said = await self._once(turn)
        finally:
            self._watch.end()
        if not said.error:
            self._last = said.text
        return said

    async def _once(self, turn: Turn) -> Said:
        if self._is_cut:
            return Said(error=_SHUT_DOWN)
        self._working = asyncio.ensure_future(self._work(turn))
        limit = asyncio.timeout(self._spec.task_timeout)
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


def _is_cancelled() -> bool:
    """Whether it is this very task that shall end, not only the work it waits for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
