"""Bytes as text that can only be read."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from taskyard.jobs.output import (
    MAX_MODEL_LIMIT,
    MODEL_LIMIT,
    TerminalText,
    for_model,
    for_terminal,
    model_limit,
    whole_utf8_size,
)

#: What makes terminals do things, and pieces of it.
NASTY = st.lists(
    st.sampled_from([
        b"\x1b", b"[", b"]", b"31m", b"\x1b[31m", b"\x1b[0m", b"\x1b[2J", b"\x1b]0;t\x07", b"\x1b]52;c;eA==\x1b\\",
        b"\x1bP", b"\x9b", b"\xc2\x9b", b"\xc2\x9d", b"\x07", b"\n", b"\r", b"\0", b"\x08", b"a", b"\xff", b"P",
        b"\xc3", b"\xa9", b"?25l", b"c", b"\x1bc", b";", b"\\", b" ", b"\x18", b"\x9c", b"\xf0\x9f\x98\x80",
        b"\xe2\x80\xae",
    ]),
    max_size=30,
).map(b"".join)  # fmt: skip

COLOUR = re.compile(r"\x1b\[[0-9;:]*m")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain\n", "plain\n"),
        (b"\x1b[2J\x1b[Hcleared", "cleared"),
        (b"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "alink"),
        (b"\x1b]52;c;ZXZpbA==\x07clip", "clip"),
        (b"\x1bP1$r0m\x1b\\a\x1b_apc\x1b\\b\x1b^pm\x1b\\c\x1bXsos\x1b\\d", "abcd"),
        (b"\x1b]never ended\nnext line", "\nnext line"),
        (b"\xc2\x9b31mred\xc2\x9d0;t\x07x", "redx"),
        (b"a\0b\x07c\x08d\x7fe", "abcde"),
        (b"10%\r20%\r\ndone\r", "10%\n20%\ndone\n"),
        ("user\u202egnp.exe \u2066x\u2069".encode(), "user\\u202egnp.exe \\u2066x\\u2069"),
        ("\U000e0041hidden\ufeff".encode(), "\\U000e0041hidden\\ufeff"),
        ("👩\u200d💻 é\t漢".encode(), "👩\u200d💻 é\t漢"),
        (b"\xff\xfebad", "\ufffd\ufffdbad"),
        (b"\x1b[31mred\x1b[0m", "red"),
    ],
)
def test_what_would_act_is_taken_out_and_what_would_deceive_is_shown(data: bytes, text: str) -> None:
    assert for_terminal(data) == text


def test_colours_stay_if_wanted_and_end_with_the_text() -> None:
    assert for_terminal(b"\x1b[1;38;5;9mred\x1b[2K", colours=True) == "\x1b[1;38;5;9mred\x1b[0m"
    assert for_terminal(b"\x1b[31mred\x1b[m", colours=True) == "\x1b[31mred\x1b[m"


@given(NASTY, st.booleans())
@example(b"\x1b\x1b[0m[2J", True)
@example(b"\x1b[3\x1b]0;x\x071mfoo", True)
def test_nothing_that_acts_comes_through_whatever_is_mixed(data: bytes, colours: bool) -> None:
    text = for_terminal(data, colours=colours)

    rest = COLOUR.sub("", text) if colours else text
    assert all(char in "\n\t" or char.isprintable() for char in rest), rest


@given(NASTY, st.lists(st.integers(0, 90), max_size=6), st.booleans())
def test_a_text_is_the_same_in_whichever_pieces_it_comes(data: bytes, cuts: list[int], colours: bool) -> None:
    piecewise = TerminalText(colours=colours)
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]

    shown = "".join(piecewise.feed(data[start:stop]) for start, stop in pairwise(places))

    assert shown + piecewise.finish() == for_terminal(data, colours=colours)


def test_a_sequence_without_an_end_is_not_waited_for_for_ever() -> None:
    text = TerminalText(colours=False)
    text.feed(b"\x1b]0;" + b"x" * 10_000)

    assert "visible" in text.feed(b"visible")


@pytest.mark.req("O-07")
def test_what_a_model_gets_is_cut_at_its_beginning_header_and_all() -> None:
    short = for_model(b"all of it", path="/p", limit=9)
    cut = for_model(b"0123456789" * 10, path="/p", limit=50)

    assert short == ("all of it", False)
    assert cut == ("[Truncated. Full output: /p]\n\n" + "01234567890123456789", True)
    assert len(cut.text) == 50


@pytest.mark.req("O-07")
def test_what_came_before_the_bytes_at_hand_counts_as_cut() -> None:
    found = for_model("é!".encode()[1:], path="/p", limit=1000, is_all=False)

    assert found == ("[Truncated. Full output: /p]\n\n!", True)


@pytest.mark.req("O-07")
@given(st.binary(max_size=300), st.integers(1, 200))
def test_a_model_never_gets_more_than_its_limit(data: bytes, limit: int) -> None:
    found = for_model(data, path="/some/path", limit=limit)
    text = for_terminal(data)

    assert len(found.text) <= limit
    assert found.was_truncated is (len(text) > limit)
    assert text.endswith(found.text.removeprefix("[Truncated. Full output: /some/path]\n\n"))


@pytest.mark.req("O-07")
@pytest.mark.parametrize(
    ("given", "limit"),
    [(None, MODEL_LIMIT), ("5", 5), ("160001", MAX_MODEL_LIMIT), ("0", MODEL_LIMIT), ("-3", MODEL_LIMIT),
     ("many", MODEL_LIMIT), ("9" * 400, MODEL_LIMIT), ("²", MODEL_LIMIT), (" 70 ", 70)],
)  # fmt: skip
def test_the_limit_comes_from_the_environment_within_reason(given: str | None, limit: int) -> None:
    assert model_limit({} if given is None else {"TASK_MAX_OUTPUT_LENGTH": given}) == limit


@given(st.text(alphabet="aé漢😀", max_size=20), st.integers(0, 80))
def test_no_character_is_cut_in_two(text: str, at: int) -> None:
    data = text.encode()[:at]

    kept = data[: whole_utf8_size(data)]

    assert text.startswith(kept.decode())
    assert len(data) - len(kept) < 4
