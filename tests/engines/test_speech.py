"""What an agent says as it comes, and what of it is its answer."""

from __future__ import annotations

import pytest

from support.watching import Watched
from taskyard.engines.speech import LONGEST_ANSWER, Speech


@pytest.mark.req("K-02")
def test_pieces_are_one_line_until_something_else_comes() -> None:
    watched = Watched()
    speech = Speech(watched)
    for piece in ("Hm", "m."):
        speech.says(piece, kind="thought")
    for piece in ("I will ", "", "look."):
        speech.says(piece)
    speech.acts()
    speech.says("It is there.")
    speech.pause()
    assert [(line["type"], line["text"]) for line in watched.lines] == [
        ("thought", "Hmm."), ("assistant", "I will look."), ("assistant", "It is there."),
    ]  # fmt: skip
    assert speech.answer == "It is there."


@pytest.mark.req("K-02")
def test_one_that_says_nothing_after_its_last_act_has_answered_before() -> None:
    speech = Speech(Watched())
    speech.says("Done, I only tidy up.")
    speech.acts()
    speech.says(" \n")
    speech.acts()
    assert speech.answer == "Done, I only tidy up."


@pytest.mark.req("K-02")
def test_however_much_it_says_lines_and_answer_are_bounded() -> None:
    watched = Watched()
    speech = Speech(watched)
    for _ in range(50):
        speech.says("x" * 9_999)
    speech.pause()
    assert max(len(text) for text in watched.said("assistant")) <= 8_000
    assert sum(len(text) for text in watched.said("assistant")) == 50 * 9_999
    assert len(speech.answer) == LONGEST_ANSWER
