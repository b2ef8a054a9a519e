"""What is printed."""

from __future__ import annotations

import io
import sys

import pytest

from taskyard.cli.output import print_line


class Writes(io.StringIO):
    """Remembers each write by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.each: list[str] = []

    def write(self, text: str) -> int:
        self.each.append(text)
        return len(text)


@pytest.mark.req("T-05")
def test_a_line_is_printed_in_one_piece_so_that_no_thread_prints_into_it(monkeypatch: pytest.MonkeyPatch) -> None:
    out = Writes()
    monkeypatch.setattr(sys, "stdout", out)
    print_line("ada is idle")
    assert out.each == ["ada is idle\n"]
