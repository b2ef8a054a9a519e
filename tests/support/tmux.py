"""A real tmux for a test: its server has a place of its own, and is ended with the test."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def tmux_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A place for a server of tmux; what is there at the end is ended."""
    folder = tmp_path / "t"
    folder.mkdir()
    monkeypatch.setenv("TMUX_TMPDIR", str(folder))
    monkeypatch.delenv("TMUX", raising=False)
    yield folder
    monkeypatch.delenv("TMUX", raising=False)
    said("kill-server")


def said(*words: str) -> str:
    """What tmux answers."""
    return subprocess.run(["tmux", *words], capture_output=True, text=True, timeout=20, check=False).stdout.strip()
