"""Whether two tasks touch the same files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.tasks.model import paths_overlap

segments = st.lists(st.sampled_from(["a", "b", "ab", "a.py", "*", "**", "*.py", "a*", "?"]), min_size=1, max_size=4)
paths = st.lists(segments.map("/".join), max_size=3)


@pytest.mark.req("L-21")
@pytest.mark.parametrize(
    ("one", "two", "shared"),
    [
        ("src/a.py", "src/a.py", "src/a.py"),
        ("./src//a.py", "src/a.py", "./src//a.py"),
        ("src", "src/api/a.py", "src/api/a.py"),
        ("src/", "src/api/", "src/api/"),
        (".", "docs/x.md", "docs/x.md"),
        ("src/*.py", "src/a.py", "src/a.py"),
        ("src/*.py", "src", "src/*.py"),
        ("src/**", "src/api/v1/a.py", "src/api/v1/a.py"),
        ("**/a.py", "src/api/a.py", "src/api/a.py"),
        ("**/*.py", "src", "src"),
        ("src/*.py", "src/test_*", "src/*.py"),
        ("src/v1.2", "src/v1.2/a.py", "src/v1.2/a.py"),
        ("src/[ab].py", "src/a.py", "src/a.py"),
        ("/srv/x", "/srv/x/y", "/srv/x/y"),
        ("/", "/srv", "/srv"),
    ],
)
def test_the_narrower_of_two_overlapping_paths_is_named(one: str, two: str, shared: str) -> None:
    assert paths_overlap([one], [two]) == (shared,)


@pytest.mark.req("L-21")
@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("src/a.py", "src/b.py"),
        ("src", "src2/a.py"),
        ("src/*.py", "src/a.md"),
        ("src/*.py", "docs/*.py"),
        ("src/api_*", "src/db_*"),
        ("**/*.py", "docs/readme.md"),
        ("**/x.py", "src/y.py"),
        ("/src", "src"),
        ("src/../lib", "src"),
    ],
)
def test_paths_that_cannot_meet_do_not_overlap(one: str, two: str) -> None:
    assert paths_overlap([one], [two]) == ()


@pytest.mark.req("L-21")
@given(paths, paths)
def test_overlap_is_mutual_and_everything_overlaps_itself(one: list[str], two: list[str]) -> None:
    assert bool(paths_overlap(one, two)) == bool(paths_overlap(two, one))
    assert bool(paths_overlap(one, one)) == bool(one)


@pytest.mark.req("L-21")
def test_hostile_globs_are_compared_quickly() -> None:
    many = ["/".join(["**", "*a*a*a*"] * 50)] * 5
    assert paths_overlap(many, [path + "/x" for path in many])
