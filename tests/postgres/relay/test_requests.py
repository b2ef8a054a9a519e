"""What is asked of another machine is done once, or said not to be known; a machine that is away is said to be."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import uuid

import pytest

from support.hosts import Machine, Machines
from support.wait import until
from taskyard.errors import HostAway, OutcomeUnknown, TaskyardError
from taskyard.jobs.kinds.shell import Shell
from taskyard.postgres.relay import handler
from taskyard.postgres.relay.handler import RpcClient

pytestmark = pytest.mark.req("X-01", "B-07")

_ASKED = """
    INSERT INTO request (id, host, job, verb, arguments, asked_by, reply_to, state, begun_by, changed)
    VALUES (%s, %s, %s, %s, %s, 'bob', 'nobody', %s, %s, clock_timestamp())
"""


def asked(machine: Machine, job_id: str, verb: str, *, begun_by: str | None = None, arguments: str = "{}") -> str:
    """A request as it stands in the database; begun by a relay that is no more, if one is named."""
    request = str(uuid.uuid4())
    state = "asked" if begun_by is None else "begun"
    machine.database.ask(_ASKED, [request, machine.host.id, job_id, verb, arguments, state, begun_by])
    machine.database.ask("SELECT pg_notify(%s, '')", [machine.host.channel])
    return request


def state_of(machine: Machine, request: str) -> tuple[str, str]:
    row = machine.database.ask("SELECT state, coalesce(answer, '') FROM request WHERE id = %s", [request])[0]
    return str(row[0]), str(row[1])


def test_what_a_killed_relay_had_begun_is_done_by_the_next_unless_it_was_typing(forge: Machine) -> None:
    jobs = forge.jobs()
    job = jobs.start(Shell("cat", stdin=True))
    other = jobs.start(Shell("sleep 60"))
    until(lambda: forge.database.ask("SELECT count(*) FROM job") == [(2,)])
    forge.kill_relay()
    typed = asked(forge, job.id, "answer", begun_by="dead", arguments='{"text": "once\\n"}')
    stop = asked(forge, other.id, "stop", begun_by="dead", arguments='{"grace": 0}')

    jobs.list()  # which brings a relay

    until(lambda: state_of(forge, stop)[0] == state_of(forge, typed)[0] == "done")
    assert "OutcomeUnknown" in state_of(forge, typed)[1]
    assert '"stopped"' in state_of(forge, stop)[1]
    assert jobs.read(job.id).text == b""


def test_a_request_is_carried_out_once_however_often_it_is_told(forge: Machine) -> None:
    jobs = forge.jobs()
    job = jobs.start(Shell("cat", stdin=True))
    forge.relay_pid()
    request = asked(forge, job.id, "answer", arguments='{"text": "once\\n"}')
    for _ in range(20):
        forge.database.ask("SELECT pg_notify(%s, '')", [forge.host.channel])

    until(lambda: state_of(forge, request)[0] == "done")
    jobs.send(job.id, "", close=True)
    jobs.wait(job.id, timeout=10)
    assert jobs.read(job.id).text == b"once\n"


def test_what_is_not_answered_in_time_is_withdrawn_and_never_done(
    forge: Machine, desk: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = forge.jobs().start(Shell("sleep 60"))
    there = desk.jobs()
    until(lambda: there.list())
    far = there.find(job.id)
    assert far is not None
    pid = forge.relay_pid()
    os.kill(pid, signal.SIGSTOP)
    monkeypatch.setattr(handler, "PATIENCE", 0.3)
    try:
        with pytest.raises(HostAway) as caught:
            RpcClient(desk.database, "bob").ask(far, "pause")
        assert caught.value.retryable
    finally:
        os.kill(pid, signal.SIGCONT)

    monkeypatch.undo()
    assert there.pause(job.id), "it was not paused before"


def test_an_answer_that_never_came_to_what_must_not_be_repeated_is_not_known(
    forge: Machine, desk: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = forge.jobs().start(Shell("sleep 60", stdin=True))
    there = desk.jobs()
    until(lambda: there.list())
    far = there.find(job.id)
    assert far is not None
    pid = forge.relay_pid()
    os.kill(pid, signal.SIGSTOP)
    monkeypatch.setattr(handler, "PATIENCE", 0.5)

    def begin() -> None:
        take_up = "UPDATE request SET state = 'begun', begun_by = 'x' WHERE state = 'asked' RETURNING id"
        until(lambda: forge.database.ask(take_up))

    beginning = threading.Thread(target=begin, daemon=True)
    beginning.start()
    with pytest.raises(OutcomeUnknown):
        RpcClient(desk.database, "bob").ask(far, "answer", {"text": "x\n"})
    beginning.join(10)
    os.kill(pid, signal.SIGCONT)


def test_a_request_that_no_version_knows_is_refused(forge: Machine, desk: Machine) -> None:
    job = forge.jobs().start(Shell("sleep 60"))
    there = desk.jobs()
    until(lambda: there.list())
    far = there.find(job.id)
    assert far is not None

    with pytest.raises(TaskyardError, match="that this version of Taskyard knows"):
        RpcClient(desk.database, None).ask(far, "dance")


def test_many_wait_at_once_and_none_of_them_keeps_a_stop_waiting(forge: Machine, desk: Machine) -> None:
    job = forge.jobs().start(Shell("sleep 60"))
    there = desk.jobs()
    until(lambda: there.list())
    far = there.find(job.id)
    assert far is not None
    readers = [threading.Thread(target=lambda: there.far.read(far, 0, wait=20), daemon=True) for _ in range(6)]
    for reader in readers:
        reader.start()
    until(lambda: forge.database.ask("SELECT count(*) FROM request WHERE state = 'begun'") == [(6,)])

    began = time.monotonic()
    assert there.stop(job.id, grace=0)[0].outcome == "stopped"
    assert time.monotonic() - began < 10

    for reader in readers:
        reader.join(10)
        assert not reader.is_alive(), "who waits for output hears that the job is over"


def test_jobs_of_other_machines_are_stopped_all_at_once(machines: Machines, desk: Machine) -> None:
    for name in ("forge", "mill"):
        machine = machines(name)
        for _ in range(2):
            machine.jobs().start(Shell("trap '' TERM; sleep 60 & wait; sleep 60"))
    there = desk.jobs()
    until(lambda: len(there.list()) == 4)

    began = time.monotonic()
    done = there.stop(*[job.id for job in there.list()], grace=1.0)

    assert {each.outcome for each in done} == {"stopped"}
    assert time.monotonic() - began < 5
    assert {each.job.host_name for each in done} == {"forge", "mill"}


def test_a_program_elsewhere_asks_without_a_relay_of_its_own(forge: Machine, desk: Machine) -> None:
    job = forge.jobs().start(Shell("sleep 60"))
    until(lambda: desk.jobs().list())
    desk.run("ps")  # be on that machine
    done = subprocess.run(
        [sys.executable, "-m", "taskyard", "stop", job.id, "--grace", "0"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert (done.returncode, "no process is left" in done.stdout) == (0, True), done
    assert not desk.has_relay
