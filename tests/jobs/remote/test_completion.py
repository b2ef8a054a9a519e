"""Completion checkers: ours by what a place tells of a pull request, anybody's in their place."""

from __future__ import annotations

import pytest

from taskyard import register_completion_checker
from taskyard.errors import BadValue
from taskyard.jobs.remote.completion import closed_pull_request, load_checker, open_pull_request


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
    assert load_checker("autofix-pr") is closed_pull_request


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
    assert load_checker("background-pr") is open_pull_request


@pytest.mark.req("K-03")
def test_a_package_publishes_a_checker_for_every_process() -> None:
    from completion import merged

    assert load_checker("remote-agent") is merged


def test_what_cannot_be_called_is_no_checker() -> None:
    with pytest.raises(BadValue, match="something to call"):
        register_completion_checker("remote-agent", "merged")  # type: ignore[arg-type]
    with pytest.raises(BadValue, match="one of remote-agent, ultraplan"):
        register_completion_checker("party", open_pull_request)


@pytest.mark.req("K-03")
def test_a_checker_that_no_other_process_can_load_is_refused() -> None:
    def inner(metadata: object) -> str | None:
        return None

    with pytest.raises(BadValue, match="at the top level of a module"):
        register_completion_checker("ultraplan", inner)
    with pytest.raises(BadValue, match="at the top level of a module"):
        register_completion_checker("ultraplan", lambda _: None)
    with pytest.raises(BadValue, match="at the top level of a module"):
        register_completion_checker("ultraplan", {"a": "b"}.get)  # type: ignore[arg-type]
