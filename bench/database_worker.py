"""
One client of a list in PostgreSQL, inside a measured process: `ours`; the `bare` statements by the same driver, one
after the other in a transaction; or `packed`: all in one, so one way to the server and back, and the least there is.

    python bench/database_worker.py SIDE create --address ADDRESS --n 100
    python bench/database_worker.py SIDE claim  --address ADDRESS --agent NAME
    python bench/database_worker.py SIDE tell   --address ADDRESS --n 200
    python bench/database_worker.py SIDE hear   --address ADDRESS --n 200
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Any

LIST = "bench"
DESCRIPTION = "Read the old importer, write down what it accepts, then port it; keep the tests green at every step."

#: What a program does that has a counter of its own, a lock on the row it takes, a log, and somebody who listens.
COUNT = "UPDATE bare.list SET last = last + 1 WHERE id = 1 RETURNING last"
ADD = "INSERT INTO bare.task VALUES (1, %s, 'pending', NULL, %s)"
PICK = """
    SELECT id, body FROM bare.task WHERE list = 1 AND status = 'pending' AND owner IS NULL
    ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED
"""
TAKE = "UPDATE bare.task SET owner = %s WHERE list = 1 AND id = %s"
LOG = "INSERT INTO bare.log (list, task, what, body) VALUES (1, %s, %s, %s)"
TELL = "SELECT pg_notify('bare', %s)"

#: The same, packed: one statement each, a transaction of its own.
CREATE = """
    WITH counted AS (UPDATE bare.list SET last = last + 1 WHERE id = 1 RETURNING last),
    made AS (INSERT INTO bare.task SELECT 1, last, 'pending', NULL, %s FROM counted RETURNING id, body),
    logged AS (INSERT INTO bare.log (list, task, what, body) SELECT 1, id, 'create', body FROM made)
    SELECT id, pg_notify('bare', id::text) FROM made
"""
CLAIM = """
    WITH taken AS (
        UPDATE bare.task SET owner = %s WHERE list = 1 AND id = (
            SELECT id FROM bare.task WHERE list = 1 AND status = 'pending' AND owner IS NULL
            ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED
        ) RETURNING id, body
    ),
    logged AS (INSERT INTO bare.log (list, task, what, body) SELECT 1, id, 'claim', body FROM taken)
    SELECT id, pg_notify('bare', id::text) FROM taken
