"""The work of an agent, from its prompt to its last word: turns of its engine, between hooks, within its budgets."""

from __future__ import annotations

import asyncio
import os

from taskyard import config, engines
from taskyard.engines.engine import Said
from taskyard.engines.provider import account_of
from taskyard.kinds.agent_budget import Budgets, purses
from taskyard.kinds.agent_hooks import AgentHooks
from taskyard.kinds.agent_notices import AgentNotices
from taskyard.kinds.agent_summary import keep_up_to_date
from taskyard.kinds.agent_watch import Watch
from taskyard.runtime.ending import read
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.ids import is_job_id
from taskyard.runtime.kind import Outcome
from taskyard.runtime.rate_limit import STOPPED
from taskyard.runtime.spending import Budget
from taskyard.turn import RESUMED, Policy, Turns
from taskyard.typed import cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.engines.engine import Engine
    from taskyard.kinds.agent import Agent
    from taskyard.runtime.context import JobContext

#: How often hooks may send an agent on: one that never agrees must not keep it for ever.
MOST_ROUNDS = 10


async def work(spec: Agent, context: JobContext) -> Outcome:
    """Do it where it is to be done, and say how it went."""
    if not spec.worktree:
        return await _worked(spec, context, os.getcwd())
    from taskyard.kinds.agent_worktree import inside

    return await inside(context, lambda cwd: _worked(spec, context, cwd))


async def _worked(spec: Agent, context: JobContext, cwd: str) -> Outcome:
    budgets = _budgets(spec, context)
    if reason := budgets.over():
        return Outcome(error=reason)
    account = account_of(spec.engine, spec.command, spec.model, os.environ if spec.env is None else spec.env)
    watch = Watch(context, budgets, account)
    policy = Policy.of(config.load(), spec.on_rate_limit)
    turns = Turns(context.home, account, policy, show=watch.show_limit, record=watch.record)
    engine = engines.find(spec.engine)  # one for all turns: some keep the conversation in memory
    summarising = asyncio.ensure_future(keep_up_to_date(watch, spec.prompt, cwd))
    notices = AgentNotices(context.home, spec.name or context.id)
    try:
        return await _rounds(spec, engine, watch, turns, AgentHooks(context, spec.agent_type, cwd), notices, cwd)
    finally:
        notices.close()
        watch.close()
        summarising.cancel()
        await asyncio.wait([summarising])


async def _rounds(
    spec: Agent, engine: Engine, watch: Watch, turns: Turns, hooks: AgentHooks, notices: AgentNotices, cwd: str
) -> Outcome:
    """Turn after turn, until nobody has anything more to say to it."""
    prompt = await hooks.before(spec.prompt)
    rounds = 0
    while True:
        said = await _turn(spec, engine, watch, turns, prompt, cwd)
        await asyncio.to_thread(notices.end_turn, is_complete=said.is_complete)
        if said.is_complete and (unread := watch.unread()):
            prompt = await asyncio.to_thread(notices.around, unread)  # what it could not be told while it worked
            continue
        rounds += 1
        more = await hooks.after(said) if rounds < MOST_ROUNDS else None
        if more is None:
            return _outcome(said, watch)
        prompt = more


async def _turn(spec: Agent, engine: Engine, watch: Watch, turns: Turns, prompt: str, cwd: str) -> Said:
    """One turn, however often a rate limit interrupts it: then the same conversation goes on."""

    async def once(is_resumed: bool) -> Said:
        goes_on = is_resumed and (watch.session is not None or spec.engine != "command")
        said = await _once(spec, engine, watch, f"{RESUMED}\n\n{prompt}" if goes_on else prompt, cwd)
        if not (said.is_session_lost and is_resumed and spec.session is None and watch.session is not None):
            return said  # a conversation that the caller named is not replaced by another
        watch.forget_session(said.error)
        return await _once(spec, engine, watch, prompt, cwd)

    return await turns.take(once)


async def _once(spec: Agent, engine: Engine, watch: Watch, prompt: str, cwd: str) -> Said:
    """One run of the engine; cut short, and said so, where nothing is left of a budget."""
    watch.begin(prompt)
    brief = spec.brief(tuple(spec.command), cwd=cwd, prompt=prompt)._replace(session=watch.session or spec.session)
    working = asyncio.ensure_future(engine.work(brief, watch))
    either = [cast("asyncio.Future[object]", working), cast("asyncio.Future[object]", watch.over)]
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else Said(error=watch.over.result())
    finally:
        if not working.done():
            working.cancel()
            await asyncio.wait([working])  # an engine bounds what it does at its end
        watch.end_turn()


def _budgets(spec: Agent, context: JobContext) -> Budgets:
    settings = config.load()
    root = (read(JobFolder(context.home, context.id).record) or {}).get("root")
    own = Budget(spec.max_tokens or settings.agent_tokens, spec.max_cost or settings.agent_cost)
    return Budgets(context.home, own, purses(settings, root if is_job_id(root) else context.id))


def _outcome(said: Said, watch: Watch) -> Outcome:
    facts = watch.facts()
    if said.is_complete:
        return Outcome(said.text, facts=facts)
    facts["isRetryable"] = said.is_retryable or said.rate_limit is not None
    facts |= {"refused": list(said.refused)} if said.refused else {}
    facts |= {STOPPED: True} if said.rate_limit is not None else {}
    return Outcome(said.text, said.failure, facts)
