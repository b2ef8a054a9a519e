"""
Waiting for a turn: for other jobs to end, then for one of the slots that limit how many run at once, then for the
minute to have room for another start.

A slot is a byte of a lock file: the kernel gives it back when its keeper ends, however it ends. Whoever finds none
looks again four times a second, as no signal tells of a lock that was given back.
"""

from __future__ import annotations

import time

from taskyard.disk.files import check_private_folder, make_private_folder
from taskyard.disk.kernel_lock import RangeLock
from taskyard.errors import JobNotFound
from taskyard.runtime.ending import read
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.keeper.idle import Idle
from taskyard.runtime.liveness import keeper_of
from taskyard.runtime.model import JobStatus
from taskyard.shapes import as_object
from taskyard.typed import cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.runtime.keeper.birth import Born
    from taskyard.runtime.keeper.request import Request
    from taskyard.runtime.rate_limit import RateLimited

#: The fact of a job that waits for a rate limit (`rate_limit.FACT`, which keepers of commands need not load).
_FACT = "rateLimited"

_TICK = 0.25

#: What those are called that share the slots of a kind.
_WORDS = {"jobs": "job", "local_bash": "shell command", "local_agent": "agent"}

#: Why one that was to come after another may not run.
_HOW = {JobStatus.FAILED: "failed", JobStatus.KILLED: "was stopped"}


class Queue(Idle):
    """One job's place in line."""

    def __init__(self, born: Born, request: Request) -> None:
        super().__init__(request, 0.0)
        self._born = born
        self._locks: list[tuple[RangeLock, str]] = []  # with the name of each queue
        self.refused = ""  #: why it may never run, if so
        self._limited: RateLimited | None = None  # what it waits for, if that is a rate limit

    def try_now(self) -> bool:
        """Whether it is our turn already; if not, the record says what we wait for."""
        self._next = time.monotonic() + _TICK
        reason = self._reason()
        if self.refused:
            self.is_over = True
            return True
        if reason:
            if self._born.record.get("waitsFor") != reason:
                self._born.change(waitsFor=reason, **self._flagged())
            return False
        if flags := self._flagged():
            self._born.change(**flags)
        self.is_over = True
        return True

    def _reason(self) -> str:
        """What we wait for; nothing if our turn has come."""
        for other in (*self._request.after, *self._request.after_any):
            if self._is_going_on(JobFolder(self._request.home, other)):
                return f"job {other}"
        if self._request.after and self._is_refused():
            return ""
        if not self._locks:
            self._open()
        for lock, name in self._locks:
            if not _has_slot(lock, self._request.slots[name]):
                self._give_back()
                return self._limit(name)
        self._limited = None
        reason, seconds = self._start() if self._request.agents is None else self._agents_turn()
        if reason or self.refused:
            self._give_back()
            self._next = time.monotonic() + seconds
        return reason

    @staticmethod
    def _is_going_on(other: JobFolder) -> bool:
        """Whether a job is not over: it has a keeper, or its work goes on elsewhere, and it gets one now."""
        if keeper_of(other) is not None:
            return True
        record = read(other.record) or {}
        if "resumes" not in record:
            return False
        from taskyard.runtime import resuming

        if not resuming.goes_on(other, record):
            return False
        resuming.take_up(other, record)
        return True

    def _open(self) -> None:
        """Open the files of our slots, made by the first who needs them."""
        folder = f"{self._request.home}/slots"
        try:
            check_private_folder(folder)
        except FileNotFoundError:
            make_private_folder(folder)
        self._locks += [(RangeLock(f"{folder}/{name}"), name) for name in self._request.slots]

    def _is_refused(self) -> bool:
        """Whether a job that must have completed did not."""
        from taskyard.runtime.looking import look

        for other in self._request.after:
            try:
                status = look(self._request.home, other).status
            except JobNotFound:
                status = JobStatus.FAILED  # its folder was removed by hand: nobody can say that it completed
            if not status.is_final:
                return False  # its work goes on elsewhere, and it just got another keeper
            if status is not JobStatus.COMPLETED:
                self.refused = f"it was to run after job {other}, which {_HOW[status]}"
        return bool(self.refused)

    def _start(self) -> tuple[str, float]:
        """Count a start; or what keeps it from beginning, and for how many seconds."""
        if not (limit := self._request.starts_per_minute):
            return "", 0.0
        from taskyard.runtime.keeper.starts import ask

        seconds = ask(f"{self._request.home}/slots/starts", limit)
        if not seconds:
            return "", 0.0
        moment = time.strftime("%H:%M:%S", time.localtime(time.time() + seconds + 0.999))
        return f"a start (at most {limit} a minute), until {moment}", seconds

    def _agents_turn(self) -> tuple[str, float]:
        from taskyard.runtime.keeper.agents import Rules, Waits, turn

        rules = Rules(*cast("tuple[str, int, int, float, str, float]", self._request.agents))  # made by `requests`
        waits = turn(self._request.home, rules, lambda: Waits(*self._start()))
        self._limited, self.refused = waits.limited, waits.refused
        return waits.reason, waits.seconds

    def _flagged(self) -> dict[str, object]:
        """The facts of the record with the rate limit that is waited for, or without one; nothing if they are so."""
        facts = as_object(self._born.record.get("facts")) or {}
        flag = None if self._limited is None else self._limited.to_json()
        if facts.get(_FACT) == flag:
            return {}
        return {
            "facts": {
                **{name: value for name, value in facts.items() if name != _FACT},
                **({_FACT: flag} if flag else {}),
            }
        }

    def _give_back(self) -> None:
        for lock, _ in self._locks:
            lock.release()

    def close(self) -> None:
        """Give back the slot, in a process that outlives its job."""
        for lock, _ in self._locks:
            lock.close()

    def _limit(self, name: str) -> str:
        kind, _, inside = name.partition(".")
        count = self._request.slots[name]
        what = f"{count} {_WORDS.get(kind, kind)}{'' if count == 1 else 's'}"
        return f"a slot (at most {what}{' inside others' if inside else ''} at once)"

    def woken(self) -> None:
        """The time has come to look, or something happened."""
        if not self.is_over and time.monotonic() >= self._next:
            self.try_now()


def _has_slot(lock: RangeLock, limit: int) -> bool:
    """Take the first of the slots that is free, if one is."""
    return any(map(lock.try_take, range(1, limit + 1)))
