"""Whatever a test leaves running is stopped."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.cli import taskyard


@pytest.fixture(autouse=True)
def nothing_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("TMUX", raising=False)
    yield
    taskyard("stop", "--all", "--grace", "0")
