"""When an agent with a slot may begin: not while today's budget is used up, nor while its account is rate-limited."""

from __future__ import annotations

import time

from taskyard.errors import Busy, StorageError
from taskyard.runtime import spending
from taskyard.runtime.keeper import starts
from taskyard.runtime.pace import Pace, PaceFile
from taskyard.runtime.rate_limit import RateLimited
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

#: Seconds between two looks at a budget: somebody may have raised it, or a day begun.
_LOOK = 30.0

#: Seconds between two looks at a rate limit: another agent may have noted a later end, or somebody set the clock.
_LIMIT_LOOK = 2.0

#: Whoever holds a pace does so for microseconds; so soon it is looked at again.
_SOON = 0.02


class Waits(NamedTuple):
    """What keeps a job from beginning, and when to look again, in seconds."""

    reason: str = ""  #: nothing does
    seconds: float = 0.0
    refused: str = ""  #: why it may never begin, if so
    limited: RateLimited | None = None  #: the rate limit it waits for, if that is what it is


class Rules(NamedTuple):
    """What an agent's start goes by, as its starter's settings say."""

    account: str
    starts_per_minute: int = 0
    day_tokens: int = 0
    day_usd: float = 0.0
    on_limit: str = "wait"
    longest: float = float("inf")  #: seconds a rate limit is waited for


def turn(home: str, rules: Rules, start: Callable[[], Waits]) -> Waits:
    """Whether it may begin now, which is then counted; `start` asks what holds for every job."""
    budget = spending.Budget(rules.day_tokens, rules.day_usd)
    if budget.is_set and (over := budget.over(spending.spent(home, spending.of_today()))):
        seconds = min(_LOOK, spending.until_tomorrow() + 1)
        return Waits(f"another day: today's budget for agents is used up ({over})", seconds)
    try:
        with PaceFile(home, rules.account, timeout=0.05) as file:
            return _paced(home, rules, start, file)
    except Busy:
        return Waits(f"the rate limit of {rules.account}", _SOON)
    except StorageError:
        return start()  # a disk that refuses is no reason to begin nothing


def _paced(home: str, rules: Rules, start: Callable[[], Waits], file: PaceFile) -> Waits:
    now = time.time()
    pace = file.read(now)
    if seconds := pace.until(now):
        return _limited(rules, pace, now, seconds)
    path, limit = f"{home}/slots/starts-agents", rules.starts_per_minute
    if limit and (seconds := starts.ask(path, limit, count=False)):
        moment = time.strftime("%H:%M:%S", time.localtime(time.time() + seconds + 0.999))
        return Waits(f"a start (at most {limit} agents a minute), until {moment}", seconds)
    waits = start()
    if not waits.reason:
        if limit:
            starts.ask(path, limit)
        file.write(pace.started(now))
    return waits


def _limited(rules: Rules, pace: Pace, now: float, seconds: float) -> Waits:
    """What a rate limit means for a start: a wait, or that there is none."""
    limit = pace.rate_limited(now)
    if limit is None:
        return Waits("its turn after a rate limit", seconds)
    if rules.on_limit == "stop":
        return Waits(refused=f"{limit.words()}: {limit.reason}")
    if limit.until_ms / 1000 > now + rules.longest:
        return Waits(refused=f"{limit.words()}, longer than rate_limit_wait ({rules.longest:g} s): {limit.reason}")
    return Waits(limit.words(), min(seconds, _LIMIT_LOOK), limited=limit)
