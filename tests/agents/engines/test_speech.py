"""What an agent says as it comes, and what of it is its answer."""

from __future__ import annotations

import pytest

from support.watching import Watched
from taskyard.agents.engines.engine import LONGEST_ANSWER, AnswerBuffer


@pytest.mark.req("K-02")
def test_pieces_are_one_line_until_something_else_comes() -> None:
    watched = Watched()
    answer_buffer = AnswerBuffer(watched)
    for piece in ("Hm", "m."):
        answer_buffer.says(piece, kind="thought")
    for piece in ("I will ", "", "look."):
        answer_buffer.says(piece)
    answer_buffer.acts()
    answer_buffer.says("It is there.")
    answer_buffer.pause()
    assert [(line["type"], line["text"]) for line in watched.lines] == [
        ("thought", "Hmm."), ("assistant", "I will look."), ("assistant", "It is there."),
    ]  # fmt: skip
    assert answer_buffer.answer == "It is there."


@pytest.mark.req("K-02")
def test_one_that_says_nothing_after_its_last_act_has_answered_before() -> None:
    answer_buffer = AnswerBuffer(Watched())
    answer_buffer.says("Done, I only tidy up.")
    answer_buffer.acts()
    answer_buffer.says(" \n")
    answer_buffer.acts()
    assert answer_buffer.answer == "Done, I only tidy up."


@pytest.mark.req("K-02")
def test_however_much_it_says_lines_and_answer_are_bounded() -> None:
    watched = Watched()
    answer_buffer = AnswerBuffer(watched)
    for _ in range(50):
        answer_buffer.says("x" * 9_999)
    answer_buffer.pause()
    assert max(len(text) for text in watched.said("assistant")) <= 8_000
    assert sum(len(text) for text in watched.said("assistant")) == 50 * 9_999
    assert len(answer_buffer.answer) == LONGEST_ANSWER
