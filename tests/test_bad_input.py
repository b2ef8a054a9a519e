"""
Bad input, all of it, in one table: what is refused, with which error, and that nothing changed.

Every row is tried on the same small list. Afterwards the tasks folder and Taskyard's home are, byte for
byte and mode for mode, what they were.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import taskyard
from support.yards import open_yard, snapshot, write_task
from taskyard.cli.main import main
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


class Row(NamedTuple):
    """One bad request: how a program makes it, how a person does, and what both are told."""

    what: str
    call: Callable[[taskyard.Yard], object]
    error: type[TaskyardError]
    argv: tuple[str, ...] = ()  #: of `taskyard`; empty where no command line can say it


def row(what: str, error: type[TaskyardError], verb: str, *args: Any, cli: tuple[str, ...] = (), **kwargs: Any) -> Row:
    """A call of one of the list's verbs."""
    return Row(what, lambda yard: getattr(yard.tasks, verb)(*args, **kwargs), error, cli and ("task", *cli))


def opening(what: str, error: type[TaskyardError], *cli: str, **kwargs: Any) -> Row:
    """An attempt to open a yard."""
    return Row(what, lambda yard: taskyard.open(**kwargs), error, cli)


IDS: list[Any] = [
    "",
    "0",
    "01",
    "-1",
    "1.0",
    " 1",
    "../1",
    "1\0",
    "1\n",
    "²",
    "١",
    "1000000000",
    "9" * 100_000,
    None,
    1.5,
]
TEXTS = ["\x1b[31mred", "nul\0", "\ud800", "\x9b"]
NAMES = ["x" * 300, "a\0b", "a\nb", "\udfff", " "]
LEASES: list[Any] = [0, -1, math.nan, math.inf, 1e12, True, "30m"]
METADATA: list[Any] = [
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
EXTRAS: list[dict[str, Any]] = [
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
OURS: list[Any] = [5, [], "x", {"held": "yes"}]


def _rows_about_ids() -> Iterator[Row]:
    for bad in IDS:
        short = f"{bad!a:.20}"
        typed = isinstance(bad, str) and not bad.startswith("-")
        for verb, word in {"get": "show", "claim": "claim", "delete": "rm", "restore": "restore"}.items():
            yield row(f"{verb} {short}", BadId, verb, bad, cli=(word, bad) if typed else ())
        yield row(
            f"update {short}", BadId, "update", bad, subject="b", cli=("edit", bad, "--subject", "b") if typed else ()
        )
        yield row(f"block by {short}", BadId, "block", "1", by=[bad])
        yield row(f"create after {short}", BadId, "create", "a", blocked_by=[bad])
    for verb, word in {
        "get": "show",
        "claim": "claim",
        "start": "start",
        "complete": "done",
        "release": "release",
    }.items():
        yield row(f"{verb} an unknown id", TaskNotFound, verb, "77", cli=(word, "77"))
    for verb, word in {"renew": "renew", "delete": "rm", "restore": "restore"}.items():
        yield row(f"{verb} an unknown id", TaskNotFound, verb, "77", cli=(word, "77"))
    yield row("get an id between others that nobody had", TaskNotFound, "get", "5", cli=("show", "5"))
    yield row("claim an id between others that nobody had", TaskNotFound, "claim", "5", cli=("claim", "5"))
    yield row("restore an id between others that nobody had", TaskNotFound, "restore", "5", cli=("restore", "5"))
    yield row("update an unknown id", TaskNotFound, "update", "77", subject="b", cli=("edit", "77", "--subject", "b"))
    yield row("assign an unknown id", TaskNotFound, "assign", "77", "bob", cli=("assign", "77", "bob"))
    yield row(
        "archive a known and an unknown id", TaskNotFound, "archive", "1", "77", cli=("archive", "--yes", "1", "77")
    )
    yield row("restore a task that is there", AlreadyExists, "restore", "1", cli=("restore", "1"))
    yield row("block an unknown id", TaskNotFound, "block", "77", by="1", cli=("block", "77", "--on", "1"))
    yield row("block by a known and an unknown id", TaskNotFound, "block", "1", by=["3", "77"])
    yield row("unblock an unknown id", TaskNotFound, "unblock", "77", by="1")
    yield row("create before an unknown id", TaskNotFound, "create", "a", blocks=["77"])
    yield row(
        "create after an unknown id",
        TaskNotFound,
        "create",
        "a",
        blocked_by="77",
        cli=("add", "a", "--blocked-by", "77"),
    )
    yield row("block a task by itself", Cycle, "block", "1", by="1", cli=("block", "1", "--on", "1"))
    yield row("block a blocker by what it blocks", Cycle, "block", "1", by="2", cli=("block", "1", "--on", "2"))
    yield row("create into a circle", Cycle, "create", "a", blocks=["1"], blocked_by=["2"])
    yield row("complete a blocked task", Blocked, "complete", "2", cli=("done", "2"))
    yield row("start a blocked task", Blocked, "start", "2", cli=("start", "2"))


def _rows_about_texts() -> Iterator[Row]:
    for subject in ("", " \u2003", "x" * 1_000_000, "a\nb", *TEXTS):
        yield row(f"subject {subject!a:.20}", BadText, "create", subject, cli=("add", subject))
        yield row(f"new subject {subject!a:.20}", BadText, "update", "1", subject=subject)
    for text in ("x" * 1_000_000, *TEXTS):
        yield row(
            f"description {text!a:.20}",
            BadText,
            "create",
            "a",
            description=text,
            cli=("add", "a", "--description", text),
        )
        yield row(f"new description {text!a:.20}", BadText, "update", "1", description=text)
        yield row(f"active form {text!a:.20}", BadText, "update", "1", active_form=text)
    yield row("a subject that is no text", BadText, "create", 5)


def _rows_about_values() -> Iterator[Row]:
    for status in ("deleted", "", 5, "x"):
        yield row(f"status {status!r}", BadValue, "update", "1", status=status)
    for lease in LEASES:
        yield row(f"a lease of {lease!r}", BadValue, "claim", "1", lease=lease)
        yield row(f"a next lease of {lease!r}", BadValue, "claim_next", lease=lease)
    for metadata in METADATA:
        yield row(f"metadata {metadata!s:.20}", BadValue, "create", "a", metadata=metadata)
        yield row(f"new metadata {metadata!s:.20}", BadValue, "update", "1", metadata=metadata)
    for extra in EXTRAS:
        yield row(f"extra {extra!s:.40}", taskyard.UsageError, "create", "a", **extra)
        yield row(f"new extra {extra!s:.40}", taskyard.UsageError, "update", "1", **extra)
        whole = {"taskyard": extra}
        yield row(f"metadata with {extra!s:.40}", taskyard.UsageError, "create", "a", metadata=whole)
        yield row(f"new metadata with {extra!s:.40}", taskyard.UsageError, "update", "1", metadata=whole)
    for verb, first in {"create": "a", "update": "1"}.items():
        yield row(f"{verb} with a field there is not", BadValue, verb, first, nope=1)
        for ours in OURS:
            yield row(f"{verb} with {ours!r} as ours", BadValue, verb, first, metadata={"taskyard": ours})
    yield row("a new task that is set aside", BadValue, "create", "a", metadata={"taskyard": {"held": True}})
    yield row("an import that is no text", BadText, "import_", 5)
    for since in ("x", -1, 1.5, True):
        yield row(f"the log since {since!r}", BadValue, "log", since=since)
        yield row(f"a watch since {since!r}", BadValue, "watch", since=since)
    for timeout in ("x", -1, math.nan, True):
        yield row(f"a watch for {timeout!r} s", BadValue, "watch", timeout=timeout)
    yield row("blockers that are no ids", BadValue, "block", "1", by=1.5)
    yield row("capabilities that are no words", BadValue, "claim_next", capabilities=5)
    yield row("a parent that is no id", BadId, "create", "a", parent="x")
    yield row("priority 0", BadValue, "create", "a", priority=0, cli=("add", "a", "--priority", "0"))
    yield row("a lease of 0 s", BadValue, "claim", "1", lease=0, cli=("claim", "1", "--lease", "0s"))
    yield row("a format to write there is not", BadValue, "export", "xml")
    yield row("a format to read there is not", BadValue, "import_", "", "xml")
    yield row("an import that is not JSON", taskyard.UsageError, "import_", "{", "json")
    for verb in ("get", "claim", "complete", "delete", "restore"):
        yield row(f"{verb} a damaged file", Damaged, verb, "9")
    yield row("show a damaged file", Damaged, "get", "9", cli=("show", "9"))
    yield row("update a damaged file", Damaged, "update", "9", subject="b")
    yield row("block by a damaged file", Damaged, "block", "1", by="9")


def _rows_about_names() -> Iterator[Row]:
    for name in NAMES:
        short = f"{name!a:.20}"
        yield row(f"agent {short}", BadName, "claim", "1", agent=name, cli=("claim", "1", "--by", name))
        yield row(f"owner {short}", BadName, "create", "a", owner=name, cli=("add", "a", "--owner", name))
        yield row(f"assign to {short}", BadName, "assign", "1", name, cli=("assign", "1", name))
    for name in ("", *NAMES):
        yield opening(f"list {name!a:.20}", BadName, "task", "list", "--list", name, list=name)
        yield opening(f"as agent {name!a:.20}", BadName, agent=name)
    yield row("an agent that is no text", BadName, "claim", "1", agent=5)
    yield opening("a store there is not", BadValue, store="mysql://x")


ROWS = [*_rows_about_ids(), *_rows_about_texts(), *_rows_about_values(), *_rows_about_names()]


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[taskyard.Yard]:
    """Three tasks, the second waiting for the first, and a file that is no task."""
    with open_yard(tmp_path, "ada") as yard:
        yard.tasks.create("one")
        yard.tasks.create("two", blocked_by=["1"])
        yard.tasks.create("three")
        write_task(tmp_path / "plan", "6")  # and three ids in between that nobody ever had
        (tmp_path / "plan" / "9.json").write_text('{"id": "9", "subj')
        assert [found.file for found in yard.tasks.list().damaged] == ["9.json"]
        yield yard


def fault(yard: taskyard.Yard, call: Callable[[taskyard.Yard], object], error: type[TaskyardError]) -> str | None:
    """What is wrong with how `call` was refused, if anything."""
    try:
        answer = call(yard)
    except TaskyardError as refusal:
        said = str(refusal)
        if not isinstance(refusal, error):
            return f"{type(refusal).__name__}: {said:.100}"
        if refusal.exit_code != error.exit_code:
            return f"exit code {refusal.exit_code}"
        return None if 10 < len(said) < 1000 and said.isprintable() else f"says {said!a:.200}"
    except Exception as crash:
        return f"crashed: {crash!r:.200}"
    return f"accepted: {answer!r:.100}"


@pytest.mark.req("L-01", "L-03", "L-06")
def test_bad_input_is_refused_in_words_and_changes_nothing(yard: taskyard.Yard, tmp_path: Path, outside: Path) -> None:
    faults: list[str] = []
    before = snapshot(tmp_path, outside, ignore=MAY_DIFFER)
    for what, call, error, _ in ROWS:
        if found := fault(yard, call, error):
            faults.append(f"{what}: {found}")
        after = snapshot(tmp_path, outside, ignore=MAY_DIFFER)
        if after != before:
            faults.append(f"{what}: something on disk changed")
            before = after

    assert faults == []
    assert len(ROWS) > 200


@pytest.mark.req("L-01", "L-03", "T-05")
def test_the_command_line_refuses_the_same_with_the_exit_code_of_the_error(
    yard: taskyard.Yard,
    tmp_path: Path,
    outside: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TASKYARD_AGENT", "ada")
    faults: list[str] = []
    before = snapshot(tmp_path, outside, ignore=MAY_DIFFER)
    for what, _, error, argv in ROWS:
        if not argv:
            continue
        where = () if "--list" in argv else ("--list", "plan")
        code = main([*argv, *where, "--tasks-dir", str(tmp_path), "--json"])
        said = capsys.readouterr().out
        if code != error.exit_code:
            faults.append(f"{what}: exit code {code}, not {error.exit_code}: {said:.200}")
        elif not issubclass(error, taskyard.UsageError) and json.loads(said)["error"]["code"] != error.code:
            faults.append(f"{what}: {said:.200}")
        after = snapshot(tmp_path, outside, ignore=MAY_DIFFER)
        if after != before:
            faults.append(f"{what}: something on disk changed")
            before = after

    assert faults == []


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
