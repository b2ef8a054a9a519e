"""
Members are started, and each start is confirmed: a member has joined its team within a bounded time, or it is reported
as failed and nothing of it is left.

    process   a job below a keeper of its own
    tmux      a window that runs `taskyard __member`, which has such a job and shows what it says
"""

from __future__ import annotations

import json
import os
import sys
import time

from taskyard.crew import tmux
from taskyard.crew.ending import end_process
from taskyard.disk import files
from taskyard.disk.processes import process_alive
from taskyard.errors import JobNotFound, MemberNotStarted, TaskyardError
from taskyard.runtime.ending import read
from taskyard.shapes import as_text
from taskyard.tasklist import team_record
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.app import Yard
    from taskyard.crew.wish import Wish
    from taskyard.tasklist.team_record import Team

#: Seconds a member may take from its start to its joining: an interpreter, a few modules, a few files.
PATIENCE = 30.0

#: How often to look whether it has joined, in seconds.
_LOOK = 0.05

#: Of the terminal a member lives in, not of whoever started it.
_OF_TERMINAL = ("TERM", "TMUX", "TMUX_PANE", "COLORTERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION")


class Hand(NamedTuple):
    """A member that was started."""

    name: str
    job_id: str
    began: int = 0  #: epoch ms
    pane: tmux.Window | None = None


def start(yard: Yard, wish: Wish, name: str, *, place: str) -> Hand:
    """Start a member; `confirm` then says whether it came.

    Raises:
        UsageError: something in it cannot be.
        MemberNotStarted: its window was there, and it was not.
    """
    if place == "tmux":
        return _in_window(yard, wish, name)
    return Hand(name, yard.jobs.start(wish.spec(name)).id)


def confirm(yard: Yard, team: str, hand: Hand, *, patience: float = PATIENCE) -> None:
    """Return when the member has joined its team, or is done already.

    Raises:
        MemberNotStarted: it did not in time, or died before; nothing of it is left.
    """
    deadline = time.monotonic() + patience
    while True:
        job = yard.jobs.get(hand.job_id)
        if yard.teams.get(team).member(hand.name) is not None:
            if hand.pane is not None:
                _note_window(yard, team, hand.name)
            return
        if job.is_final:
            if job.end is not None and job.end.status.value == "completed":
                return
            why = (job.end.error if job.end is not None else "") or "it ended before it had joined"
            break
        if time.monotonic() > deadline:
            why = f"it did not join within {patience:.0f} s"
            break
        time.sleep(_LOOK)
    let_go(yard, hand)
    raise MemberNotStarted(hand.name, team, why)


def _note_window(yard: Yard, team: str, name: str) -> None:
    """Let the team's record say that a member lives in a window."""

    def noted(was: Team | None) -> Team | None:
        there = was.member(name) if was is not None else None
        if was is None or there is None:
            return was
        return was._replace(members=tuple(m._replace(kind="tmux") if m is there else m for m in was.members))

    team_record.change(yard.home, team, noted)


def let_go(yard: Yard, hand: Hand, *, grace: float | None = None) -> bool:
    """End a member with everything it started; True if that is proved."""
    try:
        (stopped,) = yard.jobs.stop(hand.job_id, grace=grace)
        is_gone = stopped.is_done
    except JobNotFound:
        is_gone = True
    if hand.pane is not None:
        is_gone = _close(hand.pane) and is_gone
    return is_gone


def _close(window: tmux.Window) -> bool:
    """Wait for the program in a window to end after its job, a moment; then end it."""
    return end_process(window.pid, window.start, patience=2.0, grace=2.0)


# -- in a window -------------------------------------------------------------------------------


def _in_window(yard: Yard, wish: Wish, name: str) -> Hand:
    request = _written(yard.home, wish, name, yard.tasks_dir)
    said = f"{request}.said"
    try:
        argv = [sys.executable, "-P", "-m", "taskyard", "__member", request]
        window = tmux.open_window(wish.team, name, argv)
        try:
            return Hand(name, _job_of(said, window, wish.team, name), pane=window)
        except BaseException:
            _close(window)
            raise
    finally:
        for path in (request, said):
            try:
                os.unlink(path)
            except FileNotFoundError:
                pass


def _job_of(said: str, window: tmux.Window, team: str, name: str) -> str:
    """The job that the program in a window has started."""
    deadline = time.monotonic() + PATIENCE
    while True:
        is_over = not process_alive(window.pid, window.start)
        answer = read(said)
        if answer is not None:
            if job := as_text(answer.get("job")):
                return job
            raise MemberNotStarted(name, team, as_text(answer.get("error")) or "it did not say why")
        if is_over:
            raise MemberNotStarted(name, team, "its window closed at once")
        if time.monotonic() > deadline:
            raise MemberNotStarted(name, team, f"its window was silent for {PATIENCE:.0f} s")
        time.sleep(_LOOK)


def _written(home: str, wish: Wish, name: str, tasks_dir: str | None) -> str:
    """A private file with all that the program in a window must know; what it says goes beside it."""
    folder = f"{home}/starting"
    files.make_private_folder(folder)
    path = f"{folder}/{os.urandom(8).hex()}.json"
    left_out = (*_OF_TERMINAL, "TASKYARD_JOB", "TASKYARD_INSTANCE", "TASKYARD_AGENT")
    env = {key: value for key, value in os.environ.items() if key not in left_out}
    env |= {"TASKYARD_HOME": home, **({"TASKYARD_TASKS_DIR": tasks_dir} if tasks_dir else {})}
    request = {"wish": wish._asdict(), "name": name, "env": env, "cwd": os.getcwd()}
    files.create(path, json.dumps(request).encode("ascii"))
    return path


class Request(NamedTuple):
    """What the program in a window was told."""

    wish: Mapping[str, object]
    name: str
    said: str  #: where its first word goes


def take_request(path: str) -> Request:
    """Read and remove a request, and be in the place and surroundings it names.

    Raises:
        Damaged, StorageError: it is none.
    """
    from taskyard.errors import Damaged
    from taskyard.shapes import as_object

    found = read(path) or {}
    wish, env = as_object(found.get("wish")), as_object(found.get("env"))
    name, cwd = as_text(found.get("name")), as_text(found.get("cwd"))
    if wish is None or env is None or not name or not cwd:
        raise Damaged(path, "it is no request for a member")
    os.unlink(path)
    kept = {key: os.environ[key] for key in _OF_TERMINAL if key in os.environ}
    os.environ.clear()
    os.environ.update({key: as_text(value) for key, value in env.items()} | kept)
    os.chdir(cwd)
    return Request(wish, name, f"{path}.said")


def say(said: str, **word: str) -> None:
    """Tell whoever opened the window what became of it."""
    try:
        files.create(said, json.dumps(word).encode("ascii"))
    except (TaskyardError, FileExistsError):
        pass  # nobody waits any more
