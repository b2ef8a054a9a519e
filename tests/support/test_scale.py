from __future__ import annotations

import pytest

from support import scale as module
from support.scale import scale


@pytest.mark.parametrize(("count", "least", "wanted"), [(1000, 1, 100), (5, 1, 1), (20, 5, 5), (3, 5, 3)])
def test_an_ordinary_run_does_a_tenth_but_never_nothing(
    monkeypatch: pytest.MonkeyPatch, count: int, least: int, wanted: int
) -> None:
    monkeypatch.setattr(module, "FULL", False)

    assert scale(count, least=least) == wanted


def test_a_soak_does_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FULL", True)

    assert scale(1000) == 1000
