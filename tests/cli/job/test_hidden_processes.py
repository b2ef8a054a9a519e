"""Where `/proc` hides processes of other users, an empty process list is no proof that a job has ended."""

from __future__ import annotations

import os
import shlex
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from support.cli import taskyard
from support.headless import size
from support.hidden import as_other, setuid_program, taskyard_without_sight
from support.job_cli import ended, job
from support.jobs import marked
from support.wait import until


@pytest.mark.req("B-09")
def test_stop_names_a_hidden_process_that_it_may_not_signal(tmp_path: Path) -> None:
    setpriv = setuid_program(tmp_path, "setpriv")
    hidden = shlex.join(as_other(setpriv, "sh", "-c", "while :; do echo x; sleep 0.01; done"))
    job_id = taskyard_without_sight("run", "-d", "--json", "--grace", "0", "--", f"setsid {hidden} & exec sleep 60")[
        "id"
    ]
    written = Path(job(job_id)["output"])
    until(lambda: size(written) > 0)

    stopped = taskyard("stop", job_id, "--json")

    survivors = stopped.data["survivors"]
    try:
        assert (stopped.code, stopped.data["outcome"], stopped.data["proof"]) == (1, "partial", "partial")
        before = size(written)
        until(lambda: size(written) > before, what="the hidden process writes on")
        assert any(b"while" in Path(f"/proc/{pid}/cmdline").read_bytes() for pid in survivors)
    finally:
        for pid in survivors:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.mark.req("B-08")
def test_a_natural_end_that_leaves_a_hidden_process_is_not_proved(tmp_path: Path) -> None:
    setpriv = setuid_program(tmp_path, "setpriv")
    hidden = shlex.join(as_other(setpriv, "sh", "-c", "echo x; exec sleep 9396.25"))
    command = f'setsid {hidden} & while [ ! -s "$TASKYARD_HOME/jobs/$TASKYARD_JOB/output" ]; do sleep 0.01; done'
    job_id = taskyard_without_sight("run", "-d", "--json", "--grace", "0", "--", command)["id"]

    over = ended(job_id)

    left = marked("sleep\x009396.25")
    try:
        assert left
        assert (over["exit_code"], over["proof"], over["survivors"]) == (0, "partial", left)
    finally:
        for pid in left:
            os.kill(pid, signal.SIGKILL)


@pytest.mark.req("B-09")
def test_stop_ends_a_hidden_setuid_process_and_proves_it(tmp_path: Path) -> None:
    sleep = setuid_program(tmp_path, "sleep")
    command = f"setsid {shlex.quote(str(sleep))} 9397.25 & exec sleep 60"
    job_id = taskyard_without_sight("run", "-d", "--json", "--", command)["id"]
    until(lambda: marked(f"{sleep}\x009397.25"))

    stopped = taskyard("stop", job_id, "--json").data

    assert (stopped["outcome"], stopped["proof"], stopped["survivors"]) == ("stopped", "proved", [])
    assert marked(f"{sleep}\x009397.25") == []
