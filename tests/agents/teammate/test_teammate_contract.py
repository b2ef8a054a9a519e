"""A teammate keeps the promises of a job, inside a program and in a process of its own."""

from __future__ import annotations

import itertools

import pytest

import taskyard
from taskyard import Teammate
from taskyard.testing import check_job_handler

_teams = itertools.count()


def _teammate(*command: str, tasks: int = 1, inside: bool) -> Teammate:
    """One with a list of its own; every check has a home of its own, and the team is founded there."""
    team = f"crew-{next(_teams)}"
    with taskyard.open(list=team) as yard:
        for number in range(tasks):
            yard.tasks.create(f"Task {number}")
    return Teammate("ada", team, command=command, is_inside=inside)


@pytest.mark.req("B-01", "K-04", "K-08")
@pytest.mark.parametrize("inside", [True, False])
def test_a_teammate_keeps_the_promises_of_a_job(inside: bool) -> None:
    check_job_handler(
        quick=lambda: _teammate("true", inside=inside),
        failing=lambda: _teammate("/nowhere/to/be/found", inside=inside),
        endless=lambda: _teammate("sleep", "300", inside=inside),
    )
