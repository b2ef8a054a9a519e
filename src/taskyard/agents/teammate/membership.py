"""Run one teammate from joining to leaving; everything it needs is built here and always released."""

from __future__ import annotations

import asyncio
import os
import threading

from taskyard import config
from taskyard.agents.engines.provider import account_of
from taskyard.agents.identity import act_as
from taskyard.agents.teammate.client import TeammateClient
from taskyard.agents.teammate.loop import DELAYS, Loop
from taskyard.agents.teammate.mail import Inbox, MailHandler
from taskyard.agents.teammate.recorder import TeammateRecorder
from taskyard.agents.teammate.workers import SharedWorkers
from taskyard.agents.turn import RateLimitPolicy, TurnRunner
from taskyard.errors import HookRefused
from taskyard.integrations import hooks
from taskyard.integrations.hooks import hook_cache
from taskyard.jobs import environment
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.kind import Outcome
from taskyard.jobs.rate_limit import STOPPED_FACT
from taskyard.jobs.supervisor.child_jobs import ChildJobs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from taskyard.agents.identity import TeammateIdentity
    from taskyard.agents.teammate.kind import Teammate
    from taskyard.agents.teammate.loop import OnIdle, Work
    from taskyard.jobs.context import JobContext
    from taskyard.jobs.rate_limit import RateLimited


async def run(
    spec: Teammate, context: JobContext, work: Work, *, hears: bool = True, on_idle: Sequence[OnIdle] = ()
) -> Outcome:
    """Be a member of the team until there is nothing left to do, or it is shut down."""
    settings = config.load_settings()
    if spec.tasks_dir is not None:
        settings = settings._replace(store="files")
    folder, name = spec.tasks_dir or config.tasks_dir(), config.list_name(spec.team)
    office = SharedWorkers.enter(context.services, context.home, folder, name, settings)
    try:
        instance = await office.do(lambda: context.services.register(office.settings, context.home, None))
        with act_as(spec.name, spec.team, instance) as who:
            kind = "in-process" if spec.is_inside else "process"
            desk = TeammateClient(
                office,
                who,
                kind=kind,
                capabilities=spec.capabilities,
                labels=spec.labels,
                report=lambda text: _note(context, text),
                cwd=environment.resolve_cwd(spec.cwd),
            )
            try:
                return await _work_as_member(spec, context, office, desk, work, hears=hears, on_idle=on_idle)
            finally:
                if spec.is_inside:  # otherwise its supervisor stops them
                    ChildJobs(JobPaths(context.home, context.id)).stop_children(
                        by=f"the end of {context.id}", grace=3.0
                    )
                desk.leave()  # takes milliseconds; not awaited, so it cannot be interrupted
    finally:
        office.leave()


async def _work_as_member(
    spec: Teammate,
    context: JobContext,
    office: SharedWorkers,
    desk: TeammateClient,
    work: Work,
    *,
    hears: bool,
    on_idle: Sequence[OnIdle],
) -> Outcome:
    colour = await office.do(lambda: desk.join(spec.prompt, spec.colour))
    inbox = Inbox(lambda letter: mail_handler.read(letter))
    account = account_of(spec.engine, spec.command, spec.model, os.environ if spec.env is None else spec.env)
    watch = TeammateRecorder(
        context, inbox, hears=hears, account=account, heartbeat=lambda: office.begin(desk.progress)
    )
    policy = RateLimitPolicy.of(office.settings, spec.on_rate_limit)

    def show(limit: RateLimited | None) -> None:
        loop.show_limit(limit)

    turns = TurnRunner(context.home, account, policy, show=show, retries=DELAYS, record=watch.record)
    loop = Loop(spec, context, office, desk, inbox, watch, work, turns)
    backend = "in-process" if spec.is_inside else "process"
    mail_handler = MailHandler(office, desk, inbox, backend=backend, end=lambda why, now: loop.end(why, now=now))
    loop.mail_handler = mail_handler
    loop.ask_hooks = lambda: _run_idle_hooks(context, desk.who, spec.cwd or os.getcwd())
    loop.on_idle += on_idle
    watch.tell(identity=_identity(desk.who, colour), instance=desk.who.instance.id, isIdle=False)
    try:
        await _run_with_helpers(loop.go(), mail_handler.fetch(), mail_handler.listen(context))
    finally:
        watch.tell(isIdle=False)
    done, failed = loop.tally
    facts = {**watch.facts(), "completed": list(done), "failed": list(failed)}
    if loop.limit:
        return Outcome(_result(done, failed, loop.ends), loop.limit, {**facts, STOPPED_FACT: True})
    return Outcome(_result(done, failed, loop.ends), facts=facts)


async def _run_with_helpers(main: Coroutine[None, None, None], *others: Coroutine[None, None, None]) -> None:
    """Run `main` with helpers beside it; a failure of a helper fails the whole."""
    running = [asyncio.ensure_future(each) for each in (main, *others)]
    waiting = set(running)
    try:
        while running[0] in waiting:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                each.result()
    finally:
        for each in running:
            each.cancel()
        await asyncio.wait(running)


def _identity(who: TeammateIdentity, colour: str | None) -> dict[str, object]:
    """Return the identity as stored in records."""
    found: dict[str, object] = {"agentId": who.id, "agentName": who.name, "teamName": who.team}
    return {**found, "color": colour} if colour else found


def _result(done: Sequence[str], failed: Sequence[str], why: str) -> str:
    tasks = "1 task" if len(done) == 1 else f"{len(done)} tasks"
    named = f": {', '.join(f'#{task}' for task in done[:100])}" if done else ""
    gave_up = f" Could not do {', '.join(f'#{task}' for task in failed[:100])}." if failed else ""
    return f"Completed {tasks}{named}.{gave_up} It ended because {why}."


async def _run_idle_hooks(context: JobContext, who: TeammateIdentity, cwd: str) -> str:
    """Return what TeammateIdle hooks want done before it idles; "": nothing."""
    book = hook_cache(config.project(cwd).root).book(lambda problem: _note(context, problem.text))
    if not book.any_for("TeammateIdle"):
        return ""
    gave_up = threading.Event()
    timeout = config.load_settings().hook_timeout

    def ask() -> str:
        try:
            hooks.run_event(
                "TeammateIdle",
                {"teammate_name": who.name, "team_name": who.team},
                book=book,
                cwd=cwd,
                timeout=timeout,
                report=lambda ended: _note(context, ended.text),
                cancel=gave_up,
            )
        except HookRefused as refusal:
            return refusal.stderr.strip() or str(refusal)
        return ""

    try:
        return await asyncio.to_thread(ask)
    except asyncio.CancelledError:
        gave_up.set()
        raise


def _note(context: JobContext, text: str) -> None:
    """Write a note for people to the transcript; never for the model."""
    if text:
        import json

        context.write(json.dumps({"type": "note", "text": text}) + "\n")
