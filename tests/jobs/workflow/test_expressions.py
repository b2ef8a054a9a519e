"""A language too small to do harm, and large enough to say when a step runs."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.jobs.workflow.expressions import (
    BadExpression,
    Scope,
    as_variables,
    interpolate,
    parse,
    parse_placeholders,
)
from taskyard.jobs.workflow.model import COMPLETED, FAILED, StepState

SCOPE = Scope(
    {"NAME": "ada", "COUNT": "12", "EMPTY": ""},
    {"build": StepState(COMPLETED, exit_code=0, output="v1.4"), "my-test": StepState(FAILED, exit_code=3)},
    success=False,
    failure=True,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("env.NAME == 'ada'", True),
        ("env.NAME != 'ada'", False),
        ("env.MISSING == ''", True),
        ("env.COUNT > 9", True),
        ("env.COUNT == 12.0", True),
        ("env.NAME < 3", False),
        ("steps.build.output == 'v1.4'", True),
        ("steps.my-test.exit_code >= 3 && steps.my-test.status == 'failed'", True),
        ("steps.build.exit_code != 0 || steps.my-test.exit_code == 3", True),
        ("success()", False),
        ("failure() && !success()", True),
        ("always() && (env.EMPTY || env.NAME == 'it''s')", False),
        ("${{ failure() }}", True),
        ("!!true", True),
        ("null == ''", True),
    ],
)
def test_a_condition_means_what_it_says(text: str, expected: bool) -> None:
    assert bool(parse(text).value(SCOPE)) is expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "ends where a value"),
        ("env.A ==", "ends where a value"),
        ("env.A = 'b'", "not understood from"),
        ("__import__('os')", "asks __import__"),
        ("success(1)", "asks success"),
        ("env", "names env"),
        ("steps.a.secret == ''", "names steps.a.secret"),
        ("(true", "has \\( without \\)"),
        ("true true", "goes on with 'true'"),
        ("(" * 100 + "true" + ")" * 100, "nested too deeply"),
        ("true || " * 400 + "true", "at most 1,000"),
    ],
)
def test_what_is_no_condition_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(BadExpression, match=why):
        parse(text)


@given(st.text(max_size=200))
def test_no_text_does_anything_but_be_understood_or_refused(text: str) -> None:
    try:
        parse(text)
    except BadExpression:
        pass


def test_values_are_put_into_texts_that_no_shell_reads() -> None:
    assert (
        interpolate("${{ env.NAME }} got ${{steps.build.output}}/${{ steps.my-test.exit_code }}", SCOPE)
        == "ada got v1.4/3"
    )


@given(st.text(alphabet=st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), max_size=60))
def test_no_value_ever_becomes_part_of_a_command(value: str) -> None:
    command, values = as_variables('printf %s "${{ env.X }}"', Scope({"X": value}, {}))

    ran = subprocess.run(["bash", "-c", command], env=values, capture_output=True, check=True)

    assert ran.stdout == value.encode()


@pytest.mark.parametrize("text", ["${{ env.X", "${{ success() }}", "${{ 1 + 1 }}"])
def test_a_place_that_cannot_be_filled_is_refused(text: str) -> None:
    with pytest.raises(BadExpression):
        parse_placeholders(text)
