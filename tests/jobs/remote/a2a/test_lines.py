from __future__ import annotations

import json

import pytest
from a2a.types.a2a_pb2 import Artifact, Message, Part, Role, Task, TaskState, TaskStatus
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Value
from hypothesis import given
from hypothesis import strategies as st

from taskyard.jobs.remote.a2a import MAX_MESSAGES, A2aCursor, new_text, parse_cursor, parts_text


def data(value: dict[str, object]) -> Part:
    return Part(data=ParseDict(value, Value()))


def task(*parts: Part, messages: tuple[str, ...] = (), status: str = "", name: str = "out") -> Task:
    said = [Message(message_id=text, role=Role.ROLE_AGENT, parts=[Part(text=text)]) for text in messages]
    last = Message(message_id=status, role=Role.ROLE_AGENT, parts=[Part(text=status)]) if status else None
    state = TaskStatus(state=TaskState.TASK_STATE_WORKING, message=last)
    return Task(id="t", status=state, history=said, artifacts=[Artifact(artifact_id=name, parts=parts)])


def heard(*tasks: Task) -> str:
    """What is heard of a task that looks so, one time after the other; the last time it is over."""
    cursor, told = "", ""
    for at, each in enumerate(tasks, 1):
        text, then = new_text(each, parse_cursor(cursor), is_over=at == len(tasks))
        cursor, told = str(then), told + text
    return told


def test_parts_that_are_added_are_told_once_and_half_a_line_waits_for_its_end() -> None:
    first, second = task(Part(text="a\nb")), task(Part(text="a\nb"), Part(text="c\nd"))

    text, cursor = new_text(first, A2aCursor(), is_over=False)
    assert text == "a\n"
    assert new_text(second, cursor, is_over=False)[0] == "bc\n"
    assert heard(first, second, second) == "a\nbc\nd\n"


def test_an_artifact_that_is_replaced_is_told_anew_and_one_that_only_grew_is_not() -> None:
    grown = heard(task(Part(text="one\n")), task(Part(text="one\ntwo\n")))
    replaced = heard(task(Part(text="one\n")), task(Part(text="two\n")))

    assert (grown, replaced) == ("one\ntwo\n", "one\ntwo\n")


def test_data_is_a_line_of_json_and_a_file_is_named_and_not_shown() -> None:
    file = Part(raw=b"secret", filename="x.bin", media_type="image/png")
    lines = parts_text([Part(text="half"), data({"a": [1, "ü"]}), file, Part(url="https://x.example/y")]).splitlines()

    assert lines[0] == "half"
    assert [json.loads(line) for line in lines[1:]] == [
        {"a": [1, "ü"]},
        {"type": "file", "name": "x.bin", "media_type": "image/png", "bytes": 6},
        {"type": "file", "url": "https://x.example/y"},
    ]


def test_data_whose_keys_come_in_another_order_is_the_same_data() -> None:
    keys = [f"k{number}" for number in range(20)]
    first, second = (task(data(dict.fromkeys(order, 1.0))) for order in (keys, keys[::-1]))

    assert len(heard(first, second, second).splitlines()) == 1


def test_what_is_said_with_a_state_is_told_once_also_when_it_becomes_history() -> None:
    assert (
        heard(task(status="one"), task(messages=("one",), status="two"), task(messages=("one", "two"))) == "one\ntwo\n"
    )


def test_what_is_said_with_a_state_and_never_becomes_history_makes_nothing_told_again() -> None:
    assert heard(task(messages=("a",), status="one"), task(messages=("a",), status="two"), task(messages=("a",))) == (
        "a\none\ntwo\n"
    )


def test_what_we_said_ourselves_is_not_told() -> None:
    ours = Task(history=[Message(message_id="m", role=Role.ROLE_USER, parts=[Part(text="prompt")])])

    assert heard(ours) == ""


def test_a_history_that_was_cut_at_its_beginning_is_not_told_twice() -> None:
    many = tuple(str(number) for number in range(MAX_MESSAGES + 50))

    assert heard(task(messages=many), task(messages=many[-MAX_MESSAGES:])).split() == list(many)


@pytest.mark.parametrize("text", ["", "x", "[]", '{"said": 3}', '{"pieces": {"a": [1]}, "offset": "1"}'])
def test_a_cursor_that_cannot_be_read_is_the_beginning(text: str) -> None:
    assert parse_cursor(text) == A2aCursor()


texts = st.text(st.sampled_from("ab\n{é𝄞"), max_size=6)


@given(st.lists(texts | st.integers(0, 3), max_size=8), st.sets(st.integers(0, 8)))
def test_whenever_one_asks_what_is_heard_is_what_was_said(said: list[str | int], looks: set[int]) -> None:
    parts = [Part(text=each) if isinstance(each, str) else data({"n": each}) for each in said]
    seen = [task(*parts[:at]) for at in sorted(looks) if at <= len(parts)]

    assert heard(*seen, task(*parts)) == heard(task(*parts))
