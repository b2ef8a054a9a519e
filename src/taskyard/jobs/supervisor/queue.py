"""Start queue and retry delay: the waits of a supervisor while its command is not running.

A start waits, in this order, for the jobs it must follow, for a slot (how many jobs run at once), and for
the limit of starts per minute. An agent also waits while today's budget is used up or its account is
rate-limited. Control messages are handled meanwhile.

A slot is a byte range lock in a file: the kernel releases it when the supervisor exits, however it exits.
No signal reports a released lock, so a queue that found none polls four times a second.

`slots/starts` counts starts over all processes of a user: the time of every start, eight bytes each, in
milliseconds since boot. The entry `limit` places back decides whether another start is allowed. Entries are
appended under a kernel lock: a supervisor that is killed meanwhile leaves a start that counts, or none.
Entries older than needed are freed by punching holes; offsets stay.
"""

from __future__ import annotations

import os
import struct
import time

from taskyard.core.files import check_private_folder, make_private_folder
from taskyard.core.system import boottime
from taskyard.core.values import NamedTuple, as_object, cast
from taskyard.errors import Busy, JobNotFound, StorageError
from taskyard.jobs import budget as jobs_budget
from taskyard.jobs.exit_record import read_json
from taskyard.jobs.job_dir import JobPaths, supervisor_pid
from taskyard.jobs.model import JobStatus
from taskyard.jobs.rate_limit import RateLimited, RateState, RateStateFile
from taskyard.jobs.supervisor.kernel import punch_hole
from taskyard.storage.locks import RangeLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.jobs.supervisor.create import JobDir
    from taskyard.jobs.supervisor.request import JobRequest


MINUTE = 60_000  #: in milliseconds

_TIMESTAMP = struct.Struct("<q")

#: Offset of the locked byte, beyond anything written.
_LOCK = 1 << 62

#: Seconds until a retry when the lock is taken; it is only taken for microseconds.
_STARTS_RETRY = 0.01

#: Entries between two frees, and the block size in bytes.
_BLOCK = 4096


