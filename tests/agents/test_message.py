"""A message's bytes: what goes in comes out, and nothing else is taken for a message."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.agents.mail import TYPES, Message, decode_message, encode_message
from taskyard.errors import BadText, Damaged

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.req("M-02")
@given(
    st.builds(
        Message,
        id=st.just("i"),
        sender=st.text(),
        recipient=st.text(),
        team=st.text(),
        type=st.sampled_from(TYPES),
        text=st.text(),
        summary=st.none() | st.text(),
        data=st.dictionaries(st.text(max_size=5), JSON, max_size=3),
        sent_at=st.integers(0, 2**53),
        redelivered=st.booleans(),
    )
)
def test_every_message_survives_the_disk(message: Message) -> None:
    assert decode_message("file", encode_message(message), message_id="i", redelivered=message.redelivered) == message


@pytest.mark.req("M-02")
@given(st.binary(max_size=200))
def test_random_bytes_are_damaged_and_nothing_worse(found: bytes) -> None:
    with pytest.raises(Damaged):
        decode_message("file", found, message_id="i")


@pytest.mark.req("M-02")
def test_a_message_too_large_for_a_record_is_refused() -> None:
    with pytest.raises(BadText):
        encode_message(Message("i", "a", "b", "t", data={"x": "y" * (4 * 1024 * 1024)}))
