"""
One member in the foreground: a person on any terminal runs it, and so does a window of tmux.

The member is a job all the same, so that anybody can look at it, answer it and stop it. Whoever runs it sees what it
says; however that one ends, the member ends with it and gives back its tasks.
"""

from __future__ import annotations

import json

from taskyard.errors import Damaged, NotFound
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.follow_output import follow_output
from taskyard.runtime.output import Output
from taskyard.shapes import as_object
from taskyard.view.agent_text import spoken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.app import Yard
    from taskyard.kinds.teammate import Teammate
    from taskyard.runtime.model import Job


def run_member(yard: Yard, spec: Teammate, *, started: Callable[[str], None], show: Callable[[str], None]) -> Job:
    """Have a member work until it is done, and see it go: whatever happens here, nothing of it is left.

    Args:
        yard: Through which it is started.
        spec: The member.
        started: Gets its job's id.
        show: Gets what it says, a line or more.
    """
    job = yard.jobs.start(spec._replace(on_parent_exit="kill"), backgrounded=False)
    try:
        started(job.id)
        rest = ""
        for part in follow_output(Output(JobFolder(yard.home, job.id))):
            *lines, rest = (rest + part.text.decode("utf-8", "replace")).split("\n")
            for line in lines:
                if said := shown(line):
                    show(said)
        return yard.jobs.wait(job.id, timeout=_LAST_WORDS)
    finally:
        yard.jobs.stop(job.id)
        see_out(yard, spec.team, spec.name)


def see_out(yard: Yard, team: str, name: str) -> None:
    """See to it that what a member whose job is over held, and what stood for it, is over too.

    A living member of that name is another one: two may have come at once, and one was sent away.
    """
    yard.tasks.list(internal=True)  # a look settles the trackers of the dead
    try:
        if all(seen.liveness not in _LIVING for seen in yard.teams.members(team) if seen.member.name == name):
            yard.teams.leave(team, name)
    except (NotFound, Damaged):
        pass  # it left by itself, or nobody can say


_LIVING = ("alive", "idle", "stalled")


#: Seconds between the last line of a member and the end of its job.
_LAST_WORDS = 10.0


def shown(line: str) -> str:
    """A line of a transcript, for people; empty if there is nothing to see in it."""
    try:
        entry = as_object(json.loads(line)) if line.strip() else None
    except (ValueError, RecursionError):
        return ""
    return "" if entry is None else spoken(entry)
