"""
Supervise one attempt at a job's command: exits, output growth, deadlines, pause and termination.

Event-driven: exits and output growth arrive as signals, control messages through the `control` pipe, the
starter's exit through its pidfd; besides these it sleeps until at most one deadline. Used by `run`.
"""

from __future__ import annotations

import os
import time

from taskyard.core.system import now_ms, process_start
from taskyard.jobs.model import End
from taskyard.jobs.supervisor import command, kernel, terminate
from taskyard.jobs.supervisor.child_jobs import ChildJobs
from taskyard.jobs.supervisor.io import COPY_BURST
from taskyard.jobs.supervisor.kernel import signal
from taskyard.jobs.supervisor.output_cap import (
    TAIL_SIZE,
    CapExceeded,
    CpuAffinity,
    OutputCap,
    ends_without_newline,
    looks_like_question,
)
from taskyard.jobs.supervisor.terminate import Termination, freeze_tree, termination_proof

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.jobs.supervisor.create import JobDir
    from taskyard.jobs.supervisor.io import SupervisorIO
    from taskyard.jobs.supervisor.request import JobRequest

_now = time.monotonic

#: Seconds between checks of a job that waits for a rate limit when its timeout would expire.
_LIMIT_POLL = 1.0

#: Exit code of a shell whose command was killed: 128 plus the signal number.
_EXIT_KILLED = 128 + signal.SIGKILL


