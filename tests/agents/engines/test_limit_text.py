"""Rate limits in the words of providers and programs."""

from __future__ import annotations

import pytest

from taskyard.agents.engines.provider import parse_rate_limit

pytestmark = pytest.mark.req("Q-01")

#: 2025-11-17 04:30:00 UTC
NOW = 1763353800.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("You've hit your 5-hour limit · resets 4:50am (UTC)", 20 * 60),
        ("You've hit your session limit · resets 7am (Europe/Berlin)", 90 * 60),
        ("You've hit your weekly limit · resets Nov 20, 4pm (UTC)", 3 * 86_400 + 11.5 * 3600),
        ("Claude AI usage limit reached|1763357400", 3600),
        ("You've hit your usage limit. Try again in 3 days 2 hours 5 minutes.", 3 * 86_400 + 2 * 3600 + 300),
        ("429 Too Many Requests\nRetry-After: 20", 20),
        ('{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"32s"}]}}', 32),
        ("You exceeded your current quota. Please retry in 24.5s.", 24.5),
        ("rate limit reached, try again in 1h30m", 5400),
        ("API Error: 529 overloaded", None),
        ("Server is temporarily limiting requests (not your usage limit)", None),
        ("rate limited; resets 4:29am (UTC)", None),  # a minute ago: now, not tomorrow
        ("rate limited until 99:99", None),
        ("rate limit: retry after 99999999999999", None),
    ],
)
def test_a_limit_is_known_with_the_time_at_which_it_lifts(text: str, seconds: float | None) -> None:
    limit = parse_rate_limit(text, provider="acme", now=NOW)
    assert limit is not None and limit.provider == "acme"
    assert limit.until_ms == (None if seconds is None else (NOW + seconds) * 1000)


@pytest.mark.parametrize(
    "text",
    [
        "", "exit code 1", "line 4290 of 1529.4", "it took longer than 60 s", "resets 4:50am (UTC)",
        "insufficient_quota: 429, check your plan and billing details", "Your credit balance is too low: 429",
    ],
)  # fmt: skip
def test_what_is_no_limit_or_lifts_by_no_wait_is_none(text: str) -> None:
    assert parse_rate_limit(text, provider="acme", now=NOW) is None


def test_hostile_text_takes_no_time() -> None:
    for text in ("retry in " + "1 " * 500_000, "resets " * 200_000, "rate limit " + "9" * 1_000_000, "429 " * 300_000):
        parse_rate_limit(text, provider="acme", now=NOW)
