"""
A keeper's life: it sleeps until the kernel has news, and decides what that means for its job.

Nothing is polled. Exits and growth come as signals, wishes through the `control` pipe, the starter's death
through its pidfd, and at most one deadline is waited for.
"""

from __future__ import annotations

import os
import time

from taskyard.clock import now_ms
from taskyard.disk.processes import process_start
from taskyard.runtime.keeper import command, oom, tree
from taskyard.runtime.keeper.growth import Full, Growth
from taskyard.runtime.keeper.ladder import Ladder, frozen, proof_of
from taskyard.runtime.keeper.nearness import Nearness
from taskyard.runtime.keeper.others import Others
from taskyard.runtime.keeper.signals import signal
from taskyard.runtime.keeper.stall import TAIL, ends_without_newline, looks_like_a_question
from taskyard.runtime.keeper.wires import COPIED_AT_ONCE
from taskyard.runtime.model import End

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.runtime.keeper.birth import Born
    from taskyard.runtime.keeper.request import Request
    from taskyard.runtime.keeper.wires import Wires

_now = time.monotonic

#: Seconds between two looks at a job that waits for a rate limit when its time would be up.
_LIMIT_LOOK = 1.0

#: What a shell ends with when its command was killed: 128 and the signal.
_KILLED = 128 + signal.SIGKILL


