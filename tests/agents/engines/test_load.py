"""Whether an error is one of load, by how services word it."""

from __future__ import annotations

import pytest

from taskyard.agents.engines.provider import is_overload


@pytest.mark.req("B-10")
@pytest.mark.parametrize(
    ("text", "load"),
    [
        ("API Error: 529 overloaded", True), ("{'details': '429 busy'}", True), ("status 503.", True),
        ("exit code 1", False), ("line 4290", False), ("v1.429.2", False), ("task #1429", False), ("", False),
    ],
)  # fmt: skip
def test_the_numbers_of_load_are_seen_where_they_stand_alone(text: str, load: bool) -> None:
    assert is_overload(text) is load
