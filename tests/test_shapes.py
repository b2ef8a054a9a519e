"""Values of unknown shape."""

from __future__ import annotations

import pytest

from taskyard.shapes import as_list, as_object


@pytest.mark.req("L-02")
def test_only_objects_with_text_keys_are_objects_and_only_lists_are_lists() -> None:
    assert as_object({"a": 1}) == {"a": 1}
    assert as_object({1: "a"}) is as_object([]) is as_object(None) is None
    assert as_list([1]) == as_list((1,)) == [1]
    assert as_list("ab") is as_list({}) is as_list(None) is None
