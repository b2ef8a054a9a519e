"""The rows about a list in PostgreSQL: ours, and the bare statements that do the same, by the same driver."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import statistics
import sys
from collections import Counter

from bench.processes import ROOT, NotReady, race, wall
from bench.rounds import Sample
from bench.task_list import AGENTS, Ground

#: What the bare statements keep: the same tasks, the same log, the same word to whoever listens. No rules, no leases,
#: nothing that makes a repeated request harmless.
BARE = """
    CREATE SCHEMA bare;
    CREATE TABLE bare.list (id integer PRIMARY KEY, last bigint NOT NULL);
    CREATE TABLE bare.task (list integer, id bigint, status text, owner text, body text, PRIMARY KEY (list, id));
    CREATE TABLE bare.log (list integer, id bigint GENERATED ALWAYS AS IDENTITY, task bigint, what text, body text,
                           PRIMARY KEY (list, id));
    CREATE INDEX ON bare.task (list, id) WHERE status = 'pending' AND owner IS NULL;
"""


def creates(ground: Ground, side: str) -> Sample:
    """Ten clients, each making tasks on one list."""
    each = ground.size(200, 10)
    address = _fresh()
    racers = [_command(side, "create", address, "--n", str(each)) for _ in range(AGENTS)]
    answers = race(racers, home=ground.folder)
    ids = Counter(str(task_id) for answer in answers for task_id in answer["answers"])
    faults = () if len(ids) == AGENTS * each else ("an id was given twice",)
    return Sample(AGENTS * each / wall(answers), faults=faults)


def claims(ground: Ground, side: str) -> Sample:
    """Ten clients, each taking the first free task of one list until none is left."""
    count = ground.size(2000, 50)
    address = _fresh()
    _filled(address, count)
    names = [f"agent-{number}" for number in range(AGENTS)]
    answers = race([_command(side, "claim", address, "--agent", name) for name in names], home=ground.folder)
    taken = Counter(str(task_id) for answer in answers for task_id in answer["answers"])
    twice = sum(times > 1 for times in taken.values())
    faults = [
        *([f"{twice} tasks were claimed twice"] if twice else []),
        *([f"{count - len(taken)} tasks were claimed by nobody"] if len(taken) != count else []),
    ]
    return Sample(count / wall(answers), {"double_claims": float(twice)}, tuple(faults))


def notify(ground: Ground, side: str) -> Sample:
    """From one client's act to another's knowledge of it: the median."""
    address, count = _fresh(), ground.size(200, 20)
    told, heard = race(
        [_command(side, verb, address, "--n", str(count)) for verb in ("tell", "hear")], home=ground.folder
    )
    delays = [there - here for here, there in zip(told["answers"], heard["answers"])]
    faults = () if len(heard["answers"]) == count else ("some changes were not heard of",)
    return Sample(statistics.median(delays) / 1e6, {"p95_ms": _p95(delays) / 1e6}, faults)


def _p95(delays: list[int]) -> float:
    return statistics.quantiles(delays, n=20)[-1]


def _command(side: str, verb: str, address: str, *args: str) -> list[str]:
    worker = os.path.join(ROOT, "bench", "database_worker.py")
    return [sys.executable, "-P", worker, side, verb, "--address", address, *args]


@functools.cache
def _server() -> object:
    """A server of the bench's own, until it ends; its files are in memory, as it is not the disk that is measured."""
    sys.path.insert(0, os.path.join(ROOT, "tests"))
    try:
        from support.postgres import server
    except ModuleNotFoundError as error:
        raise NotReady(f"The rows about PostgreSQL need {error.name}: `make setup`.") from error
    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    try:
        return stack.enter_context(server(below="/dev/shm"))
    except AssertionError as error:
        raise NotReady(str(error)) from error


def _fresh() -> str:
    """The address of a new database, with both sides' tables."""
    import psycopg

    address: str = _server().new_database()  # type: ignore[attr-defined]
    with psycopg.connect(address, autocommit=True) as link:
        link.execute(BARE.encode())
        link.execute("INSERT INTO bare.list VALUES (1, 0)")
    return address


def _filled(address: str, count: int) -> None:
    """Put the same tasks on both sides' lists."""
    import psycopg

    import taskyard
    from bench.database_worker import DESCRIPTION, LIST

    with taskyard.open(store=address, list=LIST) as yard:
        for number in range(1, count + 1):
            yard.tasks.create(f"Task {number}", description=DESCRIPTION)
    with psycopg.connect(address, autocommit=True) as link:
        link.execute(
            "INSERT INTO bare.task SELECT 1, n, 'pending', NULL, %s FROM generate_series(1, %s) AS n",
            [f'{{"subject": "Task", "description": "{DESCRIPTION}"}}', count],
        )
        link.execute("UPDATE bare.list SET last = %s", [count])
        link.execute("VACUUM ANALYZE")
