"""Idleness is told at its edges: pure."""

from __future__ import annotations

import pytest

from taskyard.agents.teammate.rules import IdleState, idle_notification


@pytest.mark.req("M-04")
def test_only_a_change_is_news() -> None:
    told: list[bool] = []
    now = IdleState()
    for idle in (True, True, False, False, True):
        if now.is_news(idle=idle):
            told.append(idle)
            now = now.after(idle=idle)
    assert told == [True, False, True]


@pytest.mark.req("M-02")
def test_what_the_lead_is_mailed_is_in_claude_codes_fields_and_bounded() -> None:
    assert idle_notification("ada", at=0, result="") == {
        "from": "ada",
        "timestamp": "1970-01-01T00:00:00.000Z",
        "idleReason": "available",
    }
    assert len(str(idle_notification("ada", at=0, result="x" * 10_000)["result"])) == 500
