"""
Members are started, and each start is confirmed: a member has joined its team within a bounded time, or it is reported
as failed and nothing of it is left.

    process   a job below a keeper of its own
    tmux      a window that runs `taskyard __member`, which has such a job and shows what it says
    inside    a job that runs `taskyard __members`, in which all of them live
"""

from __future__ import annotations

import os
import sys
import time

from taskyard.crew import asking, tmux
from taskyard.crew.ending import end_command, end_process
from taskyard.disk.processes import process_alive
from taskyard.errors import JobNotFound, MemberNotStarted
from taskyard.kinds.shell import Shell
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.model import JobStatus
from taskyard.shapes import as_object, as_text
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from taskyard.app import Yard
    from taskyard.crew.wish import Wish
    from taskyard.runtime.kind import Wanted
    from taskyard.runtime.model import Job
    from taskyard.tasklist.team_record import Team

#: Seconds a member may take from its start to its joining: an interpreter, a few modules, a few files.
PATIENCE = 30.0

#: How often to look whether it has joined, in seconds.
_LOOK = 0.05

#: What the program that members live inside of is called.
HOST = "__members"


class Hand(NamedTuple):
    """A member that was started."""

    name: str
    job_id: str
    pane: tmux.Window | None = None
    host: str = ""  #: the job that it lives inside of


def start(yard: Yard, wish: Wish, names: Sequence[str], *, place: str) -> Iterator[Hand]:
    """Start members, one after the other; `confirm` then says of each whether it came.

    Raises:
        UsageError: something in it cannot be.
        MemberNotStarted: the program around it was there, and it was not; nothing of both is left.
    """
    if place == "inside":
        yield from _inside(yard, wish, names)
        return
    for name in names:
        if place == "tmux":
            yield _in_window(yard, wish, name)
        else:
            yield Hand(name, yard.jobs.start(wish.spec(name)).id)


def confirm(yard: Yard, team: str, hand: Hand, *, patience: float = PATIENCE) -> None:
    """Return when the member has joined its team, or is done already.

    Raises:
        MemberNotStarted: it did not in time, or died before; nothing of it is left.
    """
    began = time.monotonic()
    while not has_come(yard, team, hand, yard.jobs.get(hand.job_id), began=began, patience=patience):
        time.sleep(_LOOK)


def has_come(yard: Yard, team: str, hand: Hand, job: Job, *, began: float, patience: float = PATIENCE) -> bool:
    """Whether a member that was started at `began` (monotonic) has joined its team, or is done already.

    Its job says so itself, once it has: another of its name in the team is another member.

    Raises:
        MemberNotStarted: it did not in time, or died before; nothing of it is left.
    """
    if instance := as_text(job.facts.get("instance")):
        if hand.pane is not None:
            _note_window(yard, team, instance)
        return True
    if job.is_final:
        if job.status is JobStatus.COMPLETED:
            return True
        why = (job.end.error if job.end is not None else "") or "it ended before it had joined"
    elif time.monotonic() - began > patience:
        waits = f"; it waits for {job.waits_for}" if job.waits_for else ""
        why = f"it did not join within {patience:.0f} s{waits}"
    else:
        return False
    let_go(yard, hand)
    raise MemberNotStarted(hand.name, team, why)


def let_go(yard: Yard, hand: Hand, *, grace: float | None = None) -> bool:
    """End a member with everything it started; True if nothing of it runs any more."""
    is_gone = _stopped(yard, hand.job_id, grace)
    if not is_gone and hand.host:
        is_gone = stop_host(yard, hand.host)
    if hand.pane is not None:
        is_gone = _closed(hand.pane) and is_gone
    return is_gone


def stop_host(yard: Yard, job_id: str) -> bool:
    """End the process that members live inside of; True if it is gone."""
    return _stopped(yard, job_id, None) or end_command(JobFolder(yard.home, job_id))


def _stopped(yard: Yard, job_id: str, grace: float | None) -> bool:
    try:
        return yard.jobs.stop(job_id, grace=grace)[0].is_done
    except JobNotFound:
        return True


# -- in a window -------------------------------------------------------------------------------


def _in_window(yard: Yard, wish: Wish, name: str) -> Hand:
    request = asking.written(yard.home, wish, [name], tasks_dir=yard.tasks_dir)
    try:
        window = tmux.open_window(wish.team, name, _argv("__member", request))
        try:
            lives: Callable[[], bool] = lambda: process_alive(window.pid, window.start)  # noqa: E731
            return Hand(name, _jobs(request, lives, wish.team, name)[name], window)
        except BaseException:
            _closed(window)
            raise
    finally:
        asking.forget(request)


def _closed(window: tmux.Window) -> bool:
    """Wait a moment for the program in a window to end after its job; then end it."""
    return end_process(window.pid, window.start, patience=2.0, grace=2.0)


def _note_window(yard: Yard, team: str, instance: str) -> None:
    """Let the team's record say that a member lives in a window."""

    def noted(was: Team | None) -> Team | None:
        if was is None:
            return None
        members = (m._replace(kind="tmux") if m.instance == instance else m for m in was.members)
        return was._replace(members=tuple(members))

    yard.teams.change(team, noted)


# -- inside one process ------------------------------------------------------------------------


class _Host(NamedTuple):
    """A process for members to live in; its end is told to nobody, as theirs is."""

    argv: Sequence[str]
    name: str

    @property
    def type(self) -> str:
        return "local_bash"

    @property
    def letter(self) -> str:
        return "b"

    def wanted(self) -> Wanted:
        return Shell(self.argv, name=self.name, cwd=os.getcwd()).wanted()._replace(is_silent=True)


def _inside(yard: Yard, wish: Wish, names: Sequence[str]) -> Iterator[Hand]:
    request = asking.written(yard.home, wish, names, tasks_dir=yard.tasks_dir)
    try:
        host = yard.jobs.start(_Host(_argv(HOST, request), f"members of team {wish.team}"))
        try:
            lives: Callable[[], bool] = lambda: not yard.jobs.get(host.id).is_final  # noqa: E731
            jobs = _jobs(request, lives, wish.team, names[0])
        except BaseException:
            yard.jobs.stop(host.id)
            raise
    finally:
        asking.forget(request)
    for name in names:
        yield Hand(name, jobs[name], host=host.id)


def _argv(command: str, request: str) -> list[str]:
    return [sys.executable, "-P", "-m", "taskyard", command, request]


def _jobs(request: str, lives: Callable[[], bool], team: str, name: str) -> Mapping[str, str]:
    """The jobs that the program which took a request has started, by member."""
    deadline = time.monotonic() + PATIENCE
    while True:
        is_over = not lives()
        answer = asking.heard(request)
        if answer is not None:
            if jobs := as_object(answer.get("jobs")):
                return {member: as_text(job) for member, job in jobs.items()}
            raise MemberNotStarted(name, team, as_text(answer.get("error")) or "it did not say why")
        if is_over:
            raise MemberNotStarted(name, team, "the program it was to live in ended at once")
        if time.monotonic() > deadline:
            raise MemberNotStarted(name, team, f"the program it was to live in was silent for {PATIENCE:.0f} s")
        time.sleep(_LOOK)
