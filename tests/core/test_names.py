"""Names and ids from outside, made safe once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.core.values import (
    LONGEST_NAME,
    check_id,
    check_name,
    check_subject,
    check_text,
    folder_name,
    is_id,
    nearest,
    nearest_ids,
)
from taskyard.errors import BadId, BadName, BadText

TYPES: list[object] = [True, None, b"1", ["1"]]
SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


@pytest.mark.req("L-14")
@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("plan", "plan"),
        ("My Plan", "My-Plan"),
        ("a/b", "a-b"),
        ("..", "--"),
        ("../../etc/passwd", "------etc-passwd"),
        ("é", "-"),
        ("e\u0301", "e-"),
        ("😀", "--"),
        ("x" * 200, "x" * 200),
        ("CON", "CON"),
        (".", "-"),
    ],
)
def test_a_name_becomes_the_folder_claude_code_would_make_of_it(name: str, folder: str) -> None:
    assert folder_name("a list", name) == folder


@pytest.mark.req("L-14")
@given(st.text(min_size=1, max_size=80))
def test_whatever_the_name_its_folder_is_one_safe_part_of_a_path_or_refused(name: str) -> None:
    try:
        folder = folder_name("a list", name)
    except BadName:
        return
    assert SAFE.issuperset(folder)
    assert len(folder) == len(name.encode("utf-16-le")) // 2


@pytest.mark.req("L-14")
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "empty"),
        (" \u3000", "empty"),
        ("x" * (LONGEST_NAME + 1), "longer than 200"),
        ("😀" * 101, "longer than 200"),
        ("a\0b", "control character"),
        ("a\nb", "control character"),
        ("\x9b31m", "control character"),
        ("\ud800", "lone surrogate"),
    ],
)
def test_a_name_no_folder_can_have_is_refused_with_the_reason(name: str, why: str) -> None:
    with pytest.raises(BadName, match=why) as caught:
        check_name("a list", name)

    assert caught.value.why
    assert len(str(caught.value)) < 200


def test_a_name_that_is_no_text_is_refused_as_a_name() -> None:
    name: object = 5
    with pytest.raises(BadName, match="not int"):
        check_name("an agent", name)  # type: ignore[arg-type]  # callers without a type checker


@pytest.mark.req("L-03")
@pytest.mark.parametrize("task_id", ["1", "10", "999999999", 7])
def test_whole_numbers_from_one_are_ids(task_id: object) -> None:
    assert check_id(task_id) == str(task_id)


@pytest.mark.req("L-03")
@pytest.mark.parametrize(
    "task_id",
    [
        "",
        "0",
        "01",
        "-1",
        "+1",
        "1.0",
        "1 ",
        "../1",
        "1\0",
        "1\n",
        "x",
        "²",
        "١",
        "1000000000",
        "9" * 5000,
        0,
        -3,
        1.0,
        *TYPES,
    ],
)
def test_what_no_task_can_be_called_is_refused(task_id: object) -> None:
    with pytest.raises(BadId) as caught:
        check_id(task_id)

    assert len(str(caught.value)) < 200


@given(st.text(max_size=12))
def test_an_id_reads_back_as_the_number_it_is(text: str) -> None:
    assert not is_id(text) or str(int(text)) == text


@pytest.mark.req("L-01")
@pytest.mark.parametrize("text", ["", "x", "tab\there", "two\r\nlines", "é😀", "x" * 200_000])
def test_text_that_can_be_stored_is_taken_as_it_is(text: str) -> None:
    assert check_text("description", text) == text


@pytest.mark.req("L-01")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("\x1b[31m", "control"),
        ("a\0", "control"),
        ("\udfff", "surrogate"),
        ("x" * 200_001, "200,001 characters"),
        (5, "not int"),
        (None, "not NoneType"),
    ],
)
def test_text_that_no_file_should_hold_is_refused(text: object, why: str) -> None:
    with pytest.raises(BadText, match=why):
        check_text("description", text)


@pytest.mark.req("L-01")
@pytest.mark.parametrize("subject", ["", "  ", "a\nb", "a\rb", "x" * 2001, "\u2003"])
def test_a_subject_is_one_line_and_says_something(subject: str) -> None:
    with pytest.raises(BadText):
        check_subject(subject)


def test_the_nearest_come_first() -> None:
    assert nearest_ids("7", ["1", "6", "9", "100"]) == ("6", "9", "1")
    assert nearest("writr", ["reader", "writer", "waiter"])[0] == "writer"
    assert nearest("x", []) == ()
