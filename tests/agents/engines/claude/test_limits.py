"""Errors of Claude Code as it words them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from taskyard.agents.engines.claude import classify_fault, parse_fault, rejected_until, reset_time

NOW = datetime(2026, 11, 17, 3, 0, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1000)


def ms(*when: int, zone: str = "UTC") -> int:
    return int(datetime(*when, tzinfo=ZoneInfo(zone)).timestamp() * 1000)  # type: ignore[misc, arg-type]  # numbers


@pytest.mark.req("Q-01")
@pytest.mark.parametrize(
    ("text", "until"),
    [
        ("You've hit your 5-hour limit · resets 4:50am (UTC)", ms(2026, 11, 17, 4, 50)),
        ("You've hit your 5-hour limit · resets 8am (UTC)", ms(2026, 11, 17, 8)),
        ("You've hit your limit · resets 2am (UTC)", ms(2026, 11, 18, 2)),
        ("You've hit your limit · resets 12am (UTC)", ms(2026, 11, 18, 0)),
        ("You've hit your limit · resets 12:30pm (UTC)", ms(2026, 11, 17, 12, 30)),
        ("You've hit your limit · resets 11pm (America/New_York)", ms(2026, 11, 16, 23, zone="America/New_York")),
        ("You've hit your limit · resets 9pm (America/New_York)", ms(2026, 11, 17, 21, zone="America/New_York")),
        (
            "You've hit your weekly limit · resets Nov 20, 3pm (Europe/Berlin)",
            ms(2026, 11, 20, 15, zone="Europe/Berlin"),
        ),
        ("You've hit your weekly limit · resets Nov 20 at 3:15pm (UTC)", ms(2026, 11, 20, 15, 15)),
        (f"Claude AI usage limit reached|{NOW_MS // 1000 + 60}", NOW_MS + 60_000),
        ("You've hit your limit · resets 4:50am (Nowhere/Land)", None),
        ("You've hit your limit · resets 4:50am (../../etc/passwd)", None),
        ("You've hit your limit · resets 99:99am (UTC)", None),
        ("You've hit your limit · resets Foo 20, 3pm (UTC)", None),
        ("You've hit your limit · resets Feb 30, 3pm (UTC)", None),
        ("Claude AI usage limit reached|99999999999", None),
        ("You've hit your limit", None),
        ("resets 5", None),
    ],
)
def test_a_reset_time_is_its_next_occurrence_in_the_zone_it_names(text: str, until: int | None) -> None:
    assert reset_time(text, now_ms=NOW_MS) == until


@pytest.mark.req("Q-01")
def test_a_reset_time_without_a_day_lies_ahead_across_a_change_of_the_clocks() -> None:
    before = ms(2026, 10, 31, 23, zone="America/New_York")  # the clocks go back in that night
    assert reset_time("resets 10pm (America/New_York)", now_ms=before) == ms(2026, 11, 1, 22, zone="America/New_York")


def result(**fields: Any) -> dict[str, Any]:
    return {"type": "result", "subtype": "success", "is_error": True, "terminal_reason": "api_error", **fields}


@pytest.mark.req("Q-01")
@pytest.mark.parametrize(
    ("fields", "spoken", "is_limit", "is_retryable"),
    [
        ({"result": "API Error: Request rejected (429)", "api_error_status": 429}, {"error": "rate_limit"}, True, True),
        ({"result": "API Error: 529 Overloaded.", "api_error_status": 529}, {"error": "server_error"}, True, True),
        ({"result": "API Error: 500 Internal", "api_error_status": 500}, {"error": "server_error"}, False, True),
        (
            {"result": "API Error: Connection lost"},
            {"error": "server_error", "api_error": "connection_failed"},
            False,
            True,
        ),
        ({"result": "Credit balance is too low", "api_error_status": 400}, {"error": "billing_error"}, False, False),
        ({"result": "Credit balance is too low", "api_error_status": 429}, {}, False, False),
        ({"result": "Invalid API key", "api_error_status": 401}, {"error": "authentication_failed"}, False, False),
        ({"result": "Prompt is too long", "api_error_status": 400}, {"error": "invalid_request"}, False, False),
        ({"result": "You've hit your 5-hour limit · resets 4:50am (UTC)"}, {}, True, True),
        ({"result": "API Error: Server is temporarily limiting requests (not your usage limit)"}, {}, True, True),
        ({"result": "API Error: 500 … usually temporary"}, {}, False, True),
        ({"subtype": "error_during_execution", "errors": ["No conversation found"]}, {}, False, False),
        ({"subtype": "error_max_turns"}, {}, False, False),
    ],
)
def test_errors_are_limits_retryable_or_final(
    fields: dict[str, Any], spoken: dict[str, Any], is_limit: bool, is_retryable: bool
) -> None:
    verdict = classify_fault(parse_fault(result(**fields), spoken, None), now_ms=NOW_MS)
    assert (verdict.rate_limit is not None, verdict.is_retryable) == (is_limit, is_retryable)


@pytest.mark.req("Q-01")
def test_the_time_of_the_event_goes_before_that_of_the_text() -> None:
    text = "You've hit your 5-hour limit · resets 5am (UTC)"
    info = {"status": "rejected", "resetsAt": NOW_MS // 1000 + 1234, "rateLimitType": "five_hour"}
    spoken = {"error": "rate_limit", "api_error_params": {"rate_limit_info": info}}
    for fault in (
        parse_fault(result(result=text), spoken, None),
        parse_fault(result(result=text), {}, rejected_until(info)),
    ):
        limit = classify_fault(fault, now_ms=NOW_MS).rate_limit
        assert limit is not None
        assert limit.until_ms == NOW_MS + 1_234_000


@pytest.mark.req("Q-01")
@pytest.mark.parametrize(
    ("info", "until"),
    [
        ({"status": "allowed", "resetsAt": 1}, None),
        ({"status": "allowed_warning", "resetsAt": 1}, None),
        ({"status": "rejected"}, 0),
        ({"status": "rejected", "resetsAt": "soon"}, 0),
        ({"status": "rejected", "resetsAt": True}, 0),
        ({"status": "rejected", "resetsAt": float("inf")}, 0),
        ({"status": "rejected", "resetsAt": 1_800_000_000}, 1_800_000_000_000),
    ],
)
def test_only_a_rejecting_quota_says_until_when(info: dict[str, Any], until: int | None) -> None:
    assert rejected_until(info) == until


def test_a_limit_without_a_believable_time_has_none() -> None:
    far = parse_fault(result(result="You've hit your limit"), {}, NOW_MS + 90 * 86_400_000)
    limit = classify_fault(far, now_ms=NOW_MS).rate_limit
    assert limit is not None
    assert limit.until_ms is None


def test_the_reason_cannot_act_on_a_terminal() -> None:
    limit = classify_fault(
        parse_fault(result(result="hit your limit \x1b[2J", api_error_status=429), {}, None), now_ms=NOW_MS
    ).rate_limit
    assert limit is not None
    assert "\x1b" not in limit.reason
