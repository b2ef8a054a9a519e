"""
Our side, inside a measured process: the counterpart of `tests/node/reference.mjs`, command for command.

    python bench/worker.py create --dir TASKS_DIR [--n 500]
    python bench/worker.py claim  --dir TASKS_DIR [--n 100] [--agent NAME]
    python bench/worker.py list   --dir TASKS_DIR [--rounds 5]
    python bench/worker.py cold   --dir TASKS_DIR
    python bench/worker.py flat   --dir TASKS_DIR --small TASKS_DIR [--rounds 40] [--n 10]
    python bench/worker.py mail   --dir HOME [--n 500] [--agent NAME]
    python bench/worker.py take   --dir HOME

Each warms up (`--warm` operations), says that it is ready, waits for "go" and answers with times taken
inside. Nothing but `sys` and `time` is imported up here, so that `cold` pays for all that Taskyard loads.
"""

from __future__ import annotations

import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

    from taskyard.agents.mailbox import FileMail

LIST = "bench"
TEAM = "bench"
RECIPIENT = "lead"
DESCRIPTION = "Read the old importer, write down what it accepts, then port it; keep the tests green at every step."

now = time.monotonic_ns


def main() -> None:
    """Measure what the command line asks for."""
    if sys.argv[1:2] == ["cold"]:
        return cold(sys.argv[3], sys.argv[4:] != ["--foreign-writers", "no"])
    asked = options(sys.argv[1:])
    COMMANDS[asked.command](asked)
    return None


