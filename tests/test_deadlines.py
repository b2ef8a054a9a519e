"""A moment that other processes can read: by the time since boot where that is known, else by the clock."""

from __future__ import annotations

import pytest

from taskyard import deadlines
from taskyard.clock import now_ms


def test_a_moment_has_passed_when_it_has() -> None:
    assert not deadlines.has_passed(deadlines.deadline(60))
    assert deadlines.has_passed(deadlines.deadline(-0.01))


@pytest.mark.req("B-05")
@pytest.mark.parametrize("jump", [-86_400_000, 86_400_000])
def test_on_the_same_boot_the_clock_does_not_matter(monkeypatch: pytest.MonkeyPatch, jump: int) -> None:
    soon, before = deadlines.deadline(60), deadlines.deadline(-60)
    then = now_ms() + jump
    monkeypatch.setattr(deadlines, "now_ms", lambda: then)

    assert (deadlines.has_passed(soon), deadlines.has_passed(before)) == (False, True)


@pytest.mark.req("B-05")
def test_on_another_machine_or_after_a_restart_the_clock_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    soon, before = deadlines.deadline(60), deadlines.deadline(-60)
    monkeypatch.setattr(deadlines, "this_host", lambda: "another/boot")

    assert (deadlines.has_passed(soon), deadlines.has_passed(before)) == (False, True)
    monkeypatch.setattr(deadlines, "elapsed", lambda: 1e9)
    assert (deadlines.has_passed(soon), deadlines.has_passed(before)) == (False, True)


@pytest.mark.parametrize(("text", "passed"), [("", True), ("x-y-z", True), ("1", True), ("99999999999999", False)])
def test_what_is_not_of_this_form_is_read_as_far_as_it_can_be(text: str, passed: bool) -> None:
    assert deadlines.has_passed(text) is passed
