"""A command line in the background, as a kind."""

from __future__ import annotations

import re
from typing import Any

import pytest

from taskyard import BadValue, Shell, UsageError
from taskyard.jobs.jobs import Jobs


@pytest.mark.req("K-01")
def test_a_shell_that_watches_something_can_be_told_apart(jobs: Jobs) -> None:
    watches = jobs.start(Shell("true", kind="monitor"))
    plain = jobs.start(Shell("true"))

    assert (jobs.get(watches.id).facts.get("kind"), jobs.get(plain.id).facts) == ("monitor", {})
    with pytest.raises(BadValue, match="monitor"):
        jobs.start(Shell("true", kind="dream"))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"command": None}, "text for bash, or a list of words"),
        ({"command": b"true"}, "text for bash, or a list of words"),
        ({"command": ["sleep", 5]}, "must be text, not int"),
        ({"pty": "yes"}, "True or False"),
        ({"stdin": 1}, "True or False"),
        ({"leave_children": None}, "True or False"),
        ({"cwd": 5}, "expected text"),
        ({"name": 5}, "expected text"),
        ({"tool_use_id": 5}, "expected text"),
        ({"env": "CI=1"}, "names with their values"),
        ({"timeout": 1e9}, "a number of seconds from 0.001 to 2,678,400"),
        ({"output_cap": 1}, "a whole number of bytes from 65,536 to 1,125,899,906,842,624"),
    ],
    ids=str,
)
def test_what_no_command_can_be_is_refused_by_its_name(jobs: Jobs, wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)) as caught:
        jobs.start(Shell(**{"command": "true", **wrong}))

    assert next(iter(wrong)).replace("_", " ") in str(caught.value).replace("_", " ")
    assert jobs.list(ended=True) == []
