"""Which errors of Claude Code are rate limits, when they lift, and which can be retried: pure."""

from __future__ import annotations

import re

from taskyard.engines.engine import RateLimit
from taskyard.harmless import safe
from taskyard.shapes import as_list, as_object, as_text
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

PROVIDER = "anthropic"

#: A limit that lifts later than this (ms) is not believed: the longest window known is a month.
_FARTHEST_MS = 32 * 86_400_000

#: Characters of an error that are kept.
_LONGEST = 1_000

_RATE_KINDS = ("rate_limit", "rate_limit_error", "overloaded", "overloaded_error", "usage_limit_reached")
_RETRYABLE_KINDS = ("server_error", "api_error", "connection_failed", "timeout_error", "malformed_tool_use_exhausted")
_FINAL_KINDS = (
    "billing_error",
    "authentication_failed",
    "authentication_error",
    "permission_error",
    "oauth_org_not_allowed",
)

_RATE_STATUS = (429, 529)
_RETRYABLE_STATUS = (408, 409)

_FINAL_TEXT = re.compile(r"credit balance is too low|invalid api key|please run /login|not logged in", re.I)
_RATE_TEXT = re.compile(
    r"hit your .{0,40}\blimit\b|usage limit reached|temporarily limiting requests|rate.?limit|\boverloaded\b"
    r"|(?<![\w.])(?:429|529)(?![\w.]*\d)",
    re.I,
)
_RETRYABLE_TEXT = re.compile(
    r"usually temporary|connection (?:lost|error|closed|reset)|mid-response|timed? ?out|(?<![\w.])50[0234](?![\w.]*\d)",
    re.I,
)

_EPOCH = re.compile(r"limit reached\|(\d{10,13})(?!\d)")
_RESETS = re.compile(
    r"resets?\s+(?:at\s+)?(?:(?P<month>[A-Z][a-z]{2})[a-z]*\.?\s+(?P<day>\d{1,2})(?:,|\s+at)?\s+)?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))?\s*(?P<half>am|pm)?\s*(?:\((?P<zone>[^()]{1,60})\))?"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class Fault(NamedTuple):
    """Why a turn failed, as the program reports it."""

    text: str
    status: int | None = None  #: of the API's answer
    kinds: tuple[str, ...] = ()  #: the program's and the API's names for it
    resets_ms: int | None = None  #: when a rejected quota lifts, by its own event


class Verdict(NamedTuple):
    """What a failed turn means."""

    rate_limit: RateLimit | None = None
    is_retryable: bool = False


def judge(fault: Fault, *, now_ms: int) -> Verdict:
    """Whether the provider limits requests, a retry may succeed, or neither."""
    if _has(fault, _FINAL_KINDS) or _FINAL_TEXT.search(fault.text):
        return Verdict()
    if fault.status in _RATE_STATUS or _has(fault, _RATE_KINDS) or _is(fault, _RATE_TEXT):
        reason = safe(fault.text.strip() or "rate limit")[:_LONGEST]
        until = believed(fault.resets_ms, now_ms) or reset_time(fault.text, now_ms=now_ms)
        return Verdict(RateLimit(PROVIDER, reason, until), is_retryable=True)
    is_server = fault.status is not None and (fault.status >= 500 or fault.status in _RETRYABLE_STATUS)
    return Verdict(is_retryable=is_server or _has(fault, _RETRYABLE_KINDS) or _is(fault, _RETRYABLE_TEXT))


def reset_time(text: str, *, now_ms: int) -> int | None:
    """When a limit lifts (epoch ms) by its message: the next such time in the time zone it names.

    >>> reset_time("You've hit your 5-hour limit · resets 4:50am (UTC)", now_ms=1_700_000_000_000)
    1700023800000
    """
    if (found := _EPOCH.search(text)) is not None:
        return believed(int(found[1]) * (1 if len(found[1]) > 11 else 1000), now_ms)
    found = _RESETS.search(text)
    if found is None or (found["half"] is None and found["minute"] is None):
        return None
    from datetime import UTC, datetime, timedelta
    from zoneinfo import ZoneInfo

    hour = int(found["hour"]) % 12 + 12 * (found["half"] == "pm") if found["half"] else int(found["hour"])
    try:
        zone = ZoneInfo(found["zone"]) if found["zone"] else datetime.now(UTC).astimezone().tzinfo
        now = datetime.fromtimestamp(now_ms / 1000, zone)
        at = now.replace(hour=hour, minute=int(found["minute"] or 0), second=0, microsecond=0, fold=0)
        if found["month"]:
            at = _on_date(at, _MONTHS.index(found["month"]) + 1, int(found["day"]), now)
        elif at <= now:
            at = (at.replace(tzinfo=None) + timedelta(days=1)).replace(tzinfo=zone)
        return believed(round(at.timestamp() * 1000), now_ms)
    except (ValueError, OSError, OverflowError, KeyError):  # no such time, month or time zone
        return None


def _on_date(at: datetime, month: int, day: int, now: datetime) -> datetime:
    at = at.replace(month=month, day=day)
    return at if at > now else at.replace(year=at.year + 1)


def believed(moment_ms: int | None, now_ms: int) -> int | None:
    """A time at which a limit can lift; None if it is past or too far away."""
    return moment_ms if moment_ms is not None and now_ms < moment_ms <= now_ms + _FARTHEST_MS else None


def rejected_until(info: Mapping[str, object]) -> int | None:
    """When a quota that rejects requests lifts (epoch ms), by `rate_limit_info`; 0 if that is not said."""
    if as_text(info.get("status")) != "rejected":
        return None
    at = info.get("resetsAt")
    if not isinstance(at, (int, float)) or isinstance(at, bool) or not 0 < at < 1e14:
        return 0
    return round(at if at > 1e11 else at * 1000)


def fault_of(result: Mapping[str, object], spoken: Mapping[str, object], resets_ms: int | None) -> Fault:
    """What a failed result says, with the error message printed before it (`spoken`)."""
    listed = "; ".join(as_text(one) for one in as_list(result.get("errors")) or [])
    text = as_text(result.get("result")) or listed or as_text(result.get("subtype")) or "it failed"
    status = next(
        (at for at in (result.get("api_error_status"), spoken.get("api_error_status")) if type(at) is int), None
    )
    names = ("api_error_type", "api_error", "error")
    kinds = tuple(name for line in (result, spoken) for key in names if (name := as_text(line.get(key))))
    info = as_object((as_object(spoken.get("api_error_params")) or {}).get("rate_limit_info")) or {}
    return Fault(text[:_LONGEST], status, kinds, rejected_until(info) or resets_ms or None)


def _has(fault: Fault, kinds: tuple[str, ...]) -> bool:
    return any(kind in kinds for kind in fault.kinds)


def _is(fault: Fault, text: re.Pattern[str]) -> bool:
    """Whether an error that names neither status nor kind reads like that."""
    return fault.status is None and not fault.kinds and text.search(fault.text) is not None
