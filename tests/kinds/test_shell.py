"""A command line in the background, as a kind."""

from __future__ import annotations

import pytest

from taskyard import BadValue, Shell
from taskyard.runtime.jobs import Jobs


@pytest.mark.req("K-01")
def test_a_shell_that_watches_something_can_be_told_apart(jobs: Jobs) -> None:
    watches = jobs.start(Shell("true", kind="monitor"))
    plain = jobs.start(Shell("true"))

    assert (jobs.get(watches.id).facts.get("kind"), jobs.get(plain.id).facts) == ("monitor", {})
    with pytest.raises(BadValue, match="monitor"):
        jobs.start(Shell("true", kind="dream"))
