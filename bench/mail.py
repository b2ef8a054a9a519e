"""The row about mail: ten senders, one recipient, nothing lost."""

from __future__ import annotations

import os
from collections.abc import Sequence

from bench.folders import DESCRIPTION, scratch
from bench.processes import ours, race, reference, run, wall
from bench.rounds import Sample
from bench.task_list import Ground

SENDERS = 10
RECIPIENT = "lead"


def sends_ours(ground: Ground) -> Sample:
    with scratch(ground.folder) as home:
        senders = [ours("mail", "--dir", home, *_sender(ground, number)) for number in range(SENDERS)]
        return _sent(ground, senders, ours("take", "--dir", home))


def sends_reference(ground: Ground) -> Sample:
    with scratch(ground.folder) as home:
        inboxes = os.path.join(home, "inboxes")
        os.mkdir(inboxes)
        command = ("--dir", inboxes, "--desc", DESCRIPTION)
        senders = [reference("mail", *command, *_sender(ground, number)) for number in range(SENDERS)]
        return _sent(ground, senders, reference("take", "--dir", inboxes, "--agent", RECIPIENT))


def _sender(ground: Ground, number: int) -> tuple[str, ...]:
    return ("--n", str(_each(ground)), *ground.warm_up(), "--agent", f"agent-{number}")


def _each(ground: Ground) -> int:
    return ground.size(500, 20)


def _sent(ground: Ground, senders: Sequence[Sequence[str]], reader: Sequence[str]) -> Sample:
    answers = race(senders, home=ground.folder, limit=600)
    texts: list[str] = list(run(reader, home=ground.folder)["texts"])
    expected = SENDERS * _each(ground)
    lost = expected - len(set(texts))
    faults = [
        *([f"{lost} messages were lost"] if lost else []),
        *(["messages came twice"] if len(texts) > len(set(texts)) else []),
        *(["messages of one sender changed places"] if not _in_order(texts) else []),
    ]
    errors = sum(answer.get("lock_errors", 0) for answer in answers)
    facts = {"lost": float(lost), **({"lock_errors": float(errors)} if errors else {})}
    return Sample(expected / wall(answers), facts, tuple(faults))


def _in_order(texts: Sequence[str]) -> bool:
    """Whether each sender's messages came in the order they were sent."""
    last: dict[str, int] = {}
    for text in texts:
        sender, number, _ = text.split(" ", 2)
        if int(number) <= last.get(sender, 0):
            return False
        last[sender] = int(number)
    return True
