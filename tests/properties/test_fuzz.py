"""
Random bytes in every file we read: an error in words at worst, and no task that silently vanishes.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import taskyard
from support.scale import scale
from support.yards import open_yard
from taskyard.errors import TaskyardError

#: Every file of a list that anybody reads, and one of each kind where there are many.
FILES = (
    "1.json",
    "tasks.json",
    ".highwatermark",
    ".lock",
    ".taskyard/ledger",
    ".taskyard/lock",
    ".taskyard/log/0.jsonl",
    ".taskyard/leases/1.json",
    ".taskyard/leases/2.json",
    ".taskyard/tmp/1.json",
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
FIELDS = [
    "id",
    "subject",
    "description",
    "activeForm",
    "owner",
    "status",
    "blocks",
    "blockedBy",
    "metadata",
    "createdAt",
    "updatedAt",
]
LEASE = ["owner", "instance", "token", "kind", "since", "expires", "host", "lock", "losses"]
TASK_LIKE = st.dictionaries(st.sampled_from([*FIELDS, *LEASE, "tasks", "title", "dependencies", "x"]), JSON, max_size=9)
BYTES = st.one_of(
    st.binary(max_size=300),
    JSON.map(lambda value: json.dumps(value).encode()),
    TASK_LIKE.map(lambda value: json.dumps(value).encode()),
    TASK_LIKE.map(lambda value: json.dumps({"tasks": [value]}).encode()),
)
SEED = (
    b'{"owner": "ada", "instance": "i", "token": "t", "kind": "process", "host": "%s", "lock": "\\u0000", "losses": 9}'
)


def verbs(yard: taskyard.Yard) -> None:
    """Everything a list can be asked; each answers or refuses in words."""
    tasks = yard.tasks
    for call in (
        tasks.list,
        lambda: tasks.get("1"),
        lambda: tasks.claim("1"),
        lambda: tasks.update("1", subject="changed"),
        lambda: tasks.complete("2"),
        lambda: tasks.block("3", by="1"),
        lambda: tasks.unblock("3", by="2"),
        lambda: tasks.create("new"),
        tasks.claim_next,
        tasks.log,
        lambda: tasks.log("1"),
        lambda: tasks.release_all("ada"),
        lambda: tasks.delete("3"),
        lambda: tasks.restore("3"),
        lambda: tasks.get("77"),
        tasks.list,
    ):
        try:
            call()
        except TaskyardError as refusal:
            assert str(refusal)


@pytest.fixture(scope="module")
def subscription(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A list with three tasks, two of them claimed, to be spoiled."""
    root = tmp_path_factory.mktemp("sound")
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TASKYARD_HOME", str(home))
        with open_yard(root, "ada", person=True) as yard:
            for subject in ("one", "two", "three"):
                yard.tasks.create(subject)
            yard.tasks.claim("1")
            yard.tasks.claim("2", lease=60)
            yard.tasks.block("3", by="2")
    return root


def spoiled(subscription: Path, tmp_path: Path, name: str, data: bytes) -> Path:
    """A copy of the sound list with other bytes in one file."""
    root = tmp_path / "spoiled"
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(subscription, root)
    (root / "plan" / name).write_bytes(data)
    return root


@pytest.mark.req("L-02", "L-11")
@pytest.mark.parametrize("name", FILES)
@settings(max_examples=scale(80), deadline=None)
@given(data=BYTES)
@example(data=b"")
@example(data=b"\0" * 200)
@example(data=b"\xff" * 200)
@example(data=b"9" * 6000)
@example(data=b"[" * 50_000)
@example(data=b'{"subject":"x","metadata":{"a":' + b"[" * 900 + b"]" * 900 + b"}}")
@example(data=b'{"subject":"x","metadata":{"n":1e999}}')
@example(data=b'{"subject":"x","createdAt":1e308,"updatedAt":-5}')
@example(data=b'{"subject":"\\ud800","blocks":[1,"1","x",null],"blockedBy":[true,"01"]}')
@example(data=b'{"tasks":[{"id":1e400,"title":"x"},[[[]]],{"id":"7","title":"y","owner":"teammate-99999999999"}]}')
@example(data=SEED % b"x/y")
def test_no_bytes_in_any_file_make_a_list_crash_or_a_task_vanish(
    subscription: Path, tmp_path: Path, name: str, data: bytes
) -> None:
    root = spoiled(subscription, tmp_path, name, data)
    with open_yard(root, "bob", person=True) as yard:
        listing = yard.tasks.list(internal=True)
        shown = {task.id for task in listing} | {found.file.removesuffix(".json") for found in listing.damaged}
        marked = name == "1.json" and _says_deleted(data)
        assert shown >= {"1", "2", "3"} - ({"1"} if marked else set())
        verbs(yard)
    with open_yard(root, "eve", person=True) as yard:
        yard.tasks.list()
    assert not [left for left in os.listdir(root / "plan") if left.endswith(".lock") and left != ".lock"]


def _says_deleted(data: bytes) -> bool:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.get("status") == "deleted"


@pytest.mark.req("L-11")
@settings(max_examples=scale(300), deadline=None)
@given(data=st.data())
def test_bytes_flipped_in_ledger_or_log_lose_no_task_that_is_on_disk(
    subscription: Path, tmp_path: Path, data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from([".taskyard/ledger", ".taskyard/log/0.jsonl"]))
    whole = bytearray((subscription / "plan" / name).read_bytes())
    for at in data.draw(st.lists(st.integers(0, len(whole) - 1), min_size=1, max_size=8)):
        whole[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(whole)))
    root = spoiled(subscription, tmp_path, name, bytes(whole[:cut]))
    with open_yard(root, "bob", person=True) as yard:
        assert [task.subject for task in yard.tasks.list()] == ["one", "two", "three"]
        assert int(yard.tasks.create("new").id) > 3
        verbs(yard)


@pytest.mark.req("L-11", "L-03")
@pytest.mark.parametrize("lost", [".taskyard/ledger", ".highwatermark", ".taskyard/leases", ".taskyard/tmp", ".lock"])
def test_a_part_that_was_lost_is_made_again_and_nothing_is_forgotten(
    subscription: Path, tmp_path: Path, lost: str
) -> None:
    root = tmp_path / "list"
    shutil.copytree(subscription, root)
    with open_yard(root, "bob", person=True) as yard:
        yard.tasks.create("four")
        yard.tasks.delete("4")
        yard.tasks.delete("3")
    path = root / "plan" / lost
    shutil.rmtree(path) if path.is_dir() else path.unlink()

    with open_yard(root, "bob", person=True) as yard:
        assert yard.tasks.restore("4").subject == "four"
        assert yard.tasks.restore("3").blocked_by == ("2",)
        assert yard.tasks.create("five").id == "5"
        assert [task.id for task in yard.tasks.list()] == ["1", "2", "3", "4", "5"]


@pytest.mark.req("L-03", "L-02")
def test_without_mark_and_ledger_ids_still_come_after_every_file(tmp_path: Path) -> None:
    (tmp_path / "plan").mkdir()
    for name in ("7.json", "20.json"):
        (tmp_path / "plan" / name).write_text('{"id":"7","subject":"x","blocks":[],"blockedBy":[]}')

    with open_yard(tmp_path) as yard:
        assert yard.tasks.create("new").id == "21"
