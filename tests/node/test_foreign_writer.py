"""The foreign writer keeps a journal that its list agrees with."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bench.folders import list_folder
from bench.processes import NODE_FOLDER, race, run

pytestmark = pytest.mark.skipif(
    shutil.which("node") is None or not os.path.isdir(os.path.join(NODE_FOLDER, "node_modules")),
    reason="needs Node, and `npm ci --prefix tests/node`",
)


def writer(folder: str, journal: Path, *more: str) -> list[str]:
    script = os.path.join(NODE_FOLDER, "foreign_writer.mjs")
    return ["node", script, "--dir", folder, "--journal", str(journal), *more]


def lines(journal: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]


def tasks_in(folder: str) -> dict[str, Mapping[str, Any]]:
    files = (Path(folder, name) for name in os.listdir(folder) if name.endswith(".json"))
    tasks: dict[str, Mapping[str, Any]] = {}
    for file in files:
        tasks[file.stem] = json.loads(file.read_text(encoding="utf-8"))
    return tasks


@pytest.mark.req("L-02", "L-03")
def test_two_writers_lose_double_and_tear_nothing(tmp_path: Path) -> None:
    folder = list_folder(str(tmp_path))
    journals = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    commands = [
        writer(folder, journal, "--name", journal.stem, "--seed", str(seed), "--seconds", "1")
        for seed, journal in enumerate(journals)
    ]
    race(commands, home=str(tmp_path))
    done = [line for journal in journals for line in lines(journal) if line["ok"]]
    tasks = tasks_in(folder)
    created = [line["id"] for line in done if line["op"] == "create"]
    deleted = {line["id"] for line in done if line["op"] == "delete"}
    assert len(created) == len(set(created)) > 10
    assert deleted
    assert set(created) - deleted == set(tasks)
    for line in done:
        for key, value in line["fields"].get("metadata", {}).items():
            assert line["id"] in deleted or tasks[line["id"]]["metadata"][key] == value
        if line["op"] == "link" and not {line["id"], line["fields"]["blocks"]} & deleted:
            assert line["fields"]["blocks"] in tasks[line["id"]]["blocks"]
            assert line["id"] in tasks[line["fields"]["blocks"]]["blockedBy"]


@pytest.mark.req("L-02")
def test_the_same_seed_makes_the_same_choices(tmp_path: Path) -> None:
    choices: list[list[tuple[str, str, object]]] = []
    for number in range(2):
        folder = list_folder(str(tmp_path / str(number)))
        journal = tmp_path / f"{number}.jsonl"
        run(writer(folder, journal, "--seed", "7", "--seconds", "3"), home=str(tmp_path))
        choices.append([(line["op"], line["id"], line["fields"]) for line in lines(journal)])
    shared = min(map(len, choices))
    assert shared > 20
    assert choices[0][:shared] == choices[1][:shared]
