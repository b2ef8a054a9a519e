"""Which of an agent's options an answer means."""

from __future__ import annotations

import pytest

from taskyard.engines.acp.permission import Option, chosen, question

OPTIONS = [
    Option("always", "Always allow", "allow_always"),
    Option("2x", "Allow once", "allow_once"),
    Option("1", "Reject", "reject_once"),
]


@pytest.mark.req("O-08")
@pytest.mark.parametrize(
    ("answer", "name"),
    [
        ("y", "Allow once"), ("YES ", "Allow once"), ("n", "Reject"), ("1", "Always allow"), ("3", "Reject"),
        ("always", "Always allow"), ("allow once", "Allow once"), ("2X", "Allow once"),
    ],
)  # fmt: skip
def test_an_answer_is_a_number_an_id_a_name_or_yes_or_no(answer: str, name: str) -> None:
    found = chosen(answer, OPTIONS)
    assert found is not None
    assert found.name == name


@pytest.mark.req("O-08")
@pytest.mark.parametrize("answer", ["", "4", "0", "perhaps", "allow", "٣"])
def test_an_answer_that_is_none_of_them_allows_nothing(answer: str) -> None:
    found = chosen(answer, OPTIONS[2:])
    assert found is None


@pytest.mark.req("O-08")
def test_a_question_is_short_and_harmless_whatever_the_agent_writes() -> None:
    asked = question("\x1b[2J" + "x" * 10_000, [Option(str(n), "y" * 500, "allow_once") for n in range(100)])
    assert "\x1b" not in asked
    assert len(asked) <= 2_000
