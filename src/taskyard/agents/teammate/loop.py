"""Main loop of a teammate: claim in id order, work, complete, repeat; idle when there is nothing.

    a message waits         work on it, as a prompt of its own
    a task is available     plan it if plans are required, work on it, complete it
    neither                 end, if the whole list is done; else idle, and wait for a change

All decisions are made here; `TeammateClient` changes list, mail and team, `TaskWatcher` wakes the loop.
"""

from __future__ import annotations

import asyncio
import time

from taskyard.agents.engines.engine import TurnResult
from taskyard.agents.teammate import rules
from taskyard.agents.teammate.rules import IdleState
from taskyard.agents.teammate.workers import Waiter
from taskyard.agents.turn import RESUME_PROMPT
from taskyard.core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from taskyard.agents.engines.engine import RateLimit
    from taskyard.agents.identity import TeammateIdentity
    from taskyard.agents.teammate.client import TeammateClient
    from taskyard.agents.teammate.kind import Teammate
    from taskyard.agents.teammate.mail import Inbox, IncomingMessage, MailHandler
    from taskyard.agents.teammate.recorder import TeammateRecorder
    from taskyard.agents.teammate.workers import SharedWorkers
    from taskyard.agents.turn import TurnRunner
    from taskyard.jobs.context import JobContext
    from taskyard.jobs.rate_limit import RateLimited
    from taskyard.tasks.model import Task

    Work = Callable[["Turn"], Awaitable[TurnResult]]
    OnIdle = Callable[[TeammateIdentity, bool], None]

#: Attempts for a task whose completion is refused before it counts as failed.
_MOST_ROUNDS = 3

#: How often hooks may give an idle teammate more to do.
_MOST_HOOKS = 10

#: Backoff in seconds before a turn that failed for a transient reason (a cut stream, a server error) is
#: retried.
DELAYS = (1.0, 5.0, 20.0)


_SHUT_DOWN = "its worker was shut down"


class Turn(NamedTuple):
    """One thing for a teammate to work on."""

    prompt: str
    who: TeammateIdentity
    task: Task | None  #: None: a message, or a hook's text
    watch: TeammateRecorder
    session: str | None = None  #: conversation to continue, by the id its engine gave it

    def say(self, text: str) -> None:
        """Add text to the transcript, for viewers."""
        self.watch.record({"type": "assistant", "text": text})


