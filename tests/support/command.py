"""Command lines, run in this process: what they print, and the number they end with."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from taskyard.cli.main import main

if TYPE_CHECKING:
    import pytest


class Ran(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """The data in its JSON envelope."""
        body = json.loads(self.out)
        assert body["schema_version"] == 1
        return body["data"]

    @property
    def error(self) -> Any:
        """The error in its JSON envelope."""
        return json.loads(self.out)["error"]


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