"""

#: Between two acts that somebody listens to, in seconds: each finds both sides at rest.
PAUSE = 0.005

#: Acts of each kind before the start.
WARM = 20

now = time.monotonic_ns


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(prog="bench.database_worker")
    parser.add_argument("side", choices=("ours", "bare", "packed"))
    parser.add_argument("verb", choices=("create", "claim", "tell", "hear"))
    parser.add_argument("--address", required=True)
    parser.add_argument("--n", type=int, default=100)
    parser.add_argument("--agent", default="ada")
    asked = parser.parse_args()
    VERBS[asked.side, asked.verb](asked)


def started() -> None:
    """Say that we are ready, and wait for the start."""
    print('{"ready": true}', flush=True)
    if sys.stdin.readline().strip() != "go":
        raise SystemExit("stdin ended before the start")


def timed(answers: Callable[[], list[Any]]) -> None:
    """Tell what was answered, and when it began and ended."""
    started()
    t0 = now()
    found = answers()
    print(json.dumps({"t0": t0, "t1": now(), "answers": found}), flush=True)
    sys.stdin.read()  # whoever leaves gives its tasks back


def ours_create(asked: argparse.Namespace) -> None:
    import taskyard

    ours_warm(asked)
    with taskyard.open(store=asked.address, list=LIST) as yard:
        yard.tasks.store.position()
        create = yard.tasks.create
        timed(lambda: [create(f"Task {number}", description=DESCRIPTION).id for number in range(asked.n)])


def ours_warm(asked: argparse.Namespace) -> None:
    """Do everything on a list of our own, so that the server has its plans: it makes them for each connection."""
    import os

    import taskyard

    with taskyard.open(store=asked.address, list=f"{LIST}-warm-{os.getpid()}", agent=asked.agent) as yard:
        for _ in range(WARM):
            yard.tasks.create("Warm", description=DESCRIPTION)
        for _ in range(WARM):
            yard.tasks.claim_next()


def ours_claim(asked: argparse.Namespace) -> None:
    import taskyard

    ours_warm(asked)
    with taskyard.open(store=asked.address, list=LIST, agent=asked.agent) as yard:
        yard.tasks.list()

        def claimed() -> list[str]:
            found: list[str] = []
            while (task := yard.tasks.claim_next()) is not None:
                found.append(task.id)
            return found

        timed(claimed)


def ours_tell(asked: argparse.Namespace) -> None:
    import taskyard

    with taskyard.open(store=asked.address, list=LIST) as yard:
        yard.tasks.create("First", description=DESCRIPTION)
        timed(lambda: told(asked.n, lambda: yard.tasks.create("Task", description=DESCRIPTION)))


def ours_hear(asked: argparse.Namespace) -> None:
    import taskyard

    with taskyard.open(store=asked.address, list=LIST) as yard:
        watching = yard.tasks.watch(since=yard.tasks.store.position() if _is_there(yard) else 0, timeout=60)
        yard.tasks.store.wait(0)

        def heard() -> list[int]:
            found: list[int] = []
            for change in watching:
                if [task for task in change.tasks.values() if task and task.subject == "Task"]:
                    found.append(now())
                if len(found) == asked.n:
                    break
            return found

        timed(heard)


def _is_there(yard: Any) -> bool:
    """Whether the teller has made the list: both begin at once, and each waits for the other."""
    deadline = now() + 10_000_000_000
    while not yard.tasks.store.position():
        if now() > deadline:
            raise SystemExit("nobody made the list")
        time.sleep(0.01)
    return True


def bare(asked: argparse.Namespace) -> Any:
    """A connection as anybody would make it."""
    import psycopg

    return psycopg.connect(asked.address, autocommit=True)


def warmed(link: Any, *acts: Callable[[], object]) -> None:
    """Have acts done, on nothing: what they write here is undone."""
    for _ in range(WARM):
        with link.transaction(force_rollback=True):
            for act in acts:
                act()


def body_of(number: int) -> str:
    return json.dumps({"subject": f"Task {number}", "description": DESCRIPTION})


def bare_create(asked: argparse.Namespace) -> None:
    link = bare(asked)

    def create(number: int) -> int:
        with link.transaction():
            task_id = int(link.execute(COUNT, prepare=True).fetchone()[0])
            body = body_of(number)
            link.execute(ADD, [task_id, body], prepare=True)
            link.execute(LOG, [task_id, "create", body], prepare=True)
            link.execute(TELL, [str(task_id)], prepare=True)
        return task_id

    warmed(link, lambda: create(0))
    timed(lambda: [create(number) for number in range(asked.n)])


def bare_claim(asked: argparse.Namespace) -> None:
    link = bare(asked)

    def claim() -> int | None:
        with link.transaction():
            found = link.execute(PICK, prepare=True).fetchone()
            if found is None:
                return None
            task_id, body = found
            link.execute(TAKE, [asked.agent, task_id], prepare=True)
            link.execute(LOG, [task_id, "claim", body], prepare=True)
            link.execute(TELL, [str(task_id)], prepare=True)
        return int(task_id)

    warmed(link, claim)
    timed(lambda: list(iter(claim, None)))


def packed_create(asked: argparse.Namespace) -> None:
    link = bare(asked)

    def create(number: int) -> int:
        return int(link.execute(CREATE, [body_of(number)], prepare=True).fetchone()[0])

    warmed(link, lambda: create(0))
    timed(lambda: [create(number) for number in range(asked.n)])


def packed_claim(asked: argparse.Namespace) -> None:
    link = bare(asked)

    def claim() -> int | None:
        row = link.execute(CLAIM, [asked.agent], prepare=True).fetchone()
        return None if row is None else int(row[0])

    warmed(link, claim)
    timed(lambda: list(iter(claim, None)))


def bare_tell(asked: argparse.Namespace) -> None:
    link = bare(asked)
    body = body_of(0)
    timed(lambda: told(asked.n, lambda: link.execute(CREATE, [body], prepare=True)))


def bare_hear(asked: argparse.Namespace) -> None:
    link = bare(asked)
    link.execute("LISTEN bare")

    def heard() -> list[int]:
        found: list[int] = []
        for _ in link.notifies(timeout=60, stop_after=None):
            found.append(now())
            if len(found) == asked.n:
                break
        return found

    timed(heard)


def told(count: int, act: Callable[[], object]) -> list[int]:
    """Do something again and again; when each began."""
    time.sleep(0.2)  # until the other listens
    found: list[int] = []
    for _ in range(count):
        found.append(now())
        act()
        time.sleep(PAUSE)
    return found


VERBS: dict[tuple[str, str], Callable[[argparse.Namespace], None]] = {
    ("ours", "create"): ours_create,
    ("ours", "claim"): ours_claim,
    ("ours", "tell"): ours_tell,
    ("ours", "hear"): ours_hear,
    ("bare", "create"): bare_create,
    ("bare", "claim"): bare_claim,
    ("packed", "create"): packed_create,
    ("packed", "claim"): packed_claim,
    ("bare", "tell"): bare_tell,
    ("bare", "hear"): bare_hear,
}

if __name__ == "__main__":
    main()