def take_start(path: str, limit: int, *, now: int | None = None, count: bool = True) -> float:
    """Count a start and return 0.0 if one is allowed now; else return the seconds until one is.

    Without `count`, only check.
    """
    with RangeLock(path) as lock:
        if not lock.try_take(_LOCK):
            return _STARTS_RETRY
        now = int(boottime() * 1000) if now is None else now
        known = os.fstat(lock.fd).st_size // _TIMESTAMP.size
        if known >= limit:
            (moment,) = _TIMESTAMP.unpack(os.pread(lock.fd, _TIMESTAMP.size, (known - limit) * _TIMESTAMP.size))
            age = now - int(moment)
            if 0 <= age < MINUTE:  # a time in the future was written before the last boot
                return (MINUTE - age) / 1000
        if not count:
            return 0.0
        os.pwrite(lock.fd, _TIMESTAMP.pack(now), known * _TIMESTAMP.size)
        if known % _BLOCK == 0 and known > limit:
            punch_hole(lock.fd, 0, (known - limit) * _TIMESTAMP.size // _BLOCK * _BLOCK)
        return 0.0


#: Seconds between checks of a budget: the user may have raised it, or a new day begun.
_BUDGET_POLL = 30.0

#: Seconds between checks of a rate limit: another agent may have noted a later end, or the clock was set.
_LIMIT_POLL = 2.0

#: Seconds until a retry when the rate state is locked; it is only locked for microseconds.
_RATE_RETRY = 0.02


class WaitReason(NamedTuple):
    """Why a job may not start yet, and in how many seconds to check again."""

    reason: str = ""  #: "" if it may start
    seconds: float = 0.0
    refused: str = ""  #: why it may never start, if so
    limited: RateLimited | None = None  #: the rate limit it waits for, if any


class AgentLimits(NamedTuple):
    """Limits of an agent's start, from its starter's settings."""

    account: str
    starts_per_minute: int = 0
    day_tokens: int = 0
    day_usd: float = 0.0
    on_limit: str = "wait"
    longest: float = float("inf")  #: most seconds to wait for a rate limit


def try_agent_start(home: str, rules: AgentLimits, start: Callable[[], WaitReason]) -> WaitReason:
    """Return why an agent must wait, or count its start; `start` checks the limits of all jobs."""
    budget = jobs_budget.Budget(rules.day_tokens, rules.day_usd)
    if budget.is_set and (over := budget.over(jobs_budget.read_usage(home, jobs_budget.day_key()))):
        seconds = min(_BUDGET_POLL, jobs_budget.seconds_to_midnight() + 1)
        return WaitReason(f"another day: today's budget for agents is used up ({over})", seconds)
    try:
        with RateStateFile(home, rules.account, timeout=0.05) as file:
            return _check_rate(home, rules, start, file)
    except Busy:
        return WaitReason(f"the rate limit of {rules.account}", _RATE_RETRY)
    except StorageError:
        return start()  # a failing disk is no reason to start nothing


def _check_rate(home: str, rules: AgentLimits, start: Callable[[], WaitReason], file: RateStateFile) -> WaitReason:
    now = time.time()
    pace = file.read(now)
    if seconds := pace.until(now):
        return _limit_wait(rules, pace, now, seconds)
    path, limit = f"{home}/slots/starts-agents", rules.starts_per_minute
    if limit and (seconds := take_start(path, limit, count=False)):
        moment = time.strftime("%H:%M:%S", time.localtime(time.time() + seconds + 0.999))
        return WaitReason(f"a start (at most {limit} agents a minute), until {moment}", seconds)
    waits = start()
    if not waits.reason:
        if limit:
            take_start(path, limit)
        file.write(pace.started(now))
    return waits


def _limit_wait(rules: AgentLimits, pace: RateState, now: float, seconds: float) -> WaitReason:
    """Return the consequence of a rate limit for a start: a wait, or a refusal."""
    limit = pace.rate_limited(now)
    if limit is None:
        return WaitReason("its turn after a rate limit", seconds)
    if rules.on_limit == "stop":
        return WaitReason(refused=f"{limit.words()}: {limit.reason}")
    if limit.until_ms / 1000 > now + rules.longest:
        return WaitReason(refused=f"{limit.words()}, longer than rate_limit_wait ({rules.longest:g} s): {limit.reason}")
    return WaitReason(limit.words(), min(seconds, _LIMIT_POLL), limited=limit)


#: Longest delay between two attempts, in seconds: anything longer is a case for a schedule.
MAX_RETRY_DELAY = 60.0


class IdleSupervisor:
    """Base of a supervisor whose command is not running: it can be stopped, but not paused or typed to."""

    def __init__(self, request: JobRequest, until: float) -> None:
        """`until`: when to wake up even if nothing happens."""
        self._request = request
        self._next = until
        self.is_over = False
        self.stopped_by: str | None = None

    @property
    def until(self) -> float:
        """When to check again."""
        return self._next

    def stop(self, cause: str, *, by: str, grace: float | None = None) -> None:
        """End without running the command (again)."""
        self.stopped_by = by
        self.is_over = True

    def on_starter_exit(self) -> None:
        """Stop if the starter has exited and the job must not outlive it."""
        if self._request.on_parent_exit == "kill":
            self.stop("stopped", by="its starter's exit")

    def woken(self) -> None:
        """Check what may have changed: a deadline was reached or an event arrived."""

    def grew(self) -> None:
        """Ignore the change: only our own record was written."""

    def pause(self) -> bool:
        """Return False: no command is running."""
        return False

    def resume(self) -> bool:
        """Return False: no command is running."""
        return False

    def answer(self, data: bytes) -> bool:
        """Return False: no command is running."""
        return False


class RetryDelay(IdleSupervisor):
    """Exponential backoff between two attempts: twice as long each time."""

    def __init__(self, request: JobRequest, attempt: int) -> None:
        """`attempt`: number of the coming attempt, from 2 on."""
        doublings = min(attempt - 2, 16)
        super().__init__(request, time.monotonic() + min(request.retry_delay * 2**doublings, MAX_RETRY_DELAY))

    def woken(self) -> None:
        """End the delay when its time has passed."""
        if time.monotonic() >= self._next:
            self.is_over = True


#: Fact of a job that waits for a rate limit (`rate_limit.LIMIT_FACT`, which supervisors of commands need not
#: import).
_LIMIT_FACT = "rateLimited"

_TICK = 0.25

#: Names of the jobs that share the slots of a kind.
_SLOT_NOUNS = {"jobs": "job", "local_bash": "shell command", "local_agent": "agent"}

#: Why a job that was to run after another may not run.
_END_VERBS = {JobStatus.FAILED: "failed", JobStatus.KILLED: "was stopped"}


class StartQueue(IdleSupervisor):
    """One job's place in the start queue."""

    def __init__(self, born: JobDir, request: JobRequest) -> None:
        super().__init__(request, 0.0)
        self._born = born
        self._locks: list[tuple[RangeLock, str]] = []  # each with the name of its queue
        self.refused = ""  #: why it may never run, if so
        self._limited: RateLimited | None = None  # the rate limit it waits for, if any

    def try_now(self) -> bool:
        """Return whether the job may start (or never will); if not, record what it waits for."""
        self._next = time.monotonic() + _TICK
        reason = self._reason()
        if self.refused:
            self.is_over = True
            return True
        if reason:
            if self._born.record.get("waitsFor") != reason:
                self._born.change(waitsFor=reason, **self._limit_facts())
            return False
        if flags := self._limit_facts():
            self._born.change(**flags)
        self.is_over = True
        return True

    def _reason(self) -> str:
        """Return what the job waits for; "" if it may start."""
        for other in (*self._request.after, *self._request.after_any):
            if self._is_going_on(JobPaths(self._request.home, other)):
                return f"job {other}"
        if self._request.after and self._is_refused():
            return ""
        if not self._locks:
            self._open()
        for lock, name in self._locks:
            if not _take_slot(lock, self._request.slots[name]):
                self._give_back()
                return self._limit(name)
        self._limited = None
        reason, seconds = self._start() if self._request.agents is None else self._try_agent_start()
        if reason or self.refused:
            self._give_back()
            self._next = time.monotonic() + seconds
        return reason

    @staticmethod
    def _is_going_on(other: JobPaths) -> bool:
        """Return whether a job has not ended: it has a supervisor, or is resumable and gets one now."""
        if supervisor_pid(other) is not None:
            return True
        record = read_json(other.record) or {}
        if "resumes" not in record:
            return False
        from taskyard.jobs import query

        if not query.is_resumable(other, record):
            return False
        query.ensure_supervisor(other, record)
        return True

    def _open(self) -> None:
        """Open the lock files of our slots, creating their folder if needed."""
        folder = f"{self._request.home}/slots"
        try:
            check_private_folder(folder)
        except FileNotFoundError:
            make_private_folder(folder)
        self._locks += [(RangeLock(f"{folder}/{name}"), name) for name in self._request.slots]

    def _is_refused(self) -> bool:
        """Return whether a job that must complete first did not."""
        from taskyard.jobs.query import read_job

        for other in self._request.after:
            try:
                status = read_job(self._request.home, other).status
            except JobNotFound:
                status = JobStatus.FAILED  # its folder was removed by hand: it cannot be shown to have completed
            if not status.is_final:
                return False  # its work runs elsewhere, and it just got another supervisor
            if status is not JobStatus.COMPLETED:
                self.refused = f"it was to run after job {other}, which {_END_VERBS[status]}"
        return bool(self.refused)

    def _start(self) -> tuple[str, float]:
        """Count a start; return why it must wait and for how many seconds."""
        if not (limit := self._request.starts_per_minute):
            return "", 0.0

        seconds = take_start(f"{self._request.home}/slots/starts", limit)
        if not seconds:
            return "", 0.0
        moment = time.strftime("%H:%M:%S", time.localtime(time.time() + seconds + 0.999))
        return f"a start (at most {limit} a minute), until {moment}", seconds

    def _try_agent_start(self) -> tuple[str, float]:

        rules = AgentLimits(*cast("tuple[str, int, int, float, str, float]", self._request.agents))  # built by `start`
        waits = try_agent_start(self._request.home, rules, lambda: WaitReason(*self._start()))
        self._limited, self.refused = waits.limited, waits.refused
        return waits.reason, waits.seconds

    def _limit_facts(self) -> dict[str, object]:
        """Return the record's facts with the current rate limit added or removed; {} if nothing changes."""
        facts = as_object(self._born.record.get("facts")) or {}
        flag = None if self._limited is None else self._limited.to_json()
        if facts.get(_LIMIT_FACT) == flag:
            return {}
        return {
            "facts": {
                **{name: value for name, value in facts.items() if name != _LIMIT_FACT},
                **({_LIMIT_FACT: flag} if flag else {}),
            }
        }

    def _give_back(self) -> None:
        for lock, _ in self._locks:
            lock.release()

    def close(self) -> None:
        """Release the slots, in a process that outlives its job."""
        for lock, _ in self._locks:
            lock.close()

    def _limit(self, name: str) -> str:
        kind, _, inside = name.partition(".")
        count = self._request.slots[name]
        what = f"{count} {_SLOT_NOUNS.get(kind, kind)}{'' if count == 1 else 's'}"
        return f"a slot (at most {what}{' inside others' if inside else ''} at once)"

    def woken(self) -> None:
        """Try to start when the next check is due."""
        if not self.is_over and time.monotonic() >= self._next:
            self.try_now()


def _take_slot(lock: RangeLock, limit: int) -> bool:
    """Take the first free slot, if there is one."""
    return any(map(lock.try_take, range(1, limit + 1)))
