"""One stream of events for all machines: in order, each once, from any id on."""

from __future__ import annotations

import asyncio
import threading

import pytest

from support.hosts import Machine
from support.wait import until
from taskyard.errors import BadValue, EventsGone, JobNotFound
from taskyard.jobs.events import Event
from taskyard.jobs.kinds.shell import Shell

pytestmark = pytest.mark.req("X-01", "N-06")


def kinds(found: list[Event]) -> list[tuple[str, str]]:
    return [(event.task_id, event.subtype.removeprefix("task_")) for event in found]


def test_the_events_of_two_machines_are_one_stream_that_goes_on_from_any_id(forge: Machine, desk: Machine) -> None:
    one = forge.jobs().run(Shell("true"), timeout=20)
    until(lambda: len(list(desk.events())) == 2)
    other = desk.jobs().run(Shell("true"), timeout=20)

    until(lambda: len(list(forge.events(0))) == 4)
    found = list(forge.events(0))

    assert kinds(found) == [
        (one.id, "started"),
        (one.id, "notification"),
        (other.id, "started"),
        (other.id, "notification"),
    ]
    assert [event.id for event in found] == [1, 2, 3, 4]
    assert kinds(list(forge.events(3))) == [(other.id, "notification")]
    assert kinds(list(desk.events(job=one.id))) == kinds(found[:2])
    assert found == list(desk.events())


def test_whoever_follows_hears_of_another_machine_and_stays_until_the_job_is_over(
    forge: Machine, desk: Machine
) -> None:
    jobs = forge.jobs()
    job = jobs.start(Shell("read x", stdin=True))
    until(lambda: desk.jobs().list())
    events = desk.events(0, follow=True, job=job.id)
    heard: list[Event] = []
    follower = threading.Thread(target=lambda: heard.extend(events), daemon=True)
    follower.start()

    jobs.send(job.id, "", close=True)
    follower.join(10)

    assert not follower.is_alive()
    assert kinds(heard) == [(job.id, "started"), (job.id, "notification")]
    assert desk.jobs().get(job.id).is_final, "who hears of an end finds it"


def test_a_follower_is_ended_from_another_thread(forge: Machine) -> None:
    events = forge.events(follow=True)
    follower = threading.Thread(target=lambda: list(events), daemon=True)
    follower.start()
    events.close()
    follower.join(10)

    assert not follower.is_alive()


def test_a_program_with_an_event_loop_follows(forge: Machine, desk: Machine) -> None:
    async def two() -> list[Event]:
        found: list[Event] = []
        async for event in desk.events(follow=True):
            found.append(event)
            if len(found) == 2:
                break
        return found

    async def both() -> list[Event]:
        following = asyncio.create_task(two())
        await asyncio.to_thread(forge.jobs().run, Shell("true"))
        return await asyncio.wait_for(following, 20)

    assert [event.subtype for event in asyncio.run(both())] == ["task_started", "task_notification"]


def test_what_is_no_longer_kept_is_said(forge: Machine) -> None:
    forge.jobs().run(Shell("true"), timeout=20)
    until(lambda: len(list(forge.events())) == 2)
    forge.database.ask("UPDATE tally SET value = 1 WHERE name = 'event_floor'")
    forge.database.ask("DELETE FROM event WHERE id <= 1")

    assert [event.id for event in forge.events()] == [2]
    with pytest.raises(EventsGone) as caught:
        forge.events(0)
    assert (caught.value.first, caught.value.last) == (1, 2)
    with pytest.raises(EventsGone):
        forge.events(3)
    with pytest.raises(BadValue):
        forge.events(-1)
    with pytest.raises(JobNotFound):
        forge.events(job="b00000000")
    assert forge.events().skip() == 2
