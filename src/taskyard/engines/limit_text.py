"""
Rate limits in the words of providers and of agent programs: whether a text is about one, and when it lifts. Pure.

    You've hit your 5-hour limit · resets 4:50am (UTC)          a time of day, in the zone it names
    Claude AI usage limit reached|1763355000                    an epoch second
    You've hit your usage limit. Try again in 3 days 2 hours.   a duration
    429 Too Many Requests … Retry-After: 20                     seconds
    API Error: 529 overloaded                                   no time: the caller backs off
"""

from __future__ import annotations

import re

from taskyard.engines.engine import RateLimit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import tzinfo

#: What says that a request was refused for the number of requests, and not for what was asked.
_LIMITED = re.compile(
    r"(?<![\w.])(?:429|529)(?![\w.]*\d)|rate.?limit|too many requests|overloaded|resource.?exhausted"
    r"|quota (?:exceeded|reached)|exceeded your (?:current )?(?:quota|usage)|usage limit|limiting requests"
    r"|hit your [\w\- ]{0,40}limit"
    r"|limit reached",
    re.IGNORECASE,
)

#: What no wait ends, unless it names a time: somebody has to pay.
_BILLING = re.compile(r"insufficient_quota|billing|credit balance|payment required", re.IGNORECASE)

_EPOCH = re.compile(r"\|\s*(\d{10})\b")
_CLOCK = re.compile(
    r"\b(?:resets?|try again|retry)(?: at| on)?\s+(?:(?P<month>[A-Z][a-z]{2})[a-z]* (?P<day>\d{1,2})(?:st|nd|rd|th)?"
    r"(?:, \d{4})?,?(?: at)? )?(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))?\s*(?P<half>[ap]m)?"
    r"(?:\s*\((?P<zone>[\w/+-]{1,40})\))?",
    re.IGNORECASE,
)
_AFTER = re.compile(
    r"\b(?:retry[- _]?after|retry[- _]?delay|(?:try again|retry|resets?) in)\W{0,4}(?P<amount>\d[\w .,]{0,60})",
    re.IGNORECASE,
)
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(milliseconds?|ms|minutes?|mins?|m|seconds?|secs?|s|hours?|hrs?|h|days?|d)?")
_BETWEEN = re.compile(r"[ ,]*(?:and )?")
_UNITS = {"m": 60.0, "h": 3600.0, "d": 86_400.0}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")

#: Characters of a reason that are kept, and of a text that are looked at.
LONGEST_REASON, _LONGEST_TEXT = 300, 10_000

_DAY = 86_400

#: A time of day that passed so many seconds ago is that of today: clocks differ, and messages take their time.
_JUST_PASSED = 900.0

#: No provider refuses for longer, in seconds: what says so is no time of ours.
_FARTHEST = 60 * _DAY


def limit_in(text: str, *, provider: str, now: float) -> RateLimit | None:
    """The rate limit that a text is about; None if it is about something else.

    Args:
        text: An error, as it was printed.
        provider: Who refused, as people know it.
        now: Epoch seconds: times of day are the next ones after it.
    """
    text = text[:_LONGEST_TEXT]
    if _LIMITED.search(text) is None:
        return None
    until = lifts_at(text, now=now)
    if until is None and _BILLING.search(text) is not None:
        return None
    reason = " ".join(text.split())[:LONGEST_REASON]
    return RateLimit(provider, reason, None if until is None else round(until * 1000))


def lifts_at(text: str, *, now: float) -> float | None:
    """When a limit lifts by what a text says, in epoch seconds; None if it names no time that can be.

    >>> lifts_at("resets 4:50am (UTC)", now=4 * 3600), lifts_at("Retry-After: 20", now=100.0)
    (17400.0, 120.0)
    """
    if found := _EPOCH.search(text):
        return _sound(float(found[1]), now)
    if found := _AFTER.search(text):
        return _sound(now + _seconds(found["amount"]), now)
    if found := _CLOCK.search(text):
        if found["half"] is None and found["minute"] is None:
            return None  # a bare number is no time of day
        return _sound(_at_clock(found, now), now)
    return None


def _sound(moment: float | None, now: float) -> float | None:
    return moment if moment is not None and now < moment < now + _FARTHEST else None


def _seconds(amount: str) -> float:
    """`20`, `24.5s`, `3 days 2 hours 5 minutes`, `1h30m`; what follows in other words is left out."""
    total, at = 0.0, 0
    while found := _PART.match(amount, at):
        unit = (found[2] or "s").lower()
        scale = 0.001 if unit.startswith(("ms", "milli")) else _UNITS.get(unit[0], 1.0)
        total += float(found[1]) * scale
        at = found.end()
        if found[2] is None:
            break
        between = _BETWEEN.match(amount, at)
        at = between.end() if between is not None else at
    return total


def _at_clock(found: re.Match[str], now: float) -> float | None:
    """The next such time of day in the zone that is named, else in this machine's."""
    import datetime

    hour, minute = int(found["hour"]), int(found["minute"] or 0)
    if found["half"]:
        hour = hour % 12 + (12 if found["half"].lower() == "pm" else 0)
    if hour > 23 or minute > 59:
        return None
    zone = _zone(found["zone"])
    today = datetime.datetime.fromtimestamp(now, zone)
    try:
        if found["month"]:
            month = _MONTHS.index(found["month"].lower()) + 1
            at = today.replace(month=month, day=int(found["day"]), hour=hour, minute=minute, second=0, microsecond=0)
            at = at if at.timestamp() > now else at.replace(year=at.year + 1)
        else:
            at = today.replace(hour=hour, minute=minute, second=0, microsecond=0)
            if now - _JUST_PASSED < at.timestamp() <= now:
                return None
            at = at if at.timestamp() > now else at + datetime.timedelta(days=1)
    except ValueError:
        return None  # no such day
    return at.timestamp()


def _zone(name: str | None) -> tzinfo | None:
    import datetime

    if name is None:
        return None
    if name.upper() in ("UTC", "GMT", "Z"):
        return datetime.UTC
    import zoneinfo

    try:
        return zoneinfo.ZoneInfo(name)
    except (OSError, ValueError):
        return None  # not known here: most people's machines are in the zone they live in
