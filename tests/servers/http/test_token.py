"""A secret in a file."""

from __future__ import annotations

import stat
from pathlib import Path

from taskyard.servers.http.access import ensure_token


def test_a_new_one_takes_the_place_of_the_old_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    first = ensure_token(str(file))
    assert ensure_token(str(file)) == first
    fresh = ensure_token(str(file), rotate=True)
    assert fresh.text != first.text
    assert ensure_token(str(file)) == fresh
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["secret"]
