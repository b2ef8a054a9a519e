"""Completion checkers: ours by what a place tells of a pull request, anybody's in their place."""

from __future__ import annotations

import pytest

from taskyard import register_completion_checker
from taskyard.errors import BadValue
from taskyard.remote import completion
from taskyard.remote.completion import checker_of, closed_pull_request, open_pull_request


@pytest.fixture(autouse=True)
def nobody_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion, "_registered", {})


@pytest.mark.req("K-03")
@pytest.mark.parametrize(
    ("metadata", "text"),
    [
        ({}, None),
        ({"state": "merged"}, None),
        ({"prState": "open"}, None),
        ({"prState": "MERGED", "prNumber": 7}, "Pull request #7 was merged."),
        ({"pullRequest": {"merged": True, "url": "https://x/7"}}, "Pull request https://x/7 was merged."),
        ({"pr": {"state": "closed"}}, "The pull request was closed."),
        ({"pr": "7"}, None),
    ],
)
def test_autofix_is_complete_when_its_pull_request_is_merged_or_closed(
    metadata: dict[str, object], text: str | None
) -> None:
    assert closed_pull_request(metadata) == text
    assert checker_of("autofix-pr") is closed_pull_request


@pytest.mark.req("K-03")
@pytest.mark.parametrize(
    ("metadata", "text"),
    [
        ({}, None),
        ({"prUrl": "https://x/7"}, "Pull request https://x/7 is open."),
        ({"prState": "open", "prNumber": "7"}, "Pull request #7 is open."),
        ({"prState": "merged"}, "The pull request was merged."),
    ],
)
def test_a_background_pull_request_is_complete_when_it_is_there(metadata: dict[str, object], text: str | None) -> None:
    assert open_pull_request(metadata) == text
    assert checker_of("background-pr") is open_pull_request


@pytest.mark.req("K-03")
def test_who_registers_a_checker_is_asked_in_place_of_ours() -> None:
    def mine(metadata: object) -> str | None:
        return None

    assert checker_of("ultraplan") is None
    register_completion_checker("ultraplan", mine)
    register_completion_checker("autofix-pr", mine)
    assert checker_of("ultraplan") is checker_of("autofix-pr") is mine


@pytest.mark.req("K-03")
def test_a_package_publishes_a_checker_for_every_process() -> None:
    from completion import merged

    assert checker_of("remote-agent") is merged


def test_what_cannot_be_called_is_no_checker() -> None:
    with pytest.raises(BadValue, match="something to call"):
        register_completion_checker("remote-agent", "merged")  # type: ignore[arg-type]
    with pytest.raises(BadValue, match="one of remote-agent, ultraplan"):
        register_completion_checker("party", lambda _: None)
