from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.sick_list import SickList

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def sick(tmp_path: Path) -> Iterator[SickList]:
    found = SickList(tmp_path)
    with found.yard, found.doctor:
        yield found
