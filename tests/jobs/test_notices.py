"""An outbox: every notice once, whoever dies, the urgent first."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from support.ended_jobs import end_job, stall_job
from support.killing import calls_of, killed_before
from support.linearizable import Event
from support.racing import Racer, answered, race
from support.scale import FULL, scale
from taskyard import config
from taskyard.core.system import boottime
from taskyard.errors import BadName, BadValue
from taskyard.jobs import notices
from taskyard.jobs import outbox as jobs_outbox
from taskyard.jobs.notice import Notice
from taskyard.jobs.notices import Outbox
from taskyard.storage import process_registry

TAKE_AND_SLEEP = """
import sys, time
from taskyard.jobs.notices import Outbox
print(*[notice.id for notice in Outbox(sys.argv[1], "ada").take()], flush=True)
time.sleep(60)
"""


@pytest.fixture
def home() -> str:
    return config.home()


def taker(home: str) -> subprocess.Popen[str]:
    """A process that takes what waits for ada, and does not acknowledge it."""
    return subprocess.Popen([sys.executable, "-c", TAKE_AND_SLEEP, home], stdout=subprocess.PIPE, text=True)


def first_line(child: subprocess.Popen[str]) -> list[str]:
    assert child.stdout is not None
    return child.stdout.readline().split()


def killed(child: subprocess.Popen[str]) -> None:
    with child:
        child.kill()


@pytest.mark.req("B-05", "N-07")
def test_the_end_of_a_job_is_told_once_to_whoever_started_it(home: str) -> None:
    job_id = end_job(home, "ada", exit_code=3, toolUseId="toolu_1")

    with Outbox(home, "bob") as other, Outbox(home, "ada") as outbox:
        assert other.take() == []
        (notice,) = outbox.take()
        assert outbox.ack([notice.id]) == (notice.id,)
        assert (outbox.take(), outbox.ack([notice.id])) == ([], ())

    assert (notice.task_id, notice.status, notice.exit_code) == (job_id, "failed", 3)
    assert (notice.tool_use_id, notice.recipient, notice.redelivered) == ("toolu_1", "ada", False)
    assert notice.summary == 'Background command "Fail it" failed with exit code 3'
    assert outbox.state(notice.id) == "read"


@pytest.mark.req("B-05")
def test_a_receiver_killed_between_taking_and_acknowledging_gives_the_notice_back_marked(home: str) -> None:
    end_job(home, "ada")
    child = taker(home)
    taken = first_line(child)

    with Outbox(home, "ada") as outbox:
        assert (outbox.take(), outbox.state(taken[0])) == ([], "delivered")  # it lives: nobody else gets it
        killed(child)
        (notice,) = outbox.take()
        assert ([notice.id], notice.redelivered) == (taken, True)
        assert outbox.ack([notice.id]) == (notice.id,)
        assert outbox.take() == []


@pytest.mark.req("B-05")
def test_a_death_between_any_two_system_calls_of_taking_and_acknowledging_loses_and_doubles_nothing(home: str) -> None:
    def prepare() -> Callable[[], object]:
        outbox = Outbox(home, "ada")
        return lambda: outbox.ack([notice.id for notice in outbox.take()])

    end_job(home, "ada")
    count = len(calls_of(prepare))
    for number in range(0, count, 1 if FULL else 5):
        job_id = end_job(home, "ada")
        killed_before(number, prepare)
        with Outbox(home, "ada") as outbox:
            left = outbox.take()
            assert [notice.task_id for notice in left] in ([job_id], []), f"before call {number}"
            outbox.ack([notice.id for notice in left])
        assert [outbox.state(one.id) for one in jobs_outbox.job_notices(home, job_id)] == ["read"], (
            f"before call {number}"
        )


@pytest.mark.req("B-05")
def test_of_three_racing_receivers_each_notice_is_acknowledged_by_one(home: str, tmp_path: Path) -> None:
    jobs = [end_job(home, "ada") for _ in range(scale(200))]

    def work(racer: Racer) -> None:
        outbox = Outbox(home, "ada")
        racer.start()
        while found := outbox.take(2):
            for notice in found:
                racer.do("ack", (notice.task_id,), lambda one=notice: outbox.ack([one.id]) != ())

    history: list[Event] = race(3, work, tmp_path / "race")

    assert sorted(str(event.args[0]) for event in answered(history, "ack", True)) == sorted(jobs)
    assert len(answered(history, "ack")) == len(jobs)


@pytest.mark.req("B-05")
def test_a_notice_counts_as_read_when_the_next_is_asked_for(home: str) -> None:
    for at in (1, 2):
        end_job(home, "ada", at=at)
    with Outbox(home, "ada") as outbox:
        reading = iter(outbox)
        first = next(reading)
        assert outbox.state(first.id) == "delivered"
        second = next(reading)
        assert (outbox.state(first.id), outbox.state(second.id)) == ("read", "delivered")
        assert list(reading) == []
        assert outbox.state(second.id) == "read"


@pytest.mark.req("B-05")
def test_what_was_taken_for_a_time_returns_after_it_and_a_late_acknowledgement_counts(home: str) -> None:
    end_job(home, "ada")
    outbox = Outbox(home, "ada")
    (notice,) = outbox.take(hold=0.05)
    assert outbox.take() == []

    assert outbox.wait(10)
    assert [one.redelivered for one in outbox.waiting()] == [True]
    assert outbox.ack([notice.id]) == (notice.id,)
    assert outbox.take() == []


@pytest.mark.req("N-03")
def test_the_urgent_come_first_then_the_oldest_and_the_rest_is_counted(home: str) -> None:
    late, early = end_job(home, at=2_000), end_job(home, at=1_000)
    urgent = end_job(home, at=3_000, priority="next")
    with Outbox(home) as outbox:
        batch = outbox.batch(2)
        assert ([one.task_id for one in batch.notices], batch.rest) == ([urgent, early], 1)
        assert ([one.task_id for one in batch.first], [one.task_id for one in batch.later]) == ([urgent], [early])
        assert [one.task_id for one in outbox.take()] == [late]


@pytest.mark.req("N-03")
def test_a_batch_is_bounded_by_characters_too_but_never_empty(home: str) -> None:
    for at in range(3):
        end_job(home, at=at)
    with Outbox(home) as outbox:
        one = outbox.batch(characters=1)
        assert (len(one.notices), one.rest) == (1, 2)


@pytest.mark.req("N-07")
def test_what_somebody_waits_for_another_way_is_left_where_it_is(home: str) -> None:
    awaited, other = end_job(home, "ada"), end_job(home, "ada")
    with Outbox(home, "ada") as outbox:
        batch = outbox.batch(exclude={awaited})
        assert ([notice.task_id for notice in batch.notices], batch.rest) == ([other], 0)
        assert outbox.batch(exclude={awaited}).notices == ()
        assert [notice.task_id for notice in outbox.take()] == [awaited], "it is there for whoever wants it after all"


@pytest.mark.req("N-03")
def test_an_urgent_one_that_comes_while_others_are_read_is_the_next(home: str) -> None:
    for at in range(5):
        end_job(home, at=at)
    with Outbox(home) as outbox:
        reading = iter(outbox)
        next(reading)
        urgent = end_job(home, priority="next")
        assert next(reading).task_id == urgent


@pytest.mark.req("N-07")
def test_waiting_ends_when_a_notice_comes_and_no_sooner(home: str) -> None:
    outbox = Outbox(home, "ada")
    assert not outbox.wait(0.05)
    end_job(home, "bob")
    answers: list[bool] = []
    waiting = threading.Thread(target=lambda: answers.append(outbox.wait(20)))
    waiting.start()
    waiting.join(timeout=0.1)
    assert waiting.is_alive()
    end_job(home, "ada")
    waiting.join(timeout=10)
    assert answers == [True]


@pytest.mark.req("N-07")
def test_the_very_first_notice_wakes_whoever_waits_however_its_box_comes_into_being(home: str) -> None:
    slept: list[float] = []
    for number in range(scale(300)):
        fresh = f"{home}-{number}"
        os.mkdir(fresh, 0o700)
        ending = threading.Timer(0.002 * (number % 5), end_job, (fresh, "ada"))
        ending.start()
        began = boottime()
        assert Outbox(fresh, "ada").wait(3)
        slept.append(boottime() - began)
        ending.join()

    assert max(slept) < 2.5  # else it was the end of the wait that found it, not the notice


@pytest.mark.req("B-05")
def test_waiting_ends_when_the_one_who_has_it_in_hand_dies(home: str) -> None:
    end_job(home, "ada")
    child = taker(home)
    first_line(child)
    killer = threading.Timer(0.1, os.kill, (child.pid, signal.SIGKILL))
    killer.start()
    with child, Outbox(home, "ada") as outbox:
        assert outbox.wait(20)
        assert [notice.redelivered for notice in outbox.take()] == [True]


@pytest.mark.req("B-09")
def test_a_hold_keeps_everything_from_agents_until_released_and_a_person_may_force_it(home: str) -> None:
    end_job(home, "ada")
    notices.pause_delivery(home)
    outbox = Outbox(home, "ada")
    assert (outbox.take(), list(outbox), outbox.wait(0.05)) == ([], [], False)
    with Outbox(home, None) as person:
        assert [notice.recipient for notice in person.take(force=True)] == ["ada"]

    releaser = threading.Timer(0.1, notices.resume_delivery, (home,))
    releaser.start()
    assert outbox.wait(20)
    assert len(outbox.take()) == 1
    assert notices.resume_delivery(home) is False


def test_everyones_notices_are_seen_and_taken_by_one_who_asks_for_all(home: str) -> None:
    jobs = {end_job(home, "ada"), end_job(home, "bob"), end_job(home)}
    with Outbox(home, None) as outbox:
        assert {notice.task_id for notice in outbox.waiting()} == jobs
        assert {notice.task_id: notice.orphaned_from for notice in outbox.take()} == dict.fromkeys(jobs)


@pytest.mark.req("N-07")
def test_an_asynchronous_reader_gets_what_waits_and_what_comes(home: str) -> None:
    first = end_job(home, "ada")

    async def read() -> list[Notice]:
        found: list[Notice] = []
        async for notice in Outbox(home, "ada"):
            found.append(notice)
            if len(found) == 2:
                return found
            asyncio.get_running_loop().call_later(0.05, end_job, home, "ada")
        raise AssertionError("it ended")

    found = asyncio.run(asyncio.wait_for(read(), 20))

    assert found[0].task_id == first
    assert Outbox(home).state(found[0].id) == "read"


def test_an_asynchronous_reader_that_gives_up_leaves_no_thread_waiting(home: str) -> None:
    async def read() -> None:
        async for _ in Outbox(home, "ada"):
            raise AssertionError("there is nothing")

    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(read(), 0.1))  # would hang at the loop's end if the thread went on


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"news": {}}', b'{"news": {"id": 1}}', b"\xff\xfe"])
def test_what_is_no_notice_is_kept_apart_reported_and_hinders_nothing(home: str, content: bytes) -> None:
    job_id = end_job(home)
    box = jobs_outbox.box_of(home, "me")
    assert box.put("0643a11c-8712-8e4f-a5d3-f19c20b7e441", content)

    with Outbox(home) as outbox:
        assert [notice.task_id for notice in outbox.take()] == [job_id]
        (damaged,) = outbox.damaged
        assert Path(damaged.file).read_bytes() == content


def test_a_planted_link_is_neither_followed_nor_taken(home: str, tmp_path: Path) -> None:
    end_job(home)
    secret = tmp_path / "secret"
    secret.write_text("{}", encoding="utf-8")
    os.symlink(secret, f"{jobs_outbox.box_of(home, 'me').path}/new/0643a11c-8712-8e4f-a5d3-f19c20b7e441")

    with Outbox(home) as outbox:
        assert len(outbox.take()) == 1
        assert len(outbox.damaged) == 1
    assert secret.exists()


@pytest.mark.req("N-04")
def test_a_job_that_waits_for_an_answer_is_told_of_without_an_end(home: str) -> None:
    job_id = stall_job(home, takesInput=True)
    with Outbox(home) as outbox:
        (notice,) = outbox.take()
    assert (notice.task_id, notice.status, notice.is_end, notice.tail) == (job_id, None, False, "Overwrite? (y/n) ")
    assert notice.hint == f"Answer with: taskyard send {job_id} TEXT"


def test_bad_values_are_refused(home: str) -> None:
    with pytest.raises(BadName):
        Outbox(home, "")
    with pytest.raises(BadValue):
        Outbox(home).take(0)
    with pytest.raises(BadValue):
        Outbox(home).ack(["../../etc/passwd"])


def test_what_an_agents_instance_took_stays_in_its_hands_after_the_outbox_is_closed(home: str) -> None:
    end_job(home, "ada")
    with process_registry.register(home, "ada") as ada:
        with Outbox(home, "ada", instance=ada) as outbox:
            outbox.take()
        assert Outbox(home, "ada").take() == []
    assert [notice.redelivered for notice in Outbox(home, "ada").waiting()] == [True]