class CommandAttempt:
    """One attempt at the command, from its start until its last process has exited."""

    def __init__(self, born: JobDir, request: JobRequest, io: SupervisorIO, *, base: int = 0) -> None:
        """`base`: offset where the output begins, if earlier attempts printed so much that some was freed."""
        self._born = born
        self._request = request
        self._io = io
        self._others = ChildJobs(born.folder)
        at_once = COPY_BURST if request.pty else 0
        self._output_cap = OutputCap(born.descriptor, born.output, cap=request.output_cap, now=_now(), at_once=at_once)
        self._output_cap.base = base
        self._affinity = CpuAffinity()
        self._began = _now()
        self._pid = 0
        self._status: int | None = None  # the command's, as returned by waitpid
        self._oom_kills = 0
        self._termination: Termination | None = None
        self._survivors: list[int] = []
        self._leftovers = 0
        self._paused_at: float | None = None
        self._paused = 0.0
        self._limited = 0.0  # seconds it waited for rate limits, as of the last check
        self._asked = False  # whether the stall was reported
        self._stall_from = self._began
        self._prompt_looked = -1.0  # the last growth after which the command was checked for a blocked read
        self.is_over = False

    # -- run ---------------------------------------------------------------------------------

    def run(self) -> End:
        """Start the command and supervise it until none of its processes is left."""
        try:
            self._pid = self._io.start(self._request, self._born.output)
        except command.NotStarted as why:
            return self._ended("error", why.code, None, why.why)
        is_first = not (self._request.resumes and self._born.record.get("pid"))
        began = {"startTime": now_ms()} if is_first else {}
        if self._request.resumes:
            began["takesInput"] = self._request.stdin  # also if a supervisor was killed before the start
        self._born.change(pid=self._pid, pidStart=process_start(self._pid), waitsFor="", **began)
        self._oom_kills = kernel.oom_kills()
        self._output_cap.arm()
        self._check_output()
        while not self.is_over:
            self._io.sleep(self._until(), self)
        return self._ended(*self._cause())

    def _until(self) -> float:
        """Return when to wake up even if nothing happens."""
        if self._termination is not None:
            moments = [self._termination.until, self._tick_at()]  # the cap also applies during termination
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
        return max(self._output_cap.last, self._stall_from) + self._request.stall_after

    def _prompt_at(self) -> float | None:
        """Return when to check whether the command is blocked in a read: once after each growth of its output."""
        if self._asked or self._paused_at is not None or not self._request.prompt_after or not self._io.takes_input:
            return None
        quiet_from = max(self._output_cap.last, self._stall_from)
        return None if quiet_from <= self._prompt_looked else quiet_from + self._request.prompt_after

    def _tick_at(self) -> float | None:
        return None if self._output_cap.is_armed else self._tick

    # -- events ------------------------------------------------------------------------------

    def woken(self) -> None:
        """Check everything that may have changed: a signal arrived or a deadline was reached."""
        self._reap()
        if self.is_over:
            return
        now = _now()
        if not self._output_cap.is_armed and now >= self._tick:
            self._check_output()
        if self._termination is None:
            self._check_deadlines(now)
        if self._termination is not None:
            self._step_termination(now)

    def grew(self) -> None:
        """Handle the kernel's signal that a file in the job's folder was written."""
        self._output_cap.is_armed = False
        self._check_output()

    def on_starter_exit(self) -> None:
        """Handle the exit of the process that started this job."""
        if self._request.on_parent_exit == "kill":
            self.stop("stopped", by="its starter's exit")
        elif not self._born.record.get("isBackgrounded"):
            self._born.change(isBackgrounded=True)  # no process watches it any more: send a notice when it exits

    def _reap(self) -> None:
        ended, self.is_over = terminate.reap_children()
        self._status = ended.get(self._pid, self._status)
        if self._status is not None and not self.is_over:
            self._handle_leftovers()

    def _handle_leftovers(self) -> None:
        """Handle what the exited command left behind: processes, or supervisors of child jobs."""
        supervisors = self._others.supervisors()
        if supervisors and not terminate.descendants(os.getpid(), exclude=supervisors):
            self.is_over = self._others.all_settled(stopping=self._is_stopping)
        elif self._termination is None and not self._request.leave_children:
            self._leftovers = self._start_termination("", "", self._request.grace)
        elif self._termination is None and not self._born.record.get("leftRunning"):
            self._born.change(leftRunning=True)  # its leftover processes keep running, and so does the job

    def _check_output(self) -> None:
        """Process output growth; while it grows, check again soon, else wait for the kernel's signal."""
        now = _now()
        try:
            grew = self._output_cap.look(now)
            if not grew and not self._output_cap.is_armed and not self._output_cap.is_fast:
                self._output_cap.arm()
                grew = self._output_cap.look(now)
        except CapExceeded:
            self.stop("output_cap", by="its output's cap", grace=0.0 if self._output_cap.is_well_above else None)
            grew = True
        if self._output_cap.is_fast:
            self._affinity.seek()
        else:
            self._affinity.leave()
        if grew and self._asked:
            self._asked = False
            self._born.change(needsInput=False)
        self._tick = now + self._output_cap.tick()

    def _check_deadlines(self, now: float) -> None:
        if (deadline := self._timeout_at()) is not None and now >= deadline and not self._was_limited(now):
            self.stop("timeout", by=f"its time limit of {self._request.timeout:g} s")
        elif (prompted := self._prompt_at()) is not None and now >= prompted:
            self._prompt_looked = max(self._output_cap.last, self._stall_from)
            tail = self._tail()
            if self._is_blocked_at(tail):
                self._needs_input(tail)
        elif (stalled := self._stall_at()) is not None and now >= stalled:
            self._stall_from = self._prompt_looked = now
            tail = self._tail()
            if looks_like_question(tail) or self._is_blocked_at(tail):
                self._needs_input(tail)

    def _tail(self) -> str:
        return self._output_cap.tail(TAIL_SIZE).decode("utf-8", "replace")

    def _is_blocked_at(self, tail: str) -> bool:
        """Return whether `tail` ends like a prompt and a process of the job is blocked reading its input."""
        return ends_without_newline(tail) and self._io.is_being_read(terminate.descendants(os.getpid()))

    def _needs_input(self, tail: str) -> None:
        self._asked = True
        self._io.report_stall(tail)
        self._born.change(needsInput=True)

    def _was_limited(self, now: float) -> bool:
        """Return whether it waited for a rate limit, which does not count towards the timeout, and has time left."""
        if self._request.arguments is None:
            return False
        from taskyard.jobs.exit_record import rate_limited_seconds

        waited, is_waiting = rate_limited_seconds(self._born.folder)
        if waited <= self._limited and not is_waiting:
            return False
        self._limited = max(waited, self._limited)
        if is_waiting:  # check again no later than it may continue
            self._limited = max(
                self._limited, now + _LIMIT_POLL - self._began - self._paused - (self._request.timeout or 0)
            )
        return (self._timeout_at() or 0.0) > now

    # -- termination -------------------------------------------------------------------------

    @property
    def _is_stopping(self) -> bool:
        return self._termination is not None and bool(self._termination.by)

    def stop(self, cause: str, *, by: str, grace: float | None = None) -> None:
        """Terminate the whole process tree; a second stop request can only shorten the grace.

        A command that exited by itself counts as exited, not stopped: its leftovers are stopped and
        counted.
        """
        grace = self._request.grace if grace is None else grace
        if self._request.resumes and "stopping" not in self._born.record:
            # Recorded first: its process reads the request and carries it out; if it cannot, or was killed,
            # the next one does.
            self._born.change(stopping={"cause": cause, "by": by, "grace": grace})
        self._reap()
        if self.is_over:
            return
        if self._is_stopping and self._termination is not None:
            self._termination.shorten(_now() + grace)
            return
        self._others.stop_children(by=by, grace=grace)
        if self._termination is not None:
            self._termination.shorten(_now() + grace)  # termination of the command's leftovers has begun already
        elif self._status is None:
            self._start_termination(cause, by, grace)
        else:
            self._leftovers = self._start_termination("", by, grace)

    def _start_termination(self, cause: str, by: str, grace: float) -> int:
        self._termination = Termination(cause=cause, by=by, grace=grace, now=_now())
        self._end_pause()
        return self._termination.begin(self._others.supervisors())

    def _step_termination(self, now: float) -> None:
        assert self._termination is not None
        survivors = self._termination.step(now, self._others.supervisors())
        if survivors is not None:
            self._survivors = [*survivors, *self._others.survivors()]
            self.is_over = True

    # -- pause and input ---------------------------------------------------------------------

    def pause(self) -> bool:
        """Stop the timeout clock and every process; return whether they were running."""
        if self._paused_at is not None or self._termination is not None:
            return False
        freeze_tree(os.getpid(), self._others.supervisors())
        self._others.tell({"do": "pause"})
        self._paused_at = _now()
        self._born.change(isPaused=True)
        return True

    def resume(self) -> bool:
        """Resume a paused job; return whether it was paused."""
        if self._paused_at is None:
            return False
        self._end_pause()
        terminate.signal_all(terminate.descendants(os.getpid(), exclude=self._others.supervisors()), signal.SIGCONT)
        self._others.tell({"do": "resume"})
        self._born.change(isPaused=False, totalPausedMs=round(self._paused * 1000))
        return True

    def _end_pause(self) -> None:
        if self._paused_at is not None:
            self._paused += _now() - self._paused_at
            self._stall_from, self._paused_at = _now(), None

    def answer(self, data: bytes) -> bool:
        """Write `data` to the command's input; return whether that was possible."""
        self._stall_from = _now()
        return self._io.type_in(data)

    # -- exit --------------------------------------------------------------------------------

    def _cause(self) -> tuple[str, int | None, int | None]:
        """Return the cause of the exit, the exit code and the signal."""
        stopped = self._termination.cause if self._termination is not None else ""
        if self._status is None:
            return stopped or "exited", None, None
        code = os.WEXITSTATUS(self._status) if os.WIFEXITED(self._status) else None
        number = os.WTERMSIG(self._status) if code is None else None
        if not stopped and (number == signal.SIGKILL or code == _EXIT_KILLED) and kernel.oom_kills() > self._oom_kills:
            return "oom", code, number
        return stopped or ("exited" if number is None else "signal"), code, number

    def _ended(self, cause: str, code: int | None, number: int | None, error: str = "") -> End:
        self._affinity.leave()
        self._io.drain_all()
        try:
            self._output_cap.look(_now())
        except (CapExceeded, OSError):
            pass
        return End(
            cause,
            code,
            number,
            error,
            proof=termination_proof(self._survivors, self._others.supervisors),
            survivors=tuple(self._survivors),
            leftovers=self._leftovers,
            kept=tuple(self._others.kept()),
            by=self._termination.by if self._termination is not None else "",
            at=now_ms(),
            duration_ms=round((_now() - self._began) * 1000),
            paused_ms=round(self._paused * 1000),
            size=self._output_cap.size,
            base=self._output_cap.kept_from(),
            output_lost=self._output_cap.lost,
        )
