"""The relay as a process: one for a home, there when it is needed, gone when it is not, and nothing of ours in it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from support.hosts import Machine, Machines
from support.postgres import Server
from support.wait import until
from taskyard.core.system import process_alive, process_start
from taskyard.jobs.kinds.shell import Shell
from taskyard.postgres.relay import relay
from taskyard.postgres.relay.ensure_running import STARTING_BYTE, ensure_relay, lock_path
from taskyard.storage.locks import is_locked

pytestmark = pytest.mark.req("X-01")

#: A database that nobody serves.
GONE = "postgresql://postgres@/yard?host=/nowhere/at/all"


def was_relay(machine: Machine) -> bool:
    """Be the relay of a machine until there is nothing to do; whether we were."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    try:
        return relay.run(machine.host, machine.database, machine.settings)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_whoever_asks_at_once_gets_one_relay(forge: Machine) -> None:
    forge.jobs()
    made: list[bool] = []
    asking = [
        threading.Thread(target=lambda: made.append(ensure_relay(forge.home, forge.address)), daemon=True)
        for _ in range(16)
    ]
    for one in asking:
        one.start()
    for one in asking:
        one.join(20)

    assert made.count(True) == 1
    first = forge.relay_pid()
    assert not ensure_relay(forge.home, forge.address)
    until(lambda: not is_locked(lock_path(forge.home), STARTING_BYTE))
    assert forge.relay_pid() == first


def test_a_command_line_which_has_next_to_nothing_open_brings_a_relay(forge: Machine, desk: Machine) -> None:
    forge.run("ps")  # be on that machine
    words = [sys.executable, "-m", "taskyard", "run", "-d", "--", "sleep", "60"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=True)

    until(lambda: [job.id for job in desk.jobs().list()] == [done.stdout.strip()])


