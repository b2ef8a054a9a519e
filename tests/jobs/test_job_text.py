"""Jobs in words: rows of a tree, columns that fit, and how each ended."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.core.text import Style, width
from taskyard.jobs.job_text import JobRow, end_text, format_rows, status_line, walk_tree
from taskyard.jobs.model import End, Job, JobStatus

NOW = 1_000_000


def job(job_id: str = "b00000001", **more: object) -> Job:
    values: dict[str, object] = {"status": JobStatus.RUNNING, "description": "npm test", "start_time": NOW - 38_000}
    return Job(job_id, "local_bash", **values | more)  # type: ignore[arg-type]


@pytest.mark.req("B-07")
def test_each_job_comes_once_below_the_one_it_is_inside_of_also_in_a_circle() -> None:
    jobs = [job("a"), job("b", parent="a"), job("c", parent="gone"), job("d", parent="b"), job("e", parent="a")]
    assert [(depth, one.id) for depth, one in walk_tree(jobs)] == [(0, "a"), (1, "b"), (2, "d"), (1, "e"), (0, "c")]

    circle = [job("a", parent="b"), job("b", parent="a"), job("c", parent="c")]
    assert sorted(one.id for _, one in walk_tree(circle)) == ["a", "b", "c"]


@pytest.mark.req("U-01")
@pytest.mark.parametrize(
    ("end", "words"),
    [
        (End("exited", 0), "completed"),
        (End("exited", 3), "failed: exit code 3"),
        (End("signal", None, 11), "failed: killed by SIGSEGV"),
        (End("signal", None, 63), "failed: killed by signal 63"),
        (End("error", 127, error="'x': command not found"), "failed: 'x': command not found"),
        (End("lost", error="its supervisor is gone"), "lost: its supervisor is gone"),
        (End("oom"), "failed: out of memory"),
        (End("stopped", by="ada"), "stopped by ada"),
        (End("stopped"), "stopped"),
        (End("timeout", None, 15), "stopped: it reached its time limit"),
        (End("output_cap"), "stopped: its output was larger than its cap"),
        (End("newer\x1b[2J"), "failed: newer\\x1b[2J"),
    ],
)
def test_how_a_job_ended_is_said_in_words(end: End, words: str) -> None:
    assert end_text(end) == words
    ended = job(status=end.status, end=end)
    assert status_line(ended, Style(ascii=True)).endswith(f" b00000001  npm test  {words}")
    ended = ended._replace(end=end._replace(duration_ms=41_000))
    assert status_line(ended, Style(ascii=True)).endswith(f" b00000001  npm test  {words}, after 41s")


@pytest.mark.req("U-01")
def test_colour_and_glyphs_are_as_the_place_can_show_them() -> None:
    (plain,) = format_rows([JobRow(job(), 1, "18 passed")], now=NOW, columns=80, style=Style(ascii=True))
    (bright,) = format_rows([JobRow(job(), 1, "18 passed")], now=NOW, columns=80, style=Style(colour=True))

    assert plain == "* b00000001  running  38s  - npm test  18 passed"
    assert bright == "\x1b[34m◐\x1b[0m b00000001  running  38s  └ npm test  \x1b[90m18 passed\x1b[0m"


@pytest.mark.req("U-01")
@given(
    st.lists(st.tuples(st.text(max_size=80), st.text(max_size=80), st.integers(0, 4)), max_size=5),
    st.integers(48, 200),
)
def test_no_row_is_wider_than_the_window(rows: list[tuple[str, str, int]], columns: int) -> None:
    made = [JobRow(job(description=name), depth, note if note.isprintable() else "") for name, note, depth in rows]

    assert all(width(line) <= columns for line in format_rows(made, now=NOW, columns=columns))
