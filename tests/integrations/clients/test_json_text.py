"""A few places of a JSON text change; every other byte stays."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.integrations.clients.formats import JsonText, NotEditable, format_path

KEYS = st.text(max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=5)
INDENTS = st.sampled_from([None, 2, 4, "\t"])


@given(data=OBJECTS, indent=INDENTS, crlf=st.booleans(), key=KEYS, value=VALUES)
def test_a_new_key_comes_to_the_end_and_goes_without_a_trace(
    data: dict[str, Any], indent: int | str | None, crlf: bool, key: str, value: Any
) -> None:
    text = json.dumps(data, indent=indent, ensure_ascii=False)
    text = text.replace("\n", "\r\n") if crlf else text
    doc = JsonText(text)
    if doc.has((key,)):
        return

    doc.put((key,), value)
    assert json.loads(doc.text) == {**data, key: value}
    assert doc.text.startswith(text[:-1].rstrip()) or not data
    assert "\r\n" not in text or "\n" not in doc.text.replace("\r\n", "")
    doc.drop((key,))
    assert doc.text == text


@given(data=OBJECTS, indent=INDENTS, value=VALUES)
def test_a_value_is_replaced_where_it_stands(data: dict[str, Any], indent: int | str | None, value: Any) -> None:
    for key in data:
        doc = JsonText(json.dumps(data, indent=indent))
        doc.put((key,), value)
        assert list(doc.data) == list(data)
        assert doc.data == {**data, key: value}


def test_numbers_and_spacing_of_others_stay_as_they_were_written() -> None:
    doc = JsonText('{\n    "a" : 1.50e3,   "b":[1,2 ],\n    "c": {}\n}\n')

    doc.put(("c", "x", "y"), 1)

    assert doc.text == (
        '{\n    "a" : 1.50e3,   "b":[1,2 ],\n    "c": {\n        "x": {\n            "y": 1\n        }\n    }\n}\n'
    )


def test_a_list_gets_an_item_and_loses_the_one_that_is_meant() -> None:
    doc = JsonText('{"a": [1, 2, 3]}')

    doc.add(("a",), {"b": 4})
    doc.drop(("a", 1))

    assert doc.text == '{"a": [1, 3, {"b": 4}]}'


def test_a_byte_order_mark_stays_and_nothing_counts_as_an_empty_object() -> None:
    marked = JsonText('\ufeff{"a": 1}')
    marked.put(("b",), 2)
    assert marked.text == '\ufeff{"a": 1, "b": 2}'
    assert JsonText(" \n").data == {}


@pytest.mark.parametrize("text", ["{", "[]", "1", "// note\n{}", "{'a': 1}", "[" * 100_000, '{"a": 1,}'])
def test_what_is_no_json_object_is_refused(text: str) -> None:
    with pytest.raises(NotEditable):
        JsonText(text)


@pytest.mark.parametrize(("text", "word"), [('{"a": []}', "a is not an object"), ('{"a": null}', "a is not an object")])
def test_no_value_of_others_makes_room_for_an_object(text: str, word: str) -> None:
    doc = JsonText(text)
    with pytest.raises(NotEditable, match=word):
        doc.put(("a", "b"), 1)
    assert doc.text == text


def test_a_key_that_stands_there_twice_is_not_changed_by_half() -> None:
    doc = JsonText('{"a": 1, "a": 2}')
    doc.put(("a",), 3)
    assert doc.data == {"a": 3}
    with pytest.raises(NotEditable, match="without changing something else"):
        doc.drop(("a",))


def test_a_place_has_a_name_for_people() -> None:
    assert format_path(("hooks", "Stop", 0, "hooks")) == "hooks.Stop[0].hooks"