class Loop:
    """One attempt at the command, from its start to its last process."""

    def __init__(self, born: Born, request: Request, wires: Wires, *, base: int = 0) -> None:
        """`base`: where its output begins, if attempts before this one printed so much that some of it was freed."""
        self._born = born
        self._request = request
        self._wires = wires
        self._others = Others(born.folder)
        at_once = COPIED_AT_ONCE if request.pty else 0
        self._growth = Growth(born.descriptor, born.output, cap=request.output_cap, now=_now(), at_once=at_once)
        self._growth.base = base
        self._nearness = Nearness()
        self._began = _now()
        self._pid = 0
        self._status: int | None = None  # the command's, as waitpid gave it
        self._oom_kills = 0
        self._ladder: Ladder | None = None
        self._survivors: list[int] = []
        self._leftovers = 0
        self._paused_at: float | None = None
        self._paused = 0.0
        self._limited = 0.0  # seconds it waited for rate limits, as far as we looked
        self._asked = False  # whether the stall was told
        self._stall_from = self._began
        self._prompt_looked = -1.0  # the last growth after which the command was looked at for a blocked read
        self.is_over = False

    # -- its life ----------------------------------------------------------------------------

    def run(self) -> End:
        """Start the command and stay until nobody of it is left."""
        try:
            self._pid = self._wires.start(self._request, self._born.output)
        except command.NotStarted as why:
            return self._ended("error", why.code, None, why.why)
        is_first = not (self._request.resumes and self._born.record.get("pid"))
        began = {"startTime": now_ms()} if is_first else {}
        if self._request.resumes:
            began["takesInput"] = self._request.stdin  # also where a keeper before us did not live to begin
        self._born.change(pid=self._pid, pidStart=process_start(self._pid), waitsFor="", **began)
        self._oom_kills = oom.kills()
        self._growth.arm()
        self._look_at_output()
        while not self.is_over:
            self._wires.sleep(self._until(), self)
        return self._ended(*self._cause())

    def _until(self) -> float:
        """When to look up even if nothing happens."""
        if self._ladder is not None:
            moments = [self._ladder.until, self._tick_at()]  # the cap holds also while it ends
        else:
            moments = [self._timeout_at(), self._stall_at(), self._prompt_at(), self._tick_at()]
        return min((moment for moment in moments if moment is not None), default=float("inf"))

    def _timeout_at(self) -> float | None:
        if self._request.timeout is None or self._paused_at is not None:
            return None
        return self._began + self._paused + self._limited + self._request.timeout

    def _stall_at(self) -> float | None:
        if self._asked or self._paused_at is not None or not self._request.stall_after:
            return None
        return max(self._growth.last, self._stall_from) + self._request.stall_after

    def _prompt_at(self) -> float | None:
        """When to look whether the command is blocked in a read: once after each time that its output grew."""
        if self._asked or self._paused_at is not None or not self._request.prompt_after or not self._wires.takes_input:
            return None
        quiet_from = max(self._growth.last, self._stall_from)
        return None if quiet_from <= self._prompt_looked else quiet_from + self._request.prompt_after

    def _tick_at(self) -> float | None:
        return None if self._growth.is_armed else self._tick

    # -- news --------------------------------------------------------------------------------

    def woken(self) -> None:
        """Signals came, or a moment was reached: look at everything that may have changed."""
        self._reap()
        if self.is_over:
            return
        now = _now()
        if not self._growth.is_armed and now >= self._tick:
            self._look_at_output()
        if self._ladder is None:
            self._look_at_the_clock(now)
        if self._ladder is not None:
            self._climb_down(now)

    def grew(self) -> None:
        """The kernel says that something was written in our folder."""
        self._growth.is_armed = False
        self._look_at_output()

    def starter_died(self) -> None:
        """Whoever started us is gone."""
        if self._request.on_parent_exit == "kill":
            self.stop("stopped", by="its starter's end")
        elif not self._born.record.get("isBackgrounded"):
            self._born.change(isBackgrounded=True)  # nobody watches it any more: its end will be told

    def _reap(self) -> None:
        ended, self.is_over = tree.collect()
        self._status = ended.get(self._pid, self._status)
        if self._status is not None and not self.is_over:
            self._after_the_command()

    def _after_the_command(self) -> None:
        """The command ended and left somebody behind: processes, or keepers of jobs of their own."""
        keepers = self._others.keepers()
        if keepers and not tree.below(os.getpid(), but=keepers):
            self.is_over = self._others.are_settled(stopping=self._is_stopping)
        elif self._ladder is None and not self._request.leave_children:
            self._leftovers = self._descend("", "", self._request.grace)
        elif self._ladder is None and not self._born.record.get("leftRunning"):
            self._born.change(leftRunning=True)  # what it left behind goes on, and so does the job

    def _look_at_output(self) -> None:
        """Take in growth; while there is some, look again soon, else have the kernel tell."""
        now = _now()
        try:
            grew = self._growth.look(now)
            if not grew and not self._growth.is_armed and not self._growth.is_fast:
                self._growth.arm()
                grew = self._growth.look(now)
        except Full:
            self.stop("output_cap", by="its output's cap", grace=0.0 if self._growth.is_far_above else None)
            grew = True
        if self._growth.is_fast:
            self._nearness.seek()
        else:
            self._nearness.leave()
        if grew and self._asked:
            self._asked = False
            self._born.change(needsInput=False)
        self._tick = now + self._growth.tick()

    def _look_at_the_clock(self, now: float) -> None:
        if (deadline := self._timeout_at()) is not None and now >= deadline and not self._was_limited(now):
            self.stop("timeout", by=f"its time limit of {self._request.timeout:g} s")
        elif (prompted := self._prompt_at()) is not None and now >= prompted:
            self._prompt_looked = max(self._growth.last, self._stall_from)
            tail = self._tail()
            if self._is_blocked_at(tail):
                self._needs_input(tail)
        elif (stalled := self._stall_at()) is not None and now >= stalled:
            self._stall_from = self._prompt_looked = now
            tail = self._tail()
            if looks_like_a_question(tail) or self._is_blocked_at(tail):
                self._needs_input(tail)

    def _tail(self) -> str:
        return self._growth.tail(TAIL).decode("utf-8", "replace")

    def _is_blocked_at(self, tail: str) -> bool:
        """Whether `tail` ends as a prompt does, and a process of the job is blocked reading its input."""
        return ends_without_newline(tail) and self._wires.is_awaited(tree.below(os.getpid()))

    def _needs_input(self, tail: str) -> None:
        self._asked = True
        self._wires.tell_stall(tail)
        self._born.change(needsInput=True)

    def _was_limited(self, now: float) -> bool:
        """Whether some of its time went into waiting for a rate limit, which does not count: then it has more."""
        if self._request.arguments is None:
            return False
        from taskyard.runtime.facts import rate_limited_seconds

        waited, is_waiting = rate_limited_seconds(self._born.folder)
        if waited <= self._limited and not is_waiting:
            return False
        self._limited = max(waited, self._limited)
        if is_waiting:  # look again no later than it may go on
            self._limited = max(
                self._limited, now + _LIMIT_LOOK - self._began - self._paused - (self._request.timeout or 0)
            )
        return (self._timeout_at() or 0.0) > now

    # -- the way down ------------------------------------------------------------------------

    @property
    def _is_stopping(self) -> bool:
        return self._ladder is not None and bool(self._ladder.by)

    def stop(self, cause: str, *, by: str, grace: float | None = None) -> None:
        """End the whole tree; a second wish can only make it faster.

        A command that has ended by itself was not stopped: what it left behind is, and is counted.
        """
        grace = self._request.grace if grace is None else grace
        if self._request.resumes and "stopping" not in self._born.record:
            # Its process is told so, and carries it out; if it cannot, or is dead already, the next one does.
            self._born.change(stopping={"cause": cause, "by": by, "grace": grace})
        self._reap()
        if self.is_over:
            return
        if self._is_stopping and self._ladder is not None:
            self._ladder.hurry(_now() + grace)
            return
        self._others.stop_children(by=by, grace=grace)
        if self._ladder is not None:
            self._ladder.hurry(_now() + grace)  # what the command left behind is on its way already
        elif self._status is None:
            self._descend(cause, by, grace)
        else:
            self._leftovers = self._descend("", by, grace)

    def _descend(self, cause: str, by: str, grace: float) -> int:
        self._ladder = Ladder(cause=cause, by=by, grace=grace, now=_now())
        self._unpaused()
        return self._ladder.begin(self._others.keepers())

    def _climb_down(self, now: float) -> None:
        assert self._ladder is not None
        survivors = self._ladder.step(now, self._others.keepers())
        if survivors is not None:
            self._survivors = [*survivors, *self._others.survivors()]
            self.is_over = True

    # -- pause and input ---------------------------------------------------------------------

    def pause(self) -> bool:
        """Stop the clock and every process; whether they were running."""
        if self._paused_at is not None or self._ladder is not None:
            return False
        frozen(os.getpid(), self._others.keepers())
        self._others.tell({"do": "pause"})
        self._paused_at = _now()
        self._born.change(isPaused=True)
        return True

    def resume(self) -> bool:
        """Go on; whether it was paused."""
        if self._paused_at is None:
            return False
        self._unpaused()
        tree.signal_all(tree.below(os.getpid(), but=self._others.keepers()), signal.SIGCONT)
        self._others.tell({"do": "resume"})
        self._born.change(isPaused=False, totalPausedMs=round(self._paused * 1000))
        return True

    def _unpaused(self) -> None:
        if self._paused_at is not None:
            self._paused += _now() - self._paused_at
            self._stall_from, self._paused_at = _now(), None

    def answer(self, data: bytes) -> bool:
        """Type into the command; whether it can be."""
        self._stall_from = _now()
        return self._wires.type_in(data)

    # -- the end -----------------------------------------------------------------------------

    def _cause(self) -> tuple[str, int | None, int | None]:
        """Why it ended, its exit code and signal."""
        stopped = self._ladder.cause if self._ladder is not None else ""
        if self._status is None:
            return stopped or "exited", None, None
        code = os.WEXITSTATUS(self._status) if os.WIFEXITED(self._status) else None
        number = os.WTERMSIG(self._status) if code is None else None
        if not stopped and (number == signal.SIGKILL or code == _KILLED) and oom.kills() > self._oom_kills:
            return "oom", code, number
        return stopped or ("exited" if number is None else "signal"), code, number

    def _ended(self, cause: str, code: int | None, number: int | None, error: str = "") -> End:
        self._nearness.leave()
        self._wires.drain_all()
        try:
            self._growth.look(_now())
        except (Full, OSError):
            pass
        return End(
            cause,
            code,
            number,
            error,
            proof=proof_of(self._survivors, self._others.keepers),
            survivors=tuple(self._survivors),
            leftovers=self._leftovers,
            kept=tuple(self._others.kept()),
            by=self._ladder.by if self._ladder is not None else "",
            at=now_ms(),
            duration_ms=round((_now() - self._began) * 1000),
            paused_ms=round(self._paused * 1000),
            size=self._growth.size,
            base=self._growth.kept_from(),
            output_lost=self._growth.lost,
        )
