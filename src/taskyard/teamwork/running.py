"""One teammate from joining to leaving: everything it needs is built here, and given back whatever happens."""

from __future__ import annotations

import asyncio
import os
import threading

from taskyard import config, hooks, paths, presence
from taskyard.engines.provider import account_of
from taskyard.errors import HookRefused
from taskyard.hooks.watch import hooks_of
from taskyard.runtime import here
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.keeper.others import Others
from taskyard.runtime.kind import Outcome
from taskyard.runtime.rate_limit import STOPPED
from taskyard.teamwork.desk import Desk
from taskyard.teamwork.identity import acting_as
from taskyard.teamwork.loop import DELAYS, Loop
from taskyard.teamwork.messages import Inbox
from taskyard.teamwork.office import Office
from taskyard.teamwork.post import Postman
from taskyard.teamwork.watching import Watch
from taskyard.turn import Policy, Turns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from taskyard.identity import Acting
    from taskyard.kinds.teammate import Teammate
    from taskyard.runtime.context import JobContext
    from taskyard.runtime.rate_limit import RateLimited
    from taskyard.teamwork.loop import OnIdle, Work


async def run(
    spec: Teammate, context: JobContext, work: Work, *, hears: bool = True, on_idle: Sequence[OnIdle] = ()
) -> Outcome:
    """Be a member of the team until there is nothing left to do, or somebody ends it."""
    settings = config.load()
    if spec.tasks_dir is not None:
        settings = settings._replace(store="files")
    office = Office.enter(context.home, spec.tasks_dir or paths.tasks_dir(), paths.list_name(spec.team), settings)
    try:
        instance = await office.do(lambda: presence.enter_unnamed(context.home, office.settings))
        with acting_as(spec.name, spec.team, instance) as who:
            kind = "in-process" if spec.is_inside else "process"
            desk = Desk(
                office,
                who,
                kind=kind,
                capabilities=spec.capabilities,
                labels=spec.labels,
                report=lambda text: _note(context, text),
                cwd=here.folder(spec.cwd),
            )
            try:
                return await _joined(spec, context, office, desk, work, hears=hears, on_idle=on_idle)
            finally:
                if spec.is_inside:  # else its keeper sees to them
                    Others(JobFolder(context.home, context.id)).stop_children(by=f"the end of {context.id}", grace=3.0)
                desk.leave()  # milliseconds, and here: nothing can come between
    finally:
        office.leave()


async def _joined(
    spec: Teammate,
    context: JobContext,
    office: Office,
    desk: Desk,
    work: Work,
    *,
    hears: bool,
    on_idle: Sequence[OnIdle],
) -> Outcome:
    colour = await office.do(lambda: desk.join(spec.prompt, spec.colour))
    inbox = Inbox(lambda letter: postman.read(letter))
    account = account_of(spec.engine, spec.command, spec.model, os.environ if spec.env is None else spec.env)
    watch = Watch(context, inbox, hears=hears, account=account, beat=lambda: office.begin(desk.progress))
    policy = Policy.of(office.settings, spec.on_rate_limit)

    def show(limit: RateLimited | None) -> None:
        loop.show_limit(limit)

    turns = Turns(context.home, account, policy, show=show, retries=DELAYS, record=watch.record)
    loop = Loop(spec, context, office, desk, inbox, watch, work, turns)
    backend = "in-process" if spec.is_inside else "process"
    postman = Postman(office, desk, inbox, backend=backend, end=lambda why, now: loop.end(why, now=now))
    loop.postman = postman
    loop.ask_hooks = lambda: _asked(context, desk.who, spec.cwd or os.getcwd())
    loop.on_idle += on_idle
    watch.tell(identity=_identity(desk.who, colour), instance=desk.who.instance.id, isIdle=False)
    try:
        await _with_help(loop.go(), postman.fetch(), postman.listen(context))
    finally:
        watch.tell(isIdle=False)
    done, failed = loop.tally
    facts = {**watch.facts(), "completed": list(done), "failed": list(failed)}
    if loop.limit:
        return Outcome(_result(done, failed, loop.ends), loop.limit, {**facts, STOPPED: True})
    return Outcome(_result(done, failed, loop.ends), facts=facts)


async def _with_help(main: Coroutine[None, None, None], *others: Coroutine[None, None, None]) -> None:
    """Wait for the main thing while others go on beside it; a failure of theirs is one of the whole."""
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


def _identity(who: Acting, colour: str | None) -> dict[str, object]:
    """As records have it."""
    found: dict[str, object] = {"agentId": who.id, "agentName": who.name, "teamName": who.team}
    return {**found, "color": colour} if colour else found


def _result(done: Sequence[str], failed: Sequence[str], why: str) -> str:
    tasks = "1 task" if len(done) == 1 else f"{len(done)} tasks"
    named = f": {', '.join(f'#{task}' for task in done[:100])}" if done else ""
    gave_up = f" Could not do {', '.join(f'#{task}' for task in failed[:100])}." if failed else ""
    return f"Completed {tasks}{named}.{gave_up} It ended because {why}."


async def _asked(context: JobContext, who: Acting, cwd: str) -> str:
    """What TeammateIdle hooks want done before it rests; "": nothing."""
    book = hooks_of(paths.project(cwd).root).book(lambda problem: _note(context, problem.text))
    if not book.any_for("TeammateIdle"):
        return ""
    gave_up = threading.Event()
    timeout = config.load().hook_timeout

    def ask() -> str:
        try:
            hooks.run(
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
    """For people, in the transcript; never for the model."""
    if text:
        import json

        context.write(json.dumps({"type": "note", "text": text}) + "\n")
