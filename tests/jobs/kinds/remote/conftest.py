"""A fake place that is set up as `here`, for tests of agents elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.fake_places import FakePlace, set_up


@pytest.fixture
def place(tmp_path: Path) -> Iterator[FakePlace]:
    found = FakePlace(tmp_path / "place")
    set_up(found)
    yield found
    found.kill()
