"""
A team in the middle of its work, as the page's pictures show it: made by the real list and real jobs, in the past.

    python page_scene.py      with a clock that can be set (`wall_clock`) and a home of its own

Each act happens at its own moment before now, which is what the log, the cards and the timeline then say.
"""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path

import taskyard
from support.wait import until
from taskyard.jobs.kinds.shell import Shell

LIST = "release-2"

#: Subject, what it is called while somebody does it, what it waits for; ids count from 1.
TASKS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("Agree on the scope", "Agreeing on the scope", ()),
    ("Pin the toolchain", "Pinning the toolchain", ()),
    ("Read the old importer", "Reading the old importer", ("1",)),
    ("Sketch the new tables", "Sketching the new tables", ()),
    ("Set up the test database", "Setting up the test database", ("2",)),
    ("Write the parser", "Writing the parser", ("3",)),
    ("Measure the old queries", "Measuring the old queries", ("5",)),
    ("Update the README", "Updating the README", ()),
    ("Write the release notes", "Writing the release notes", ()),
    ("Test the parser", "Testing the parser", ("6",)),
    ("Freeze the API", "Freezing the API", ("4",)),
    ("Migrate the schema", "Migrating the tables", ("11",)),
    ("Switch readers", "Switching readers", ("12",)),
    ("Port the importer", "Porting the importer", ("6",)),
    ("Draw the upgrade path", "Drawing the upgrade path", ("11",)),
    ("Drop the old table", "Dropping the old table", ("12", "13")),
    ("Record the demo", "Recording the demo", ()),
    ("Check the licences", "Checking the licences", ("2",)),
)

#: What some of them say at length.
TEXTS = {
    "Migrate the schema": "Move orders and customers to the new tables.\nOld rows stay readable until 13 is done.",
}

#: Seconds before now, who, which task, and when it was done; None: it goes on.
WORK: tuple[tuple[int, str, str, int | None], ...] = (
    (4_020, "ada", "1", 3_780),
    (4_000, "bob", "2", 3_700),
    (3_760, "ada", "4", 3_330),
    (3_690, "bob", "3", 3_360),
    (3_640, "cleo", "5", 3_320),
    (1_020, "bob", "6", 640),
    (980, "cleo", "7", 560),
    (900, "ada", "11", 205),
    (620, "bob", "10", 70),
    (540, "cleo", "17", None),
    (185, "ada", "12", None),
    (41, "bob", "14", None),
)

SAID = r"""printf '> pkg@2.1.0 test\n> vitest run\n\n'
printf ' \033[32m✓\033[0m parser.test.ts \033[2m(18)\033[0m\n \033[32m✓\033[0m importer.test.ts \033[2m(7)\033[0m\n'
for n in $(seq 12); do printf ' \033[32m✓\033[0m reader.test.ts \033[2m> keeps row %s\033[0m\n' $n; done
printf ' \033[34m❯\033[0m schema.test.ts \033[2m(22)\033[0m\n'
printf '   \033[31m× keeps unknown columns 12ms\033[0m\n'
exec sleep 600
"""


class Past:
    """Moments before now."""

    def __init__(self) -> None:
        self._now = time.time()
        self._clock = Path(os.environ["TEST_CLOCK"])

    def set(self, before: float) -> None:
        """Let it be so many seconds before now."""
        with open(self._clock, "r+b") as file:
            file.write(struct.pack("q", -round(before)))


def main() -> None:
    past = Past()
    past.set(4_200)
    with taskyard.open(list=LIST, is_person=True) as yard:
        for subject, doing, waits_for in TASKS:
            yard.tasks.create(subject, description=TEXTS.get(subject), active_form=doing, blocked_by=waits_for)
        acts = [(at, "claim", who, task) for at, who, task, _ in WORK]
        acts += [(done, "done", who, task) for _, who, task, done in WORK if done is not None]
        for at, what, who, task in sorted(acts, reverse=True):
            past.set(at)
            if what == "claim":
                yard.tasks.claim(task, agent=who)
                yard.tasks.start(task, agent=who)
            else:
                yard.tasks.complete(task, agent=who)
        _job(past, yard, "docs build", "echo 41 pages", 3_500, lasted=130)
        _job(past, yard, "make lint", "echo 'src/importer.py:88: unused name'; exit 2", 290, lasted=41)
        past.set(38)
        yard.jobs.start(Shell(SAID, name="npm test", on_parent_exit="keep"))
        past.set(63)
        asks = "printf 'Overwrite package.json? (y/n) '; read -r name; echo \"$name\""
        job = yard.jobs.start(Shell(asks, name="npm init", stdin=True, on_parent_exit="keep"))
        until(lambda: yard.jobs.get(job.id).needs_input, timeout=20)
        past.set(0)


def _job(past: Past, yard: taskyard.Yard, name: str, script: str, before: int, *, lasted: int) -> None:
    """A job that is over: it waits until its time has come."""
    past.set(before)
    go = Path(os.environ["HOME"], f"go-{name.replace(' ', '-')}")
    os.mkfifo(go)
    job = yard.jobs.start(Shell(f"read -r _ < {go}; {script}", name=name))
    until(lambda: yard.jobs.get(job.id).pid is not None, timeout=20)
    past.set(before - lasted)
    go.write_text("go\n", encoding="utf-8")
    yard.jobs.wait(job.id, timeout=20)


if __name__ == "__main__":
    main()