def options(args: list[str]) -> Namespace:
    """The command line as a namespace."""
    import argparse

    parser = argparse.ArgumentParser(prog="bench.worker")
    parser.add_argument("command", choices=sorted(COMMANDS))
    parser.add_argument("--dir", required=True)
    parser.add_argument("--small", default="")
    parser.add_argument("--n", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--warm", type=int, default=100)
    parser.add_argument("--agent", default="ada")
    parser.add_argument("--foreign-writers", dest="foreign", choices=("yes", "no"), default="yes")
    return parser.parse_args(args)


def started() -> None:
    """Say that we are ready, and wait for the start."""
    print('{"ready": true}', flush=True)
    if sys.stdin.readline().strip() != "go":
        raise SystemExit("stdin ended before the start")


def say(**answer: object) -> None:
    """One line of JSON."""
    import json

    print(json.dumps(answer), flush=True)


def timed(count: int, operation: Callable[[int], object]) -> dict[str, object]:
    """Run `operation(1 … count)` after the start; the answers, the time, and the longest single wait."""
    answers: list[object] = []
    longest = 0
    started()
    before = t0 = now()
    for number in range(1, count + 1):
        answers.append(operation(number))
        after = now()
        longest = max(longest, after - before)
        before = after
    return {"t0": t0, "t1": before, "longest": longest, "answers": answers}


def create(asked: Namespace) -> None:
    """Creates on a list."""
    import tempfile

    import taskyard

    foreign = asked.foreign == "yes"
    with (
        tempfile.TemporaryDirectory(prefix="warm-", dir=asked.dir) as folder,
        taskyard.open(tasks_dir=folder, list=LIST, agent=None, foreign_writers=foreign) as yard,
    ):
        for number in range(asked.warm):
            yard.tasks.create(f"Task {number}", description=DESCRIPTION)
    with taskyard.open(tasks_dir=asked.dir, list=LIST, agent=None, foreign_writers=foreign) as yard:
        tasks = yard.tasks
        say(**timed(asked.n, lambda number: tasks.create(f"Task {number}", description=DESCRIPTION).id))


def claim(asked: Namespace) -> None:
    """A race for the same tasks."""
    import tempfile

    import taskyard

    foreign = asked.foreign == "yes"
    with (
        tempfile.TemporaryDirectory(prefix="warm-", dir=asked.dir) as folder,
        taskyard.open(tasks_dir=folder, list=LIST, agent=None, foreign_writers=foreign) as yard,
    ):
        for number in range(1, asked.warm // 2):
            yard.tasks.create(f"Task {number}", description=DESCRIPTION)
            yard.tasks.claim(str(number), agent=asked.agent)
    with taskyard.open(tasks_dir=asked.dir, list=LIST, agent=None, foreign_writers=foreign) as yard:

        def claimed(number: int) -> str:
            try:
                yard.tasks.claim(str(number), agent=asked.agent)
            except taskyard.TaskyardError as refusal:
                return refusal.code
            return "ok"

        say(**timed(asked.n, claimed))
        sys.stdin.read()  # whoever leaves gives its tasks back: stay until the winners were counted


def listing(asked: Namespace) -> None:
    """The same list again and again."""
    import taskyard

    foreign = asked.foreign == "yes"
    with taskyard.open(tasks_dir=asked.dir, list=LIST, agent=None, foreign_writers=foreign) as yard:
        count = 0
        for _ in range(3):
            yard.tasks.list()
        started()
        times: list[int] = []
        for _ in range(asked.rounds):
            t0 = now()
            count = len(yard.tasks.list())
            times.append(now() - t0)
        subject = changed_by_another(f"{asked.dir}/{LIST}/1.json")
        t0 = now()
        seen = [task.subject for task in yard.tasks.list() if task.id == "1"]
        say(times=times, count=count, after_a_change=now() - t0, fresh=seen == [subject])


def changed_by_another(file: str) -> str:
    """Change a task's subject in place, as another program does; a list that missed it would be fast and wrong."""
    import json

    subject = f"Changed at {now()}"
    with open(file, "r+", encoding="utf-8") as task_file:
        task = {**json.load(task_file), "subject": subject}
        task_file.seek(0)
        task_file.write(json.dumps(task, indent=2))
        task_file.truncate()
    return subject


def cold(folder: str, foreign: bool) -> None:
    """The first list of a new process: all but the interpreter's own start is counted."""
    started()
    t0 = now()
    import taskyard

    with taskyard.open(tasks_dir=folder, list=LIST, agent=None, foreign_writers=foreign) as yard:
        count = len(yard.tasks.list())
        t1 = now()
    say(t0=t0, t1=t1, count=count)


def flat(asked: Namespace) -> None:
    """Creates on a small and a large list in turns, in one process."""
    import taskyard

    foreign = asked.foreign == "yes"
    times: dict[str, list[int]] = {asked.dir: [], asked.small: []}
    with (
        taskyard.open(tasks_dir=asked.dir, list=LIST, agent=None, foreign_writers=foreign) as large,
        taskyard.open(tasks_dir=asked.small, list=LIST, agent=None, foreign_writers=foreign) as small,
    ):
        for round_number in range(asked.rounds + 1):
            if round_number == 1:
                started()  # after one round to warm up
            for folder, yard in ((asked.small, small), (asked.dir, large)):
                t0 = now()
                for number in range(asked.n):
                    yard.tasks.create(f"Task {number}", description=DESCRIPTION)
                if round_number:
                    times[folder].append((now() - t0) // asked.n)
    say(large=times[asked.dir], small=times[asked.small])


def mail(asked: Namespace) -> None:
    """Messages from one sender to one recipient."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="warm-", dir=asked.dir) as folder:
        warm = post(folder)
        for _ in range(asked.warm):
            warm.send(asked.agent, RECIPIENT, DESCRIPTION)
    office = post(asked.dir)

    def sent(number: int) -> None:
        office.send(asked.agent, RECIPIENT, f"{asked.agent} {number} {DESCRIPTION}")

    times = timed(asked.n, sent)
    del times["answers"]
    say(**times)


def take(asked: Namespace) -> None:
    """Everything that came."""
    office = post(asked.dir)
    started()
    t0 = now()
    texts = [message.text for message in office.read(RECIPIENT)]
    say(t0=t0, t1=now(), texts=texts)


def post(home: str) -> FileMail:
    """The mail of the bench's team, with a box for the recipient."""
    from taskyard.agents.mailbox import FileMail

    office = FileMail(home, TEAM)
    office.open_box(RECIPIENT)
    return office


COMMANDS: dict[str, Callable[[Namespace], None]] = {
    "create": create,
    "claim": claim,
    "list": listing,
    "flat": flat,
    "mail": mail,
    "take": take,
}

if __name__ == "__main__":
    main()
