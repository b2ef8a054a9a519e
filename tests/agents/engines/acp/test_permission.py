"""Which of an agent's options an answer means."""

from __future__ import annotations

import pytest

from taskyard.agents.engines.acp_session import Option, format_question, is_permitted, parse_answer

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
    found = parse_answer(answer, OPTIONS)
    assert found is not None
    assert found.name == name


@pytest.mark.req("O-08")
@pytest.mark.parametrize("answer", ["", "4", "0", "perhaps", "allow", "٣"])
def test_an_answer_that_is_none_of_them_allows_nothing(answer: str) -> None:
    found = parse_answer(answer, OPTIONS[2:])
    assert found is None


@pytest.mark.req("O-08")
def test_a_question_is_short_and_harmless_whatever_the_agent_writes() -> None:
    asked = format_question("\x1b[2J" + "x" * 10_000, [Option(str(n), "y" * 500, "allow_once") for n in range(100)])
    assert "\x1b" not in asked
    assert len(asked) <= 2_000


@pytest.mark.req("O-08")
def test_what_an_option_grants_is_shown_whole_or_the_option_is_not_offered() -> None:
    grants = f"Always allow {'x' * 200} and everything below /srv"
    options = [Option("a", grants, "allow_always"), Option("b", "y" * 5_000, "allow_always"), OPTIONS[1], OPTIONS[2]]

    assert format_question("Run make", options).splitlines()[1:] == [f"1. {grants}", "2. Allow once", "3. Reject"]
    assert parse_answer("2", options) == OPTIONS[1], "numbers are those that were shown"


@pytest.mark.req("Q-03")
def test_a_request_that_is_cut_says_so() -> None:
    assert format_question("x" * 1_200, OPTIONS).startswith("x" * 1_000 + "… (200 more characters)\n")


@pytest.mark.req("Q-03")
@pytest.mark.parametrize(
    ("mode", "kind", "path", "is_allowed"),
    [
        ("", "edit", "/w/a", False), ("ask", "read", "/w/a", False), ("edit", "edit", "/w/a", True),
        ("edit", "edit", "a", True), ("edit", "edit", "/etc/passwd", False), ("edit", "edit", "/w/../x", False),
        ("edit", "execute", "", False), ("work", "execute", "", True), ("work", "other", "", False),
        ("work", "fetch", "", False), ("all", "other", "/etc/passwd", True),
    ],
)  # fmt: skip
def test_a_mode_allows_these_kinds_of_calls_without_asking(mode: str, kind: str, path: str, is_allowed: bool) -> None:
    assert is_permitted(mode, kind, [path] if path else [], "/w") is is_allowed
