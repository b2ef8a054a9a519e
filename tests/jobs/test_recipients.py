"""Every recipient has a box of its own, whatever it is called."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.cli import taskyard
from support.ended_jobs import end_job
from taskyard import config
from taskyard.errors import BadName
from taskyard.jobs import outbox
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.notice_payload import box_name, is_box_name, recipient_of
from taskyard.jobs.notices import Outbox
from taskyard.storage import process_registry

pytestmark = pytest.mark.req("N-07")

ALIKE = ("a b", "a.b", "a-b", "a%20b", "a/b", "ä b", "A b")

_NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=100).filter(str.strip)


@pytest.mark.parametrize("name", ALIKE)
def test_whoever_is_called_alike_gets_no_others_notices(name: str) -> None:
    home = config.home()
    started: dict[str, str] = {}
    for agent in ALIKE:
        jobs = Jobs(home, agent=agent)
        started[agent] = jobs.start(Shell("true")).id
        jobs.wait_all([started[agent]], timeout=20)
        jobs.close()

    assert [notice.task_id for notice in Outbox(home, name).waiting()] == [started[name]]
    taken = taskyard("notices", "take", "--by", name, "--json").data
    assert [notice["task_id"] for notice in taken] == [started[name]]
    assert len(taskyard("notices", "--all", "--json").data) == len(ALIKE) - 1


def test_one_who_lives_does_not_keep_the_notices_of_another_who_is_called_alike() -> None:
    home = config.home()
    dead = process_registry.register(home, "a b")
    job = end_job(home, box_name("a b"), instance=dead.id)
    dead.leave()

    with process_registry.register(home, "a.b"):
        assert Outbox(home, "a.b").waiting() == []
        (notice,) = Outbox(home, "me").waiting()

    assert (notice.task_id, notice.orphaned_from) == (job, "a%20b")


@given(_NAMES, _NAMES)
def test_a_box_has_one_owner_and_leads_nowhere_else(one: str, other: str) -> None:
    boxes = box_name(one), box_name(other)

    assert (boxes[0] == boxes[1]) == (one == other)
    for box in boxes:
        assert is_box_name(box) and "/" not in box and not box.startswith(".") and len(box.encode()) <= 255
        assert recipient_of({"recipient": box}) == box


def test_names_too_long_for_a_file_have_boxes_too() -> None:
    names = ["\U0001f600" * 99 + last for last in "ab"]

    assert len({box_name(name) for name in names}) == 2
    for name in names:
        end_job(config.home(), box_name(name))
        assert len(Outbox(config.home(), name).waiting()) == 1


@pytest.mark.parametrize("recipient", ["../x", "/etc", "..", ".hidden", "a\nb", "\ud800", "x" * 999, 7, None, [], ""])
def test_whatever_a_record_says_its_news_stay_among_the_boxes(recipient: object) -> None:
    end_job(config.home(), "ada")
    assert is_box_name(recipient_of({"recipient": recipient}))
    assert outbox.box_names(config.home()) == ["ada"]


def test_nobody_is_called_nothing() -> None:
    with pytest.raises(BadName):
        box_name(" ")
