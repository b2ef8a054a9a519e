"""Notices through a database: one receiver on many machines gets each once, and none is lost."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from pathlib import Path

import pytest

from support.hosts import Machine
from support.racing import fork
from support.wait import until
from taskyard import yard
from taskyard.errors import BadValue
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.notice import Notice
from taskyard.postgres.heartbeat import process_heartbeat
from taskyard.storage import process_registry

pytestmark = pytest.mark.req("X-01", "N-07")


def ended(machine: Machine, agent: str | None, *, count: int = 1, command: str = "true") -> list[str]:
    """Jobs that ran to their end on a machine, by id."""
    jobs = machine.jobs(agent)
    ids = [jobs.start(Shell(command)).id for _ in range(count)]
    jobs.wait_all(ids, timeout=20)
    return ids


def test_a_notice_reaches_its_receiver_on_another_machine_and_is_read_once(forge: Machine, desk: Machine) -> None:
    (job_id,) = ended(forge, "ada")

    with desk.outbox("ada") as outbox:
        assert outbox.wait(10)
        (notice,) = outbox.take()
        assert (notice.task_id, notice.recipient, notice.redelivered) == (job_id, "ada", False)
        assert (outbox.state(notice.id), forge.outbox("ada").take()) == ("delivered", [])
        assert outbox.ack([notice.id]) == (notice.id,)
        assert outbox.ack([notice.id]) == ()
        assert outbox.state(notice.id) == "read"
    assert forge.outbox(None).waiting() == []


def test_whoever_reads_brings_what_waits_here_also_without_a_relay(forge: Machine, desk: Machine) -> None:
    jobs = forge.jobs("ada")
    job = jobs.start(Shell("sleep 60"))
    pid = forge.relay_pid()
    os.kill(pid, signal.SIGSTOP)  # it lives, and does nothing
    try:
        jobs.stop(job.id, grace=0)
        assert [notice.task_id for notice in forge.outbox("ada").waiting()] == [job.id]
        assert [notice.task_id for notice in desk.outbox("ada").waiting()] == [job.id]
    finally:
        os.kill(pid, signal.SIGCONT)


def test_two_readers_of_one_name_on_two_machines_share_what_there_is(forge: Machine, desk: Machine) -> None:
    ids = ended(forge, "ada", count=12)
    until(lambda: len(desk.outbox("ada").waiting()) == 12)
    one, other = forge.outbox("ada"), desk.outbox("ada")

    got: list[str] = []
    while batch := [*one.take(2), *other.take(2)]:
        got += [notice.task_id for notice in batch]

    assert sorted(got) == sorted(ids)
    one.close()
    assert len(other.waiting()) == 6, "what one had and did not acknowledge is back"
    assert all(notice.redelivered for notice in other.take(12))
    other.close()


def test_of_readers_that_race_each_gets_what_no_other_has(forge: Machine, desk: Machine) -> None:
    ids = ended(forge, "ada", count=20)
    until(lambda: len(desk.outbox("ada").waiting()) == 20)
    got: list[str] = []
    ready = threading.Barrier(6)

    def read(machine: Machine) -> None:
        outbox = machine.outbox("ada")
        ready.wait(10)
        while taken := outbox.take(1, hold=60):
            got.extend(notice.task_id for notice in taken)

    readers = [threading.Thread(target=read, args=(machine,), daemon=True) for machine in (forge, desk) * 3]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join(20)

    assert sorted(got) == sorted(ids)


def test_what_is_held_for_a_time_comes_back_when_that_is_over_by_the_servers_clock(forge: Machine) -> None:
    ended(forge, "ada")
    outbox = forge.outbox("ada")
    assert outbox.wait(10)
    (held,) = outbox.take(hold=0.5)
    assert outbox.take() == []

    assert outbox.wait(10)
    (again,) = outbox.take(hold=60)

    assert (again.id, again.redelivered) == (held.id, True)
    assert outbox.ack([again.id]) == (again.id,)


def test_what_a_killed_receiver_had_comes_again_and_says_so(forge: Machine, desk: Machine, tmp_path: Path) -> None:
    ended(forge, "ada")
    until(lambda: desk.outbox("ada").waiting())
    settings = desk.settings._replace(holder_silence=1.0)
    taken = tmp_path / "taken"
    pid = fork()
    if not pid:
        (notice,) = yard.open_outbox(desk.home, settings, "ada").take()
        taken.write_text(notice.id, encoding="ascii")
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)

    outbox = forge.outbox("ada")
    assert outbox.wait(10)
    (notice,) = outbox.take()

    assert (notice.id, notice.redelivered) == (taken.read_text(encoding="ascii"), True)
    outbox.close()


def test_the_urgent_comes_first_and_the_rest_is_counted(forge: Machine) -> None:
    ended(forge, "ada", count=3)
    outbox = forge.outbox("ada")
    until(lambda: len(outbox.waiting()) == 3)
    last = outbox.waiting()[-1]
    forge.database.ask("UPDATE notice SET is_urgent = true WHERE id = %s", [last.id])

    batch = outbox.batch(2)

    assert (batch.notices[0].id, len(batch.notices), batch.rest) == (last.id, 2, 1)
    with pytest.raises(BadValue):
        outbox.batch(0)
    outbox.close()


def test_if_the_starter_is_gone_the_person_hears_of_it_on_any_machine(forge: Machine, desk: Machine) -> None:
    starter = process_registry.register(forge.home, "ada")
    silence = forge.settings.holder_silence
    process_heartbeat(forge.database).keep(starter.id, silence=silence)
    forge.database.ask("INSERT INTO receiver VALUES (%s, 'ada')", [starter.id])
    jobs = yard.open_jobs(forge.home, forge.settings, agent="ada", instance=starter.id)
    job = jobs.run(Shell("true", on_parent_exit="keep"))
    started = jobs.start(Shell("true", on_parent_exit="keep"))
    jobs.wait_all([job.id, started.id], timeout=20)
    jobs.close()
    until(lambda: len(desk.outbox("ada").waiting()) == 1)
    assert desk.outbox("me").waiting() == [], "ada lives, and can look for herself"

    process_heartbeat(forge.database).let_go(starter.id)
    starter.leave()

    (notice,) = desk.outbox("me").waiting()
    assert (notice.task_id, notice.orphaned_from) == (started.id, "ada")


def test_a_hold_on_one_machine_holds_on_all(forge: Machine, desk: Machine) -> None:
    ended(forge, None)
    until(lambda: desk.outbox().waiting())
    yard.pause_delivery(forge.home, forge.settings)

    assert desk.outbox().take() == []
    assert not desk.outbox().wait(0.05)
    assert desk.outbox().take(force=True, hold=0.01)
    assert yard.resume_delivery(desk.home, desk.settings)
    forge.outbox()
    assert not desk.outbox().is_held()


async def _first(machine: Machine, count: int) -> list[Notice]:
    found: list[Notice] = []
    async for notice in machine.outbox("ada"):
        found.append(notice)
        if len(found) == count:
            return found
    raise AssertionError


def test_a_program_with_an_event_loop_gets_them_as_they_come(forge: Machine, desk: Machine) -> None:
    async def both() -> list[Notice]:
        hearing = asyncio.create_task(_first(desk, 2))
        await asyncio.to_thread(ended, forge, "ada", count=2)
        return await asyncio.wait_for(hearing, 20)

    assert len({notice.id for notice in asyncio.run(both())}) == 2
