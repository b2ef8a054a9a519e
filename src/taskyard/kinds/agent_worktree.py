"""An agent in a git worktree of its own: it engages or the job fails, and no work in it is ever thrown away."""

from __future__ import annotations

import asyncio
import os

from taskyard.errors import TaskyardError
from taskyard.runtime import worktrees
from taskyard.runtime.keeper.tree import below
from taskyard.runtime.kind import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from taskyard.runtime.context import JobContext
    from taskyard.runtime.worktrees import Worktree


async def inside(context: JobContext, work: Callable[[str], Awaitable[Outcome]]) -> Outcome:
    """Make it, work in it, and see what becomes of it."""
    making = asyncio.ensure_future(asyncio.to_thread(worktrees.make, context.home, context.id, os.getcwd()))
    try:
        made = await asyncio.shield(making)  # git is not stopped halfway
        if made.why:
            return Outcome(error=f"No worktree could be made for it: {made.why}")
        context.tell(worktree=made.to_json())
        return await work(made.cwd)
    finally:
        await asyncio.wait([making])
        await asyncio.to_thread(_settled, context, making.result())


def _settled(context: JobContext, made: Worktree) -> None:
    """Remove it, or keep it and say why."""
    others = [pid for pid in below(os.getppid()) if pid != os.getpid()]  # our keeper ends them after us
    try:
        settled = worktrees.settle(context.home, context.id, is_used=bool(others))
        kept = "" if settled is None else settled.kept
    except TaskyardError as error:
        kept = str(error)
    if made.why:
        return
    if kept:
        context.tell(worktree={**made.to_json(), "kept": kept})
    else:
        off = {"untrustedPrograms": list(made.off)} if made.off else {}
        context.tell(worktree={"base": made.base, "isRemoved": True, **off})
