"""A box on disk: listings that are complete for each sender, moves that happen once."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from taskyard.core import files
from taskyard.errors import StorageError
from taskyard.storage import maildir, message_ids
from taskyard.storage.maildir import Maildir

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def box(tmp_path: Path) -> Maildir:
    box = Maildir(str(tmp_path), str(tmp_path / "box"))
    box.open()
    return box


@pytest.mark.req("M-02")
def test_a_listing_that_missed_an_earlier_message_does_not_show_the_later_one_alone(
    box: Maildir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    early, late = (message_ids.next_id(str(tmp_path), "ada") for _ in range(2))
    latest = [message_ids.next_id(str(tmp_path), "ada") for _ in range(2)]
    listings = iter([[late], [late, early, latest[1]]])  # both may happen while senders write

    def listdir(_folder: str) -> list[str]:
        return next(listings)

    monkeypatch.setattr(os, "listdir", listdir)
    assert box.waiting() == [early, late]


@pytest.mark.req("M-02")
def test_a_closed_box_takes_no_mail_keeps_what_it_has_and_can_open_again(box: Maildir, tmp_path: Path) -> None:
    first, second = (message_ids.next_id(str(tmp_path), "ada") for _ in range(2))
    assert box.put(first, b"1")
    box.close()
    box.close()
    assert not box.put(second, b"2")
    assert box.waiting() == [first]
    box.open()
    assert box.put(second, b"2")
    assert box.waiting() == [first, second]


@pytest.mark.req("M-02")
def test_a_box_that_is_closed_while_somebody_writes_takes_no_mail(
    box: Maildir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_all = files.write_all

    def closed_meanwhile(fd: int, data: bytes) -> None:
        write_all(fd, data)
        box.close()

    monkeypatch.setattr(files, "write_all", closed_meanwhile)
    assert not box.put(message_ids.next_id(str(tmp_path), "ada"), b"1")
    assert box.waiting() == []


@pytest.mark.req("N-07")
def test_a_file_becomes_a_message_once_whether_the_box_was_open_or_not(tmp_path: Path) -> None:
    box = Maildir(str(tmp_path), str(tmp_path / "outbox" / "ada"))
    names = [message_ids.next_id(str(tmp_path), "ada") for _ in range(2)]
    for name in names:
        (tmp_path / "written").write_bytes(b"1")
        assert [box.adopt(str(tmp_path / "written"), name) for _ in range(2)] == [True, False]

    assert box.waiting() == names
    assert not (tmp_path / "written").exists()


@pytest.mark.req("M-02")
def test_only_one_of_two_takers_gets_a_message(box: Maildir, tmp_path: Path) -> None:
    name = message_ids.next_id(str(tmp_path), "ada")
    box.put(name, b"1")
    assert [box.take(name, "one"), box.take(name, "two")] == [True, False]
    assert box.read(name, "one") == b"1"
    assert [box.acknowledge(name, "two"), box.acknowledge(name, "one")] == [False, True]
    assert box.state(name) == "read"


@pytest.mark.req("M-02")
def test_a_holder_nobody_knows_is_gone_and_gives_back(box: Maildir, tmp_path: Path) -> None:
    (tmp_path / "instances").mkdir()
    name = message_ids.next_id(str(tmp_path), "ada")
    box.put(name, b"1")
    box.take(name, "nobodyknows1")
    assert box.requeue_abandoned() == 1
    assert box.waiting() == [name + maildir.REDELIVERED]
    assert box.holders() == []


@pytest.mark.req("M-02")
@pytest.mark.parametrize("part", ["new", "taken", "cur", "tmp", ""])
def test_a_planted_link_in_place_of_any_folder_is_refused(tmp_path: Path, part: str) -> None:
    target = tmp_path / "target"
    target.mkdir()
    path = tmp_path / "box" / part if part else tmp_path / "box"
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(target)
    box = Maildir(str(tmp_path), str(tmp_path / "box"))
    with pytest.raises(StorageError):
        box.check()
    with pytest.raises(StorageError):
        box.open()
    assert list(target.iterdir()) == []
