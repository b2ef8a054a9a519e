"""Command lines typed one after the other, where a test has its own stdin or terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from support.cli import Ran
from taskyard.cli.main import main

if TYPE_CHECKING:
    import pytest


class Shell:
    """Where commands are typed."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: str) -> Ran:
        self._capsys.readouterr()
        code = main(words)
        return Ran(code, *self._capsys.readouterr())

    def json(self, *words: str) -> Any:
        """The data of a command that must succeed."""
        ran = self(*words, "--json")
        assert ran.code == 0, ran
        return ran.data
