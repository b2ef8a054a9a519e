"""Ids: UUIDs that sort in the order of sending."""

from __future__ import annotations

import os
import uuid
import zlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.storage import message_ids

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.req("M-02")
def test_an_id_is_a_uuid_and_names_its_sender(tmp_path: Path) -> None:
    first, second = message_ids.next_id(str(tmp_path), "ada"), message_ids.next_id(str(tmp_path), "bob")
    assert uuid.UUID(first).version == 8
    assert uuid.UUID(first).variant == uuid.RFC_4122
    assert message_ids.is_message_id(first)
    assert message_ids.sender_of(first) != message_ids.sender_of(second)


@pytest.mark.req("M-02")
@pytest.mark.parametrize("rubbish", [b"", b"garbage", b"9" * 20, b"-5", b"\xff" * 40])
def test_a_mark_that_holds_rubbish_counts_as_none(tmp_path: Path, rubbish: bytes) -> None:
    (tmp_path / "ada").write_bytes(rubbish)
    ids = [message_ids.next_id(str(tmp_path), "ada") for _ in range(3)]
    assert ids == sorted(set(ids))


@pytest.mark.req("M-02")
def test_processes_of_one_sender_never_get_the_same_stamp(tmp_path: Path) -> None:
    children: list[int] = []
    for number in range(4):
        child = os.fork()
        if child == 0:
            try:
                ids = [message_ids.next_id(str(tmp_path), "ada") for _ in range(100)]
                assert ids == sorted(ids)
                (tmp_path / f"ids-{number}").write_bytes("\n".join(ids).encode())
            finally:
                os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    stamps = [line[:18] for number in range(4) for line in (tmp_path / f"ids-{number}").read_bytes().split(b"\n")]
    assert len(set(stamps)) == len(stamps) == 400


@pytest.mark.req("M-02")
@given(st.text(max_size=40))
def test_nothing_else_passes_for_an_id(text: str) -> None:
    assert not message_ids.is_message_id(text) or uuid.UUID(text).version == 8
    assert not message_ids.is_message_id(f"../{text}")


@pytest.mark.req("N-07")
@given(st.text(alphabet="0123456789abcdefghijklmnopqrstuvwxyz-_", max_size=200))
def test_an_id_holds_the_crc_of_its_senders_name(name: str) -> None:
    assert message_ids.sender_of(message_ids.clock_id(name)) == f"{zlib.crc32(name.encode()):08x}"
