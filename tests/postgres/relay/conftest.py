"""Two machines over one database, each with a home of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.hosts import Machine, Machines


@pytest.fixture
def machines(tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machines]:
    """Makes machines that share the test's database."""
    made: list[Machine] = []

    def make(name: str, *, store: str | None = None, silence: float = 30.0) -> Machine:
        home = tmp_path / name
        machine = Machine(home, name, store or address, monkeypatch, silence)
        made.append(machine)
        return machine

    yield make
    for machine in made:
        machine.close()


@pytest.fixture
def forge(machines: Machines) -> Machine:
    """The machine on which jobs run."""
    return machines("forge")


@pytest.fixture
def desk(machines: Machines) -> Machine:
    """The machine from which somebody looks."""
    return machines("desk")
