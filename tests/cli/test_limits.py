"""`taskyard limits`: rate limits are listed, and a person lifts one early."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

import taskyard as library
from support.cli import taskyard
from support.wait import until

_PROGRAM = """
import json, pathlib, sys
sys.stdin.read()
mark = pathlib.Path({mark!r})
if not mark.exists():
    mark.touch()
    print(json.dumps({{"type": "limited", "seconds": 3600, "text": "429 quota used up"}}), flush=True)
    sys.exit(1)
print("Done at last.")
"""


@pytest.mark.req("Q-01")
def test_an_agent_continues_at_once_when_a_person_lifts_its_rate_limit(tmp_path: Path) -> None:
    program = tmp_path / "limited.py"
    program.write_text(_PROGRAM.format(mark=str(tmp_path / "asked")), encoding="utf-8")
    command = shlex.join([sys.executable, str(program)])
    assert taskyard("limits").out == "No account is rate-limited.\n"
    job = taskyard("agent", "Go", "--engine", "command", "--command", command, "-d", "-q").out.strip()
    until(lambda: taskyard("limits", "--json").data, what="the limit is listed")

    [limit] = taskyard("limits", "--json").data
    assert limit["reason"] == "429 quota used up"
    assert limit["account"] in taskyard("limits").out
    with library.open() as yard:
        assert list(yard.jobs.rate_limits()) == [limit["account"]]
        assert not yard.jobs.get(job).is_final
        assert taskyard("limits", "clear", "somebody-else").code == 4
        assert taskyard("limits", "clear").code == 2

        lifted = taskyard("limits", "clear", limit["provider"])

        assert lifted.out == f"Lifted the rate limit of {limit['account']}.\n"
        assert yard.jobs.wait(job, timeout=20).status.value == "completed"
        assert not yard.jobs.lift_rate_limit(limit["account"])
    assert taskyard("limits", "--json").data == []
