"""The review in what an ultrareview said, wherever it stands and however it was cut."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.jobs.remote.completion import CLOSE_TAG, OPEN_TAG, extract_review

#: Text without anything that looks like a tag, and with something to see in it.
TEXTS = st.text(st.characters(exclude_characters="<>", exclude_categories=["Cs"])).filter(str.strip)


def hook(text: str, subtype: str = "hook_progress") -> str:
    return json.dumps({"type": "system", "subtype": subtype, "stdout": text})


def assistant(text: str) -> str:
    return json.dumps({"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}})


@pytest.mark.req("K-03")
@pytest.mark.parametrize(
    ("lines", "review"),
    [
        ([], ""),
        (["plain text", "{broken", '{"type": "assistant"}', "[]"], ""),
        ([assistant("No tags here.")], ""),
        ([assistant(f"Here: {OPEN_TAG} Two bugs. {CLOSE_TAG} Bye.")], "Two bugs."),
        ([hook("from the hook"), assistant(f"{OPEN_TAG}from the agent{CLOSE_TAG}")], "from the hook"),
        ([hook(f"noise {OPEN_TAG}tagged{CLOSE_TAG}"), assistant(f"{OPEN_TAG}agent{CLOSE_TAG}")], "tagged"),
        ([hook("other", "hook_response"), assistant(f"{OPEN_TAG}agent{CLOSE_TAG}")], "agent"),
        ([assistant(f"{OPEN_TAG}first{CLOSE_TAG}"), assistant(f"{OPEN_TAG}second{CLOSE_TAG}")], "second"),
        ([json.dumps({"type": "assistant", "text": f"{OPEN_TAG}short form{CLOSE_TAG}"})], "short form"),
    ],
)
def test_the_hook_comes_first_then_the_tags_of_a_message(lines: list[str], review: str) -> None:
    assert extract_review(lines) == review


@pytest.mark.req("K-03")
@given(text=TEXTS, before=TEXTS, after=TEXTS, cut=st.integers(min_value=0, max_value=200), by_hook=st.booleans())
def test_a_review_that_was_cut_in_two_is_put_together(
    text: str, before: str, after: str, cut: int, by_hook: bool
) -> None:
    whole = f"{before}{OPEN_TAG}{text}{CLOSE_TAG}{after}"
    at = min(cut, len(whole))
    say = hook if by_hook else assistant

    assert extract_review([say(whole[:at]), say(whole[at:])]) == text.strip()


@pytest.mark.req("K-03")
@given(text=TEXTS, noise=st.lists(st.text(), max_size=5))
def test_whatever_stands_around_it_does_not_hide_it(text: str, noise: list[str]) -> None:
    assert extract_review([*noise, assistant(f"{OPEN_TAG}{text}{CLOSE_TAG}"), *noise]) == text.strip()


@pytest.mark.req("K-03")
@given(lines=st.lists(st.one_of(st.text(), st.text().map(hook), st.text().map(assistant))))
def test_nothing_that_is_said_breaks_it(lines: list[str]) -> None:
    assert isinstance(extract_review(lines), str)
