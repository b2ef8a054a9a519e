"""A secret in a file."""

from __future__ import annotations

import stat
from pathlib import Path

from taskyard.serving.token import kept_in


def test_a_new_one_takes_the_place_of_the_old_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    first = kept_in(str(file))
    assert kept_in(str(file)) == first
    fresh = kept_in(str(file), anew=True)
    assert fresh.text != first.text
    assert kept_in(str(file)) == fresh
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["secret"]
