"""
What a background job is.

On disk a job is its record (`job.json`, replaced by its keeper) and its end (`end.json`, written once).
Keys there are those of Claude Code's records: `startTime`, `isBackgrounded`, …
"""

from __future__ import annotations

from enum import StrEnum

from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.runtime.rate_limit import RateLimited


class JobStatus(StrEnum):
    """The life of a job; the last three are final."""

    PENDING = "pending"  #: waits for a slot, or for another job
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    KILLED = "killed"

    @property
    def is_final(self) -> bool:
        """Whether nothing will change any more."""
        return self in _FINAL


_FINAL = frozenset({JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.KILLED})

#: Causes by which somebody ended a job on purpose; all others but a clean exit are failures.
_ON_PURPOSE = frozenset({"stopped", "timeout", "output_cap"})


class End(NamedTuple):
    """How a job ended: the kernel's word, not a guess."""

    cause: str  #: exited, signal, oom, error, lost; stopped, timeout, output_cap
    exit_code: int | None = None
    signal: int | None = None
    error: str = ""  #: for cause `error` and `lost`: what happened, in words
    proof: str = ""  #: that no process of it is left: proved, partial (see `survivors`), best_effort; "": not known
    survivors: tuple[int, ...] = ()  #: processes that no signal could end
    leftovers: int = 0  #: processes the command had left behind, which were stopped
    kept: tuple[str, ...] = ()  #: jobs started inside it that were to survive it
    by: str = ""  #: who stopped it, or what it had left behind
    at: int = 0  #: epoch ms; of a lost one, when that was found out; 0: not known
    duration_ms: int | None = None  #: of the last attempt; None: nobody knows when it really ended
    paused_ms: int = 0
    size: int = 0  #: of the output, counted from its first byte ever
    base: int = 0  #: where in it the newest part begins, which was kept; 0: all of it was
    header: int = 0  #: bytes before that part in the file: the line that says what was left out
    head: int = 0  #: bytes before that line: the oldest part, which was kept too
    output_lost: str = ""  #: why output is missing, if it is

    @property
    def status(self) -> JobStatus:
        """The final status that goes with it."""
        if self.cause in _ON_PURPOSE:
            return JobStatus.KILLED
        return JobStatus.COMPLETED if self.cause == "exited" and self.exit_code == 0 else JobStatus.FAILED


class Job(NamedTuple):
    """One background job, as it is known now."""

    id: str
    type: str  #: the kind: local_bash, local_agent, …
    status: JobStatus
    description: str  #: one line for people
    command: str = ""  #: as a person would type it
    start_time: int = 0  #: epoch ms
    end_time: int | None = None
    total_paused_ms: int = 0
    output_file: str = ""
    notified: bool = False
    is_backgrounded: bool = True
    tool_use_id: str | None = None
    agent_id: str | None = None  #: who started it, and hears of its end
    parent: str | None = None  #: the job it was started inside
    depth: int = 0  #: how many jobs it is inside of
    task: str | None = None  #: the task it was started for: its list and id, such as release/7
    project: str = ""  #: where it was started: the name of that project's list; "": not recorded
    waits_for: str = ""  #: while pending: what for
    takes_input: bool = False  #: it has an input or a terminal that anybody can type into
    needs_input: bool = False
    is_paused: bool = False
    is_disconnected: bool = False  #: its work goes on elsewhere, and nobody here can see it; why, and since when: facts
    left_running: bool = False  #: its command is over, and what that left behind goes on, as it may
    pid: int | None = None  #: of the command
    attempt: int = 1
    retries: int = 0  #: how often it may be tried again
    earlier: tuple[Mapping[str, object], ...] = ()  #: how its earlier attempts ended, the last ones
    grace: float = 3.0  #: seconds it has between being asked to end and being made to
    on_parent_exit: str = "keep"
    is_inside: bool = False  #: it lives in the program that started it
    host_name: str = ""  #: the machine it runs on, where several share a database
    is_far: bool = False  #: that is another machine than this: its files are not here
    is_dismissed: bool = False  #: a person has seen its end and wants it out of every view
    end: End | None = None
    facts: Mapping[str, object] = {}  #: what its kind adds

    @property
    def is_final(self) -> bool:
        """Whether it is over."""
        return self.status.is_final

    @property
    def rate_limited(self) -> RateLimited | None:
        """The rate limit that it waits for; None if it does not."""
        raw = self.facts.get("rateLimited")
        if raw is None or self.status.is_final:
            return None
        from taskyard.runtime.rate_limit import rate_limited  # only agents need it

        return rate_limited(raw)