class TaskTally(NamedTuple):
    """Completed and failed tasks."""

    completed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class Loop:
    """One teammate at work."""

    def __init__(
        self,
        spec: Teammate,
        context: JobContext,
        office: SharedWorkers,
        desk: TeammateClient,
        inbox: Inbox,
        watch: TeammateRecorder,
        work: Work,
        turns: TurnRunner,
    ) -> None:
        self._spec, self._context, self._workers, self._turns = spec, context, office, turns
        self._desk, self._inbox, self._watch, self._work = desk, inbox, watch, work
        self._introduction = rules.introduction(desk.who.name, desk.who.team, office.list_name, spec.prompt)
        self._idle_state = IdleState()
        self._hook_rounds = 0
        self._last = ""
        self._working: asyncio.Future[TurnResult] | None = None
        self._is_cut = False
        self._about: str | None = None  # task id of the current conversation
        self.on_idle: list[OnIdle] = []  #: each is called at every change
        self.ask_hooks: Callable[[], Awaitable[str]]  #: returns what TeammateIdle hooks want done; "": nothing
        self.mail_handler: MailHandler
        self.tally = TaskTally()
        self.ends = ""  #: why it must end, once it must
        self.limit = ""  #: the rate limit it ends for, if that is why
        self.waiter = Waiter(desk.who.name, desk.suits, inbox.ring, ends_when_done=spec.until == "done")

    async def go(self) -> None:
        """Work until there is a reason to end."""
        self._workers.task_watcher.enter(self.waiter)
        try:
            while not self.ends:
                await self._context.turn()
                await self._round()
        finally:
            self._workers.task_watcher.leave(self.waiter)

    def end(self, why: str, *, now: bool = False) -> None:
        """End after the current work; with `now`, cancel that work."""
        self.ends = self.ends or why
        self._is_cut = self._is_cut or now
        if now and self._working is not None:
            self._working.cancel()
        self._turns.end()
        self._inbox.ring()

    def show_limit(self, limit: RateLimited | None) -> None:
        """Show that it waits for a rate limit: the claim stays, and the silence does not count as a stall."""
        if limit is None and not self._watch.is_limited:
            return
        self._watch.show_limit(limit)
        self._workers.begin(lambda: self._desk.progress("working" if limit is None else "idle"))

    async def _round(self) -> None:
        if (letter := self._inbox.take()) is not None:
            await self._handle_message(letter)
            return
        if (held := await self._turns.clear()) is not None:
            self._stop_for_limit(held)  # before claiming a task that a member on another account could do
            return
        self._inbox.arm()
        self.waiter.is_waiting = True
        try:
            task = await self._workers.do(self._desk.take)
            if task is None:
                await self._rest()
                return
        finally:
            self.waiter.is_waiting = False
        await self._do(task)

    # -- nothing to do -----------------------------------------------------------------------

    async def _rest(self) -> None:
        if self._desk.is_removed:
            self.ends = "it is in the team no longer"
        elif self._spec.until == "done" and await self._workers.do(self._desk.is_finished):
            self.ends = "every task is completed"
        elif await self._may_idle():
            await self._change(idle=True)
            self.waiter.is_waiting = True
            await self._inbox.news()

    async def _may_idle(self) -> bool:
        """Return whether it may idle; work requested by a hook is done first."""
        if not self._idle_state.is_news(idle=True):
            return True
        more = await self.ask_hooks() if self._hook_rounds < _MOST_HOOKS else ""
        if not more:
            return True
        self._hook_rounds += 1
        self._workers.task_watcher.leave(self.waiter)  # busy: new tasks are for teammates that are waiting
        try:
            await self._turn(rules.hook_prompt(more), None)
        finally:
            self._workers.task_watcher.enter(self.waiter)
        return False

    async def _change(self, *, idle: bool) -> None:
        """Report to recorder, lead, team and listeners that it became idle or busy; once per change."""
        if not self._idle_state.is_news(idle=idle):
            return
        self._idle_state = self._idle_state.after(idle=idle)
        self._watch.tell(isIdle=idle)
        if idle:
            await self._workers.do(lambda: self.mail_handler.idle(self._last))
        await self._workers.do(lambda: self._desk.progress("idle" if idle else "working"))
        for told in self.on_idle:
            told(self._desk.who, idle)

    # -- something to do ---------------------------------------------------------------------

    async def _handle_message(self, letter: IncomingMessage) -> None:
        said = await self._turn(rules.message_prompt(letter.sender, letter.text), None)
        if said.rate_limit is not None:
            self._stop_for_limit(said.rate_limit)
        told = "\n\n".join(filter(None, (said.text, said.failure)))
        await self._workers.do(lambda: self.mail_handler.reply(letter, told))
        self._inbox.done(letter)

    async def _do(self, task: Task) -> None:
        self._hook_rounds = 0
        approved = ""
        if self._spec.plan_first:
            found = await self._plan_approved(task)
            if found is None:
                return
            approved = found
        prompt = rules.task_prompt(task, approved)
        refusal = ""
        for _ in range(_MOST_ROUNDS):
            said = await self._resolve_refusals(task, await self._turn(prompt, task))
            if not said.is_complete:
                await self._handle_incomplete(task, said)
                return
            refusal = await self._completed(task)
            if not refusal:
                return
            prompt = rules.refusal_prompt(task, refusal)
        await self._failed(task, refusal)

    async def _resolve_refusals(self, task: Task, said: TurnResult) -> TurnResult:
        """Ask the user about refused tools until none is refused; return the final turn.

        The task stays claimed meanwhile.
        """
        while said.refused and not said.error and said.rate_limit is None:
            await self._workers.do(lambda: self._desk.progress("idle"))  # waiting is not a stall
            answer = await self._asked(rules.permission_question(task, said.refused, said.text))
            if answer is None or _is_rejection(answer):
                return said
            if _is_acceptance(answer):
                return said._replace(refused=())
            said = await self._turn(rules.permission_prompt(task, said.refused, answer), task)
        return said

    async def _asked(self, question: str) -> str | None:
        """Return the user's answer; None if the teammate must end instead."""
        asking = asyncio.ensure_future(self._watch.ask(question))
        ending = asyncio.ensure_future(self._turns.ended())
        try:
            await asyncio.wait({asking, ending}, return_when=asyncio.FIRST_COMPLETED)
            return asking.result() if asking.done() else None
        finally:
            for each in (asking, ending):
                each.cancel()
            await asyncio.wait({asking, ending})

    async def _handle_incomplete(self, task: Task, said: TurnResult) -> None:
        """Return a task whose turn is not complete to the pool; only a failure counts as one."""
        if said.rate_limit is not None:
            await self._workers.do(lambda: self._desk.release(said.failure))
            self._stop_for_limit(said.rate_limit)
        elif said.refused and not said.error:
            if self.ends:
                await self._workers.do(lambda: self._desk.release(said.failure))
            else:
                await self._failed(task, said.failure, most=1)  # a retry would be refused as well
        else:
            await self._failed(task, said.error)

    def _stop_for_limit(self, limit: RateLimit) -> None:
        """End because the rate limit is not waited for; an earlier reason to end takes precedence."""
        if not self.ends:
            self.limit = limit.failure
            self.ends = f"it is {limit.failure}"

    async def _completed(self, task: Task) -> str:
        """Complete the task; return the refusal, if any.

        Hooks and checks may be slow: they run in a separate thread.
        """
        if self._desk.has_completion_check(task):
            ending = await asyncio.to_thread(self._desk.complete, task)
        else:
            ending = await self._workers.do(lambda: self._desk.complete(task))
        if ending.refusal:
            self._watch.record({"type": "refused", "task": task.id, "text": ending.refusal})
        if ending.gave_up:
            self.tally = self.tally._replace(failed=(*self.tally.failed, task.id)[-1000:])
        if ending.is_done:
            self.tally = self.tally._replace(completed=(*self.tally.completed, task.id)[-1000:])
        return ending.refusal

    async def _failed(self, task: Task, why: str, *, most: int | None = None) -> None:
        if self._is_cut:
            await self._workers.do(lambda: self._desk.release(why))
            return
        self._watch.record({"type": "failed", "task": task.id, "text": why})
        self.tally = self.tally._replace(failed=(*self.tally.failed, task.id)[-1000:])
        await self._workers.do(lambda: self._desk.fail(why, most=most))

    async def _plan_approved(self, task: Task) -> str | None:
        """Return a plan approved by the lead; None: there is none, and the task was returned to the pool."""
        feedback = ""
        for _ in range(rules.MOST_PLANS):
            said = await self._resolve_refusals(task, await self._turn(rules.plan_prompt(task, feedback), task))
            if not said.is_complete:
                await self._handle_incomplete(task, said)
                return None
            request_id = rules.new_request_id()
            self._watch.tell(awaitsApproval=True, planRequest=request_id)
            await self._workers.do(lambda: self._desk.progress("idle"))  # waiting is not a stall
            try:
                verdict = await self.mail_handler.request_approval(task, said.text, request_id)
            finally:
                self._watch.tell(awaitsApproval=False, planRequest="")
            await self._workers.do(lambda: self._desk.progress("working"))
            if verdict is None:
                await self._workers.do(lambda: self._desk.release(_SHUT_DOWN))
                return None
            if verdict.approved:
                return said.text
            feedback = verdict.feedback
        await self._failed(task, f"{rules.MOST_PLANS} plans were not approved; the last word was: {feedback}")
        return None

    # -- one turn ----------------------------------------------------------------------------

    async def _turn(self, prompt: str, task: Task | None) -> TurnResult:
        """Work on a prompt; after each rate limit the same conversation is resumed."""
        await self._change(idle=False)
        about = None if task is None else task.id
        if about is None or about != self._about:
            self._about, self._watch.session = about, None
        self._watch.begin(prompt, None if task is None else f"{self._workers.list_name}/{task.id}")
        left = self._spec.task_timeout  # seconds; waiting for a rate limit does not count

        async def run(told: str, session: str | None) -> TurnResult:
            nonlocal left
            began = time.monotonic()
            try:
                return await self._once(Turn(told, self._desk.who, task, self._watch, session), left)
            finally:
                self._watch.end_run()
                left = None if left is None else max(left - (time.monotonic() - began), 0.001)

        async def once(is_resumed: bool) -> TurnResult:
            told, session = f"{self._introduction}\n\n{prompt}", self._watch.session
            if is_resumed and (session is not None or self._spec.engine != "command"):
                told = f"{RESUME_PROMPT}\n\n{told}"
            said = await run(told, session)
            if session is None or not said.is_session_lost:
                return said
            self._watch.forget_session(said.error)
            return await run(f"{self._introduction}\n\n{rules.restart_prompt(task, prompt)}", None)

        try:
            said = await self._turns.take(once)
        finally:
            self._watch.end()
        if said.is_complete:
            self._last = said.text
        return said

    async def _once(self, turn: Turn, seconds: float | None) -> TurnResult:
        if self._is_cut:
            return TurnResult(error=_SHUT_DOWN)
        self._working = asyncio.ensure_future(self._work(turn))
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return await self._working
        except TimeoutError:
            if not limit.expired():
                raise
            return TurnResult(error=f"it took longer than {self._spec.task_timeout:g} s")
        except asyncio.CancelledError:
            if _is_cancelled():
                raise
            return TurnResult(error=_SHUT_DOWN if self.ends else "it was cancelled by its own code")
        finally:
            self._working = None


def _is_rejection(answer: str) -> bool:
    """Return whether the user does not want the task retried."""
    return answer.strip().strip(".!`'\"").lower() in ("fail", "no", "n", "deny", "denied", "abort", "give up")


def _is_acceptance(answer: str) -> bool:
    """Return whether the user accepts the work although something was refused."""
    return answer.strip().strip(".!`'\"").lower() in ("done", "accept", "accepted")


def _is_cancelled() -> bool:
    """Return whether the current asyncio task itself is cancelled, not only the work it awaits."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
