"""A moment that other processes can read: by the time since boot where that is known, else by the clock."""

from __future__ import annotations

import pytest

from taskyard.core import system
from taskyard.core.system import now_ms


def test_a_moment_has_passed_when_it_has() -> None:
    assert not system.deadline_passed(system.encode_deadline(60))
    assert system.deadline_passed(system.encode_deadline(-0.01))


@pytest.mark.req("B-05")
@pytest.mark.parametrize("jump", [-86_400_000, 86_400_000])
def test_on_the_same_boot_the_clock_does_not_matter(monkeypatch: pytest.MonkeyPatch, jump: int) -> None:
    soon, before = system.encode_deadline(60), system.encode_deadline(-60)
    then = now_ms() + jump
    monkeypatch.setattr(system, "now_ms", lambda: then)

    assert (system.deadline_passed(soon), system.deadline_passed(before)) == (False, True)


@pytest.mark.req("B-05")
def test_on_another_machine_or_after_a_restart_the_clock_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    soon, before = system.encode_deadline(60), system.encode_deadline(-60)
    monkeypatch.setattr(system, "this_host", lambda: "another/boot")

    assert (system.deadline_passed(soon), system.deadline_passed(before)) == (False, True)
    monkeypatch.setattr(system, "boottime", lambda: 1e9)
    assert (system.deadline_passed(soon), system.deadline_passed(before)) == (False, True)


@pytest.mark.parametrize(("text", "passed"), [("", True), ("x-y-z", True), ("1", True), ("99999999999999", False)])
def test_what_is_not_of_this_form_is_read_as_far_as_it_can_be(text: str, passed: bool) -> None:
    assert system.deadline_passed(text) is passed