def test_a_relay_has_nothing_of_whoever_started_it(forge: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_OURS", "1")
    monkeypatch.setenv("TASKYARD_JOB", "b00000000")
    monkeypatch.setenv("TASKYARD_AGENT", "ada")
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    try:
        forge.jobs().ensure_relay()
        pid = forge.relay_pid()
    finally:
        os.close(writing)
    os.set_blocking(reading, False)
    assert os.read(reading, 1) == b"", "nobody else has the other end"
    os.close(reading)
    words = Path(f"/proc/{pid}/cmdline").read_bytes().decode()
    env = Path(f"/proc/{pid}/environ").read_bytes().decode()
    assert "postgresql" not in words
    assert "SECRET_OF_OURS" not in env and "TASKYARD_JOB" not in env and "TASKYARD_AGENT" not in env
    assert os.getsid(pid) != os.getsid(0)
    assert os.readlink(f"/proc/{pid}/cwd") == "/"
    assert [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in (0, 1, 2)] == ["/dev/null"] * 3


def test_a_relay_that_has_nothing_to_do_ends_and_says_so(
    forge: Machine, desk: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "LINGER", 0.2)
    jobs = forge.jobs()
    job = jobs.start(Shell("true"))
    forge.kill_relay(signal.SIGTERM)

    until(lambda: not forge.has_relay)
    assert was_relay(forge), "it was us"

    assert not forge.has_relay
    assert desk.jobs().get(job.id).is_final
    far = desk.jobs().find(job.id)
    assert far is not None and not far.is_reachable, "nobody need wait for it to fall silent"


def test_a_relay_whose_database_is_gone_for_good_gives_up_once_no_job_lives(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "_LONGEST_AWAY", 0.5)
    alone = machines("alone", store=GONE)
    jobs = alone.jobs()
    job = jobs.start(Shell("true"))
    until(lambda: jobs.get(job.id).is_final)
    alone.relay_pid()
    alone.kill_relay()

    assert was_relay(alone)

    assert not alone.has_relay
    assert Path(alone.home, "jobs", job.id).is_dir(), "what is not told yet waits for the next"


def test_a_relay_for_another_database_makes_way_for_one_for_this(machines: Machines, desk: Machine) -> None:
    wrong = machines("forge", store=GONE)
    wrong.jobs().start(Shell("sleep 60"))
    first = wrong.relay_pid()

    forge = machines("forge")
    job = forge.jobs().start(Shell("sleep 60"))

    until(lambda: job.id in [each.id for each in desk.jobs().list()], timeout=20)
    assert forge.relay_pid() != first


def test_a_relay_that_is_refused_gives_up_soon(
    machines: Machines, postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "LINGER", 0.2)
    refused = machines("refused", store=postgres.address("nowhere"))
    refused.jobs().start(Shell("true"))
    refused.relay_pid()
    refused.kill_relay()

    assert was_relay(refused)

    assert not refused.has_relay


def test_a_relay_ends_with_its_home(machines: Machines) -> None:
    alone = machines("alone", store=GONE)
    alone.jobs().ensure_relay()
    pid = alone.relay_pid()
    start = process_start(pid)

    os.rename(alone.home, f"{alone.home}-elsewhere")

    until(lambda: not process_alive(pid, start), timeout=20)
    assert not os.path.exists(alone.home), "nor does it come back"


def test_where_there_is_one_another_leaves_at_once(forge: Machine) -> None:
    forge.jobs().start(Shell("sleep 60"))
    forge.relay_pid()

    assert relay.run(forge.host, forge.database, forge.settings) is False


def test_what_comes_while_a_relay_goes_is_seen_by_it_or_brings_another(
    forge: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever starts a job looks at the lock after; the relay looks for jobs after it gave the lock back."""
    monkeypatch.setattr(relay, "LINGER", 0.0)
    jobs = forge.jobs()
    farewells: list[str] = []

    def farewell(*_: object) -> None:
        if not farewells:  # the lock is still ours: whoever starts a job now starts no relay
            farewells.append(jobs.start(Shell("true")).id)
            jobs.wait_all(farewells, timeout=20)

    monkeypatch.setattr(relay, "farewell", farewell)
    assert was_relay(forge)

    assert forge.database.ask("SELECT is_final FROM job WHERE id = ANY(%s)", [farewells]) == [(True,)]


def test_a_claim_made_inside_a_job_is_believed_for_as_long_as_the_job_lives(machines: Machines) -> None:
    forge = machines("forge", silence=1.0)
    jobs = forge.jobs()
    forge.run("task", "add", "Port the importer", "--list", "plan")
    job = jobs.start(Shell(f"{sys.executable} -m taskyard task claim 1 --by ada --list plan && sleep 60"))
    alive = "SELECT bool_and(until > clock_timestamp()) FROM instance WHERE id = %s"
    until(lambda: forge.run("task", "show", "1", "--list", "plan", "--json").data["owner"] == "ada", timeout=20)

    began = forge.database.ask("SELECT clock_timestamp()")[0][0]
    beyond = "SELECT clock_timestamp() > %s + interval '2.5 seconds'"
    while not forge.database.ask(beyond, [began])[0][0]:
        assert forge.database.ask(alive, [job.id]) == [(True,)]
    assert forge.run("task", "show", "1", "--list", "plan", "--json").data["owner"] == "ada"

    jobs.stop(job.id, grace=0)
    until(lambda: forge.run("task", "show", "1", "--list", "plan", "--json").data["owner"] is None, timeout=20)


def test_a_job_that_is_gone_from_its_machine_is_lost(forge: Machine, desk: Machine) -> None:
    jobs = forge.jobs()
    job = jobs.start(Shell("sleep 60"))
    until(lambda: desk.jobs().list())
    forge.kill_relay()
    jobs.stop(job.id, grace=0)
    shutil.rmtree(Path(forge.home) / "jobs" / job.id)

    ensure_relay(forge.home, forge.address)

    end = desk.jobs().wait(job.id, timeout=10).end
    assert end is not None and (end.cause, end.error) == ("lost", "its host no longer knows it")


def test_a_stream_of_events_that_begins_anew_is_forwarded_on(forge: Machine) -> None:
    jobs = forge.jobs()
    for _ in range(2):
        jobs.run(Shell("true"), timeout=20)
    until(lambda: len(list(forge.events(0))) == 4)
    forge.kill_relay()
    for segment in (Path(forge.home) / "events").iterdir():
        segment.unlink()

    jobs.run(Shell("true"), timeout=20)

    until(lambda: len(list(forge.events(0))) == 6)
    assert forge.database.ask("SELECT stream, count(*) FROM event GROUP BY 1 ORDER BY 1") == [(0, 4), (1, 2)]
