"""Values of unknown shape."""

from __future__ import annotations

import pytest

from taskyard.core.values import as_list, as_name, as_number, as_object, as_text


@pytest.mark.req("L-02")
def test_only_objects_with_text_keys_are_objects_and_only_lists_are_lists() -> None:
    assert as_object({"a": 1}) == {"a": 1}
    assert as_object({1: "a"}) is as_object([]) is as_object(None) is None
    assert as_list([1]) == as_list((1,)) == [1]
    assert as_list("ab") is as_list({}) is as_list(None) is None


@pytest.mark.req("L-02")
def test_texts_numbers_and_names_of_the_wrong_shape_read_as_absent() -> None:
    assert (as_text("a"), as_text(5), as_text(None)) == ("a", "", "")
    assert (as_number(7), as_number("7"), as_number(True), as_number("x"), as_number("9" * 20)) == (7, 7, 0, 0, 0)
    assert (as_name("ada"), as_name(""), as_name("a\0"), as_name(5)) == ("ada", "", "", "")
