"""
Bad input, all of it, in one table: what is refused, with which error, and that nothing changed.

Every row is tried on the same small list. Afterwards the tasks folder and Taskyard's home are, byte for
byte and mode for mode, what they were.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import taskyard
from support.yards import open_yard, snapshot, write_task
from taskyard.errors import (
    AlreadyExists,
    BadId,
    BadName,
    BadText,
    BadValue,
    Blocked,
    Cycle,
    Damaged,
    TaskNotFound,
    TaskyardError,
)

#: Living processes enter and leave there, whatever they ask for.
MAY_DIFFER = {"/instances/": "the lock files of living instances", "/instances": "their folder's own entry"}

DEEP: object = "x"
for _ in range(60):
    DEEP = [DEEP]

Call = Callable[[taskyard.Yard], object]


def t(call: Callable[[taskyard.tasklist.service.TaskList], object]) -> Call:
    """A call on the list of a yard."""
    return lambda yard: call(yard.tasks)


IDS = ["", "0", "01", "-1", "1.0", " 1", "../1", "1\0", "1\n", "²", "١", "1000000000", "9" * 100_000, None, 1.5]
TEXTS = ["\x1b[31mred", "nul\0", "\ud800", "\x9b"]
NAMES = ["x" * 300, "a\0b", "a\nb", "\udfff", " "]
LEASES = [0, -1, math.nan, math.inf, 1e12, True, "30m"]
METADATA = [
    {"n": math.nan},
    {"n": math.inf},
    {"deep": DEEP},
    {"huge": "x" * 2_000_000},
    {"bytes": b"x"},
    {"set": {1}},
    {"lone": "\ud800"},
    {1: "x"},
    [1],
    "text",
]
EXTRAS: list[dict[str, object]] = [
    {"priority": 0},
    {"priority": "high"},
    {"priority": True},
    {"labels": "one,two"},
    {"labels": ["a,b"]},
    {"labels": [""]},
    {"labels": ["x"] * 51},
    {"due": "tomorrow"},
    {"external": {"system": "jira"}},
    {"external": {"system": "x", "id": "1", "url": "javascript:alert(1)"}},
    {"requires": [5]},
    {"paths": ["a\nb"]},
    {"acceptance": {"command": ""}},
    {"acceptance": {"command": "x", "timeout": -1}},
    {"acceptance": {"command": "x", "shell": "y"}},
]

ROWS: list[tuple[str, Call, type[TaskyardError]]] = [
    ("an empty subject", t(lambda tasks: tasks.create("")), BadText),
    ("a blank subject", t(lambda tasks: tasks.create(" \u2003")), BadText),
    ("a subject of 1 MB", t(lambda tasks: tasks.create("x" * 1_000_000)), BadText),
    ("a subject of two lines", t(lambda tasks: tasks.create("a\nb")), BadText),
    ("a new subject of 1 MB", t(lambda tasks: tasks.update("1", subject="x" * 1_000_000)), BadText),
    ("a description of 1 MB", t(lambda tasks: tasks.create("a", description="x" * 1_000_000)), BadText),
    *[(f"a subject with {x!a}", t(lambda tasks, x=x: tasks.create(x)), BadText) for x in TEXTS],
    *[(f"a description with {x!a}", t(lambda tasks, x=x: tasks.update("1", description=x)), BadText) for x in TEXTS],
    *[(f"an active form with {x!a}", t(lambda tasks, x=x: tasks.update("1", active_form=x)), BadText) for x in TEXTS],
    *[(f"get {i!a:.20}", t(lambda tasks, i=i: tasks.get(i)), BadId) for i in IDS],
    *[(f"claim {i!a:.20}", t(lambda tasks, i=i: tasks.claim(i)), BadId) for i in IDS],
    *[(f"update {i!a:.20}", t(lambda tasks, i=i: tasks.update(i, subject="b")), BadId) for i in IDS],
    *[(f"delete {i!a:.20}", t(lambda tasks, i=i: tasks.delete(i)), BadId) for i in IDS],
    *[(f"restore {i!a:.20}", t(lambda tasks, i=i: tasks.restore(i)), BadId) for i in IDS],
    *[(f"block by {i!a:.20}", t(lambda tasks, i=i: tasks.block("1", by=[i])), BadId) for i in IDS],
    *[(f"create after {i!a:.20}", t(lambda tasks, i=i: tasks.create("a", blocked_by=[i])), BadId) for i in IDS],
    ("get an unknown id", t(lambda tasks: tasks.get("77")), TaskNotFound),
    ("claim an unknown id", t(lambda tasks: tasks.claim("77")), TaskNotFound),
    ("start an unknown id", t(lambda tasks: tasks.start("77")), TaskNotFound),
    ("complete an unknown id", t(lambda tasks: tasks.complete("77")), TaskNotFound),
    ("update an unknown id", t(lambda tasks: tasks.update("77", subject="b")), TaskNotFound),
    ("release an unknown id", t(lambda tasks: tasks.release("77")), TaskNotFound),
    ("renew an unknown id", t(lambda tasks: tasks.renew("77")), TaskNotFound),
    ("assign an unknown id", t(lambda tasks: tasks.assign("77", "bob")), TaskNotFound),
    ("delete an unknown id", t(lambda tasks: tasks.delete("77")), TaskNotFound),
    ("archive a known and an unknown id", t(lambda tasks: tasks.archive("1", "77")), TaskNotFound),
    ("restore an unknown id", t(lambda tasks: tasks.restore("77")), TaskNotFound),
    ("restore a task that is there", t(lambda tasks: tasks.restore("1")), AlreadyExists),
    ("block an unknown id", t(lambda tasks: tasks.block("77", by="1")), TaskNotFound),
    ("block by a known and an unknown id", t(lambda tasks: tasks.block("1", by=["3", "77"])), TaskNotFound),
    ("unblock an unknown id", t(lambda tasks: tasks.unblock("77", by="1")), TaskNotFound),
    ("create before an unknown id", t(lambda tasks: tasks.create("a", blocks=["77"])), TaskNotFound),
    ("block a task by itself", t(lambda tasks: tasks.block("1", by="1")), Cycle),
    ("block a blocker by what it blocks", t(lambda tasks: tasks.block("1", by="2")), Cycle),
    ("create into a circle", t(lambda tasks: tasks.create("a", blocks=["1"], blocked_by=["2"])), Cycle),
    ("complete a blocked task", t(lambda tasks: tasks.complete("2")), Blocked),
    *[(f"status {s!r}", t(lambda tasks, s=s: tasks.update("1", status=s)), BadValue) for s in ["deleted", "", 5, "x"]],
    *[(f"a lease of {s!r}", t(lambda tasks, s=s: tasks.claim("1", lease=s)), BadValue) for s in LEASES],
    *[(f"a next lease of {s!r}", t(lambda tasks, s=s: tasks.claim_next(lease=s)), BadValue) for s in LEASES],
    *[(f"metadata {str(m):.20}", t(lambda tasks, m=m: tasks.create("a", metadata=m)), BadValue) for m in METADATA],
    *[(f"new metadata {str(m):.20}", t(lambda tasks, m=m: tasks.update("1", metadata=m)), BadValue) for m in METADATA],
    *[(f"extra {e!s:.40}", t(lambda tasks, e=e: tasks.create("a", **e)), taskyard.UsageError) for e in EXTRAS],
    *[(f"new extra {e!s:.40}", t(lambda tasks, e=e: tasks.update("1", **e)), taskyard.UsageError) for e in EXTRAS],
    ("a parent that is no id", t(lambda tasks: tasks.create("a", parent="x")), BadId),
    *[(f"agent {n!a:.20}", t(lambda tasks, n=n: tasks.claim("1", agent=n)), BadName) for n in NAMES],
    *[(f"owner {n!a:.20}", t(lambda tasks, n=n: tasks.create("a", owner=n)), BadName) for n in NAMES],
    *[(f"assign to {n!a:.20}", t(lambda tasks, n=n: tasks.assign("1", n)), BadName) for n in NAMES],
    ("an agent that is no text", t(lambda tasks: tasks.claim("1", agent=5)), BadName),
    ("a format to write there is not", t(lambda tasks: tasks.export("xml")), BadValue),
    ("a format to read there is not", t(lambda tasks: tasks.import_("", "xml")), BadValue),
    ("an import that is not JSON", t(lambda tasks: tasks.import_("{", "json")), taskyard.UsageError),
    *[(f"list {n!a:.20}", lambda yard, n=n: taskyard.open(list=n), BadName) for n in ["", *NAMES]],
    *[(f"as agent {n!a:.20}", lambda yard, n=n: taskyard.open(agent=n), BadName) for n in ["", *NAMES]],
    ("a store there is not", lambda yard: taskyard.open(store="mysql://x"), BadValue),
    *[
        (f"{verb} a damaged file", t(call), Damaged)
        for verb, call in {
            "get": lambda tasks: tasks.get("9"),
            "claim": lambda tasks: tasks.claim("9"),
            "update": lambda tasks: tasks.update("9", subject="b"),
            "complete": lambda tasks: tasks.complete("9"),
            "delete": lambda tasks: tasks.delete("9"),
            "restore": lambda tasks: tasks.restore("9"),
            "block by": lambda tasks: tasks.block("1", by="9"),
        }.items()
    ],
]


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[taskyard.Yard]:
    """Three tasks, the second waiting for the first, and a file that is no task."""
    with open_yard(tmp_path, "ada") as yard:
        yard.tasks.create("one")
        yard.tasks.create("two", blocked_by=["1"])
        yard.tasks.create("three")
        (tmp_path / "plan" / "9.json").write_text('{"id": "9", "subj')
        assert [found.file for found in yard.tasks.list().damaged] == ["9.json"]
        yield yard


@pytest.mark.req("L-01", "L-03", "L-06")
@pytest.mark.parametrize(("call", "error"), [row[1:] for row in ROWS], ids=[ascii(row[0]) for row in ROWS])
def test_bad_input_is_refused_in_words_and_changes_nothing(
    yard: taskyard.Yard, tmp_path: Path, outside: Path, call: Call, error: type[TaskyardError]
) -> None:
    before = snapshot(tmp_path, outside, ignore=MAY_DIFFER)

    with pytest.raises(TaskyardError) as caught:
        call(yard)

    assert isinstance(caught.value, error)
    assert caught.value.exit_code == error.exit_code
    assert 10 < len(str(caught.value)) < 1000
    assert str(caught.value).isprintable() or "\n" in str(caught.value)
    assert snapshot(tmp_path, outside, ignore=MAY_DIFFER) == before


@pytest.mark.req("L-14")
@pytest.mark.parametrize("name", ["a/b", "..", "../../etc", "😀", "a b", ".hidden", "CON", "\u202eabc"])
def test_odd_names_become_safe_folders_beside_each_other(tmp_path: Path, name: str) -> None:
    with open_yard(tmp_path / "tasks", name, list=name) as yard:
        yard.tasks.create("a")
        yard.tasks.claim("1")

    (folder,) = (tmp_path / "tasks").iterdir()
    assert folder.name.replace("-", "").isalnum() or set(folder.name) == {"-"}
    assert [path.name for path in tmp_path.iterdir()] == ["tasks"]


DAMAGE = {
    "empty": b"",
    "nothing but zeros": b"\0" * 100,
    "torn": b'{"id": "9", "subject": "x", "desc',
    "with a BOM": b'\xef\xbb\xbf{"subject": "x"}',
    "not UTF-8": b'{"subject": "\xff"}',
    "an array": b"[]",
    "a number": b"5",
    "deep": b'{"subject": "x", "metadata": {"a": ' + b"[" * 5000 + b"]" * 5000 + b"}}",
    "huge": b'{"subject": "' + b"x" * 5_000_000 + b'"}',
    "without a subject": b'{"id": "9"}',
    "subject of the wrong type": b'{"subject": 5}',
    "status of the wrong type": b'{"subject": "x", "status": 5}',
    "a status there is not": b'{"subject": "x", "status": "later"}',
    "owner of the wrong type": b'{"subject": "x", "owner": {}}',
    "blocks of the wrong type": b'{"subject": "x", "blocks": "1"}',
    "blockedBy of the wrong type": b'{"subject": "x", "blockedBy": 1}',
    "metadata of the wrong type": b'{"subject": "x", "metadata": [1]}',
    "not a number": b'{"subject": "x", "metadata": {"n": NaN}}',
    "infinite": b'{"subject": "x", "metadata": {"n": 1e999}}',
}


@pytest.mark.req("L-02", "L-11")
@pytest.mark.parametrize("data", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_file_that_is_no_task_is_listed_as_damaged_kept_and_not_worked_on(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "plan").mkdir()
    path = tmp_path / "plan" / "9.json"
    path.write_bytes(data)
    with open_yard(tmp_path, "ada") as yard:
        listing = yard.tasks.list()
        assert (list(listing), [found.file for found in listing.damaged]) == ([], ["9.json"])
        assert listing.damaged[0].why
        assert yard.tasks.create("next").id == "10"
        with pytest.raises(Damaged):
            yard.tasks.claim("9")
        yard.tasks.update("10", subject="b")
        with pytest.raises(Blocked):
            write_task(tmp_path / "plan", "11", blockedBy=["9"])
            yard.tasks.claim("11")
    assert path.read_bytes() == data


@pytest.mark.req("L-06")
def test_a_circle_of_a_thousand_tasks_is_refused_by_name_and_a_foreign_one_loops_nobody(tmp_path: Path) -> None:
    for number in range(1, 1001):
        write_task(tmp_path / "plan", str(number), blockedBy=[str(number - 1)] if number > 1 else [])
    with open_yard(tmp_path, "ada") as yard:
        assert len(yard.tasks.list()) == 1000
        with pytest.raises(Cycle) as caught:
            yard.tasks.block("1", by="1000")
        assert caught.value.path[:3] == ("1", "1000", "999")
        assert len(caught.value.path) == 1001
        write_task(tmp_path / "plan", "1", blockedBy=["1000", "1"])

        assert len(yard.tasks.list()) == 1000
        assert yard.tasks.claim_next() is None
        with pytest.raises(Blocked):
            yard.tasks.claim("1")
        yard.tasks.unblock("1", by=["1000", "1"])
        assert yard.tasks.claim("1").owner == "ada"
