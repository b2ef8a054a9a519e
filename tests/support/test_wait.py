from __future__ import annotations

import pytest

from support.wait import until


def test_waiting_ends_as_soon_as_the_condition_holds() -> None:
    answers = iter([False, False, True])

    until(lambda: next(answers))

    assert list(answers) == []


def test_waiting_for_what_never_happens_fails_and_says_for_what() -> None:
    with pytest.raises(AssertionError, match="the door to open"):
        until(lambda: False, timeout=0.02, what="the door to open")
