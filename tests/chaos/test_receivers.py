"""Notices under load: receivers of one name and their heirs, killed at random, and all held back now and then."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.ended_jobs import end_job
from support.linearizable import now
from support.racing import Racer, answered
from support.receivers import Receivers, check_deliveries, read_by, within
from support.scale import scale
from support.wait import until
from taskyard.jobs import notices
from taskyard.jobs.notices import Outbox
from taskyard.storage import process_registry

#: An earlier life of hers, in which she started some of the jobs.
LONG_DEAD = "000000000000"

Spans = list[tuple[int, int]]


class Attack:
    """Somebody who ends jobs of ada, lets her die and come back, and holds all notices back for moments."""

    def __init__(self, home: str, folder: Path, seed: int) -> None:
        self._home = home
        self._chance = random.Random(seed)
        self._id = folder / "ada"
        self.holds: Spans = []
        self.lives: Spans = []
        #: She herself, as a program that lives; her command line, which comes and goes; and the person.
        self.ada = Receivers(0, self._as_herself, folder / "ada herself")
        self.line = Receivers(1, lambda _: Outbox(home, "ada"), folder / "ada's command line")
        self.person = Receivers(2, lambda _: Outbox(home, "me"), folder / "the person")
        self._since = 0

    def _as_herself(self, _: Racer) -> Outbox:
        instance = process_registry.register(self._home, "ada")
        self._id.write_text(instance.id, encoding="utf-8")
        return Outbox(self._home, "ada", instance=instance)

    def end_jobs(self, count: int) -> None:
        """End so many, and let something happen between them."""
        acts: list[Callable[[], object]] = [
            lambda: None,
            self._toggle_ada,
            self._hold,
            lambda: self.person.kill_one(self._chance),
        ]
        self._toggle_ada()
        for _ in range(count):
            end_job(self._home, "ada", instance=self._chance.choice([self._id.read_text(encoding="utf-8"), LONG_DEAD]))
            act = self._chance.choices(acts, weights=[20, 1, 2, 1])[0]
            act()
            time.sleep(self._chance.random() * 0.005)

    def _toggle_ada(self) -> None:
        if self.ada.living:
            self.lives.append((self._since, now()))
            self.ada.kill(self.ada.living[0])
        else:
            self.ada.add()
            self._since = now()

    def _hold(self) -> None:
        notices.pause_delivery(self._home)
        began = now()
        time.sleep(self._chance.random() * 0.03)
        self.holds.append((began, now()))
        assert notices.resume_delivery(self._home)

    @property
    def everybody(self) -> tuple[Receivers, ...]:
        return self.ada, self.line, self.person

    def __enter__(self) -> Attack:
        return self

    def __exit__(self, *_: object) -> None:
        if self.ada.living:
            self.lives.append((self._since, now()))
        for group in self.everybody:
            group.__exit__()


@pytest.mark.req("N-07", "B-05", "B-09")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(scale(20)))
def test_of_many_receivers_and_heirs_the_right_one_gets_each_notice_once(memory: Path, seed: int) -> None:
    home, count = str(memory / "home"), scale(400)
    with Attack(home, memory, seed) as attack:
        attack.end_jobs(count)
        until(lambda: read_by(home) == count, timeout=60, what="every notice to be acknowledged")

    again = check_deliveries(home, *attack.everybody)
    taken = {
        group: [event for event in answered(group.history(), "take") if event.result] for group in attack.everybody
    }
    assert [event for event in taken[attack.person] if within(event, attack.lives)] == []  # she could take it herself
    assert [event for events in taken.values() for event in events if within(event, attack.holds)] == []
    shares = ", ".join(str(len(events)) for events in taken.values())
    deaths = sum(len(group.deaths) for group in attack.everybody)
    print(f"{count} notices, {deaths} deaths, {len(attack.holds)} holds; takes {shares}; {again} delivered again")


@pytest.mark.req("B-09", "N-07")
def test_two_who_hold_and_release_at_once_never_leave_it_half_done(memory: Path) -> None:
    home = str(memory / "home")
    end_job(home, "ada")
    for _ in range(scale(1000)):
        notices.pause_delivery(home)
        assert Outbox(home, "ada").take() == []
        assert notices.resume_delivery(home)
        assert not notices.resume_delivery(home)
    assert len(Outbox(home, "ada").take()) == 1
