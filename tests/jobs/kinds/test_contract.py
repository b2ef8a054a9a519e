"""Every kind keeps the promises of a job: ours, and one that somebody else's package adds."""

from __future__ import annotations

import pytest
from countdown import Countdown

from taskyard import Shell
from taskyard.testing import check_job_handler


@pytest.mark.req("B-01", "K-01", "K-08")
def test_a_shell_keeps_the_promises_of_a_job() -> None:
    check_job_handler(
        quick=lambda: Shell("echo done"), failing=lambda: Shell("exit 3"), endless=lambda: Shell("sleep 300")
    )


@pytest.mark.req("B-01", "K-08")
@pytest.mark.parametrize("inside", [False, True])
def test_a_kind_of_somebody_elses_package_keeps_the_promises_of_a_job(plugin: None, inside: bool) -> None:
    check_job_handler(
        quick=lambda: Countdown(3, inside=inside),
        failing=lambda: Countdown(2, error="no fuel", inside=inside),
        endless=lambda: Countdown(100_000, step=0.05, inside=inside),
    )


@pytest.mark.req("B-01")
@pytest.mark.parametrize(
    ("quick", "failing", "endless", "promise"),
    [
        ("exit 1", "exit 1", "sleep 300", "what goes well is completed"),
        ("true", "true", "sleep 300", "what fails is never completed"),
        ("true", "exit 1", "true", "sees|stop|wait|turn|killed"),
    ],
)
def test_the_contract_names_the_promise_that_is_broken(quick: str, failing: str, endless: str, promise: str) -> None:
    with pytest.raises(AssertionError, match=promise):
        check_job_handler(quick=lambda: Shell(quick), failing=lambda: Shell(failing), endless=lambda: Shell(endless))
