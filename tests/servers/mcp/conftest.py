"""Servers that tests start come from a process that has their libraries loaded, unless a test is about the start."""

from __future__ import annotations

import subprocess

import pytest

from support import warm

_AS_EVER = subprocess._fork_exec  # type: ignore[attr-defined]  # what everything is started with


@pytest.fixture(autouse=True)
def _warm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "_fork_exec", warm.fork_exec)


@pytest.fixture(autouse=True)
def _structured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers have data beside their text, which most tests look at; `test_what_models_see.py` is about the default."""
    monkeypatch.setenv("TASKYARD_MCP_STRUCTURED", "1")


@pytest.fixture
def cold(_warm: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers are started as clients start them: for tests that look at how, or at the words of their command."""
    monkeypatch.setattr(subprocess, "_fork_exec", _AS_EVER)
