"""Values from outside."""

from __future__ import annotations

import pytest

from taskyard.errors import BadValue, TaskyardError, UsageError
from taskyard.ui.web.values import PARAM_KINDS, ParamSpec, parse_params

GOOD = [
    ("list", "plan", "plan"),
    ("list", "a b", "a-b"),
    ("task", "12", "12"),
    ("tasks", ["1", 2], ("1", "2")),
    ("job", "b3k9x0q2m", "b3k9x0q2m"),
    ("lines", "5000", 5000),
    ("offset", "0", 0),
    ("offset", 7, 7),
    ("flag", "1", True),
    ("flag", False, False),
    ("needle", "error:", "error:"),
    ("subject", "Port the importer", "Port the importer"),
    ("typed", "\x03", "\x03"),
    ("typed", "", ""),
]

BAD = [
    ("list", ""),
    ("list", "x" * 201),
    ("list", "a\0b"),
    ("list", 7),
    ("task", "0"),
    ("task", "../1"),
    ("task", "1" * 10),
    ("task", "١"),
    ("tasks", "1"),
    ("tasks", ["x"]),
    ("tasks", ["1"] * 201),
    ("job", "../../etc"),
    ("job", "B3K9X0Q2M"),
    ("lines", "0"),
    ("lines", "5001"),
    ("offset", "-1"),
    ("offset", "1e3"),
    ("offset", "9" * 19),
    ("offset", True),
    ("flag", "maybe"),
    ("needle", ""),
    ("needle", "x" * 1001),
    ("subject", " "),
    ("text", "\x1b[31m"),
    ("name", "x" * 201),
    ("name", "a\nb"),
    ("name", 1),
    ("typed", 1),
    ("typed", "\ud800"),
    ("typed", "x" * 1_000_001),
    ("mark", "x" * 65),
]


@pytest.mark.parametrize(("kind", "raw", "value"), GOOD)
def test_a_value_becomes_what_its_kind_says(kind: str, raw: object, value: object) -> None:
    assert PARAM_KINDS[kind].check("it", raw) == value


@pytest.mark.parametrize(("kind", "raw"), BAD)
def test_what_a_kind_cannot_be_is_refused(kind: str, raw: object) -> None:
    with pytest.raises(UsageError):
        PARAM_KINDS[kind].check("it", raw)


def test_what_is_unknown_twice_or_missing_is_refused_by_its_name() -> None:
    values = (ParamSpec("a", "task", "One.", required=True), ParamSpec("b", "flag", "Two."))
    assert parse_params(values, [("a", "1"), ("b", None)], where="address") == {"a": "1"}
    with pytest.raises(BadValue, match="one of a, b"):
        parse_params(values, [("c", "1")], where="address")
    with pytest.raises(UsageError, match="a is there twice"):
        parse_params(values, [("a", "1"), ("a", "2")], where="address")
    with pytest.raises(UsageError, match="must have a"):
        parse_params(values, [], where="body")


def test_no_refusal_is_longer_than_a_few_lines() -> None:
    for kind, raw in BAD:
        with pytest.raises(TaskyardError) as caught:
            PARAM_KINDS[kind].check("it", raw)
        assert len(str(caught.value)) < 400
