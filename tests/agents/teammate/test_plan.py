"""What an answer to a plan means: pure."""

from __future__ import annotations

import pytest

from taskyard.agents.mail import Message
from taskyard.agents.teammate.rules import (
    LONGEST_PLAN,
    PLAN_RESPONSE,
    PlanVerdict,
    parse_verdict,
    plan_request,
)


def said(text: str = "", kind: str = "message", **data: object) -> Message:
    return Message("m", "lead", "ada", "crew", kind, text, data=data)


@pytest.mark.req("M-02", "K-04")
def test_only_a_clear_yes_about_this_plan_approves_it() -> None:
    assert parse_verdict(said(kind=PLAN_RESPONSE, requestId="r", approved=True), "r") == PlanVerdict(True)
    assert parse_verdict(said(kind=PLAN_RESPONSE, approved=True), "r") == PlanVerdict(True)
    assert parse_verdict(said(kind=PLAN_RESPONSE, requestId="r", approved="true", feedback="hm"), "r") == PlanVerdict(
        False, "hm"
    )
    assert parse_verdict(said(kind=PLAN_RESPONSE, requestId="r"), "r") == PlanVerdict(False)
    assert parse_verdict(said(kind=PLAN_RESPONSE, requestId="older", approved=True), "r") is None
    assert parse_verdict(said(kind="idle_notification"), "r") is None


@pytest.mark.req("M-02")
@pytest.mark.parametrize(
    ("text", "approved"), [("Approved.", True), ("ok", True), ("Yes!", True), ("yes, but", False), ("no", False)]
)
def test_a_lead_may_answer_in_plain_words(text: str, approved: bool) -> None:
    assert parse_verdict(said(text), "r") == PlanVerdict(approved, text)


@pytest.mark.req("M-02")
def test_a_plan_is_mailed_in_claude_codes_fields_and_bounded() -> None:
    asked = plan_request("ada", "x" * 1_000_000, request_id="r", task_id="7", at=0)
    assert {name: asked[name] for name in ("from", "timestamp", "requestId", "taskId")} == {
        "from": "ada",
        "timestamp": "1970-01-01T00:00:00.000Z",
        "requestId": "r",
        "taskId": "7",
    }
    assert len(str(asked["planContent"])) == LONGEST_PLAN
