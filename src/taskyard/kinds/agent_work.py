"""The work of an agent, from its prompt to its last word: turns of its engine, between hooks, within its budgets."""

from __future__ import annotations

import asyncio
import os
import re

from taskyard import config, engines
from taskyard.engines.engine import Said
from taskyard.engines.provider import provider_of
from taskyard.kinds.agent_budget import Budgets, purses
from taskyard.kinds.agent_hooks import AgentHooks
from taskyard.kinds.agent_summary import keep_up_to_date
from taskyard.kinds.agent_watch import Watch
from taskyard.runtime.ending import read
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.ids import is_job_id
from taskyard.runtime.kind import Outcome
from taskyard.runtime.spending import Budget
from taskyard.typed import cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.kinds.agent import Agent
    from taskyard.runtime.context import JobContext

#: How often hooks may send an agent on: one that never agrees must not keep it for ever.
MOST_ROUNDS = 10

#: What providers answer with when they have too much to do.
_LOAD = re.compile(r"\b(429|529)\b")


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
    watch = Watch(context, budgets, provider_of(spec.engine, spec.command, spec.model))
    summarising = asyncio.ensure_future(keep_up_to_date(watch, spec.prompt, cwd))
    try:
        return await _rounds(spec, watch, AgentHooks(context, spec.agent_type, cwd), cwd)
    finally:
        watch.close()
        summarising.cancel()
        await asyncio.wait([summarising])


async def _rounds(spec: Agent, watch: Watch, hooks: AgentHooks, cwd: str) -> Outcome:
    """Turn after turn, until nobody has anything more to say to it."""
    prompt = await hooks.before(spec.prompt)
    rounds = 0
    while True:
        said = await _turn(spec, watch, prompt, cwd)
        if not said.error and (unread := watch.unread()):
            prompt = "\n\n".join(unread)  # what it could not be told while it worked is what it does next
            continue
        rounds += 1
        more = await hooks.after(said) if rounds < MOST_ROUNDS else None
        if more is None:
            return _outcome(said, watch)
        prompt = more


async def _turn(spec: Agent, watch: Watch, prompt: str, cwd: str) -> Said:
    """One turn of the engine; cut short, and said so, where nothing is left of a budget."""
    watch.begin(prompt)
    engine = engines.find(spec.engine)
    brief = spec.brief(tuple(spec.command), cwd=cwd, prompt=prompt)._replace(session=watch.session or spec.session)
    working = asyncio.ensure_future(engine.work(brief, watch))
    either = [cast("asyncio.Future[object]", working), cast("asyncio.Future[object]", watch.over)]
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        said = working.result() if working.done() else Said(error=watch.over.result())
    finally:
        if not working.done():
            working.cancel()
            await asyncio.wait([working])  # an engine bounds what it does at its end
    if said.is_retryable and _LOAD.search(said.error) and not watch.was_limited:
        watch.limited(0.0, said.error)
    return said


def _budgets(spec: Agent, context: JobContext) -> Budgets:
    settings = config.load()
    root = (read(JobFolder(context.home, context.id).record) or {}).get("root")
    own = Budget(spec.max_tokens or settings.agent_tokens, spec.max_cost or settings.agent_cost)
    return Budgets(context.home, own, purses(settings, root if is_job_id(root) else context.id))


def _outcome(said: Said, watch: Watch) -> Outcome:
    if said.error:
        return Outcome(said.text, said.error, {**watch.facts(), "isRetryable": said.is_retryable})
    return Outcome(said.text, facts=watch.facts())
