"""The yardstick is sound: what it does by another program's rules, it does right."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from bench.folders import list_folder
from bench.processes import NODE_FOLDER, race, reference, run

pytestmark = pytest.mark.skipif(
    shutil.which("node") is None or not os.path.isdir(os.path.join(NODE_FOLDER, "node_modules")),
    reason="needs Node, and `npm ci --prefix tests/node`",
)


@pytest.mark.req("L-02", "L-03")
def test_creates_of_many_processes_get_each_id_once(tmp_path: Path) -> None:
    folder = list_folder(str(tmp_path))
    answers = race([reference("create", "--dir", folder, "--n", "10", "--warm", "5")] * 3, home=str(tmp_path))
    ids = sorted(int(task_id) for answer in answers for task_id in answer["answers"])
    assert ids == list(range(1, 31))


@pytest.mark.req("L-02")
def test_a_file_has_the_bytes_of_the_original(tmp_path: Path) -> None:
    folder = list_folder(str(tmp_path))
    run(reference("create", "--dir", folder, "--n", "1", "--desc", "Für später"), home=str(tmp_path))
    assert Path(folder, "1.json").read_text(encoding="utf-8") == (
        '{\n  "id": "1",\n  "subject": "Task 1",\n  "description": "Für später",\n  "status": "pending",\n'
        '  "blocks": [],\n  "blockedBy": []\n}'
    )
    assert sorted(os.listdir(folder)) == [".lock", "1.json"]


@pytest.mark.req("L-03")
def test_the_next_id_is_above_both_the_mark_and_every_file(tmp_path: Path) -> None:
    folder = list_folder(str(tmp_path))
    os.mkdir(os.path.join(folder, "20.json"))
    Path(folder, ".highwatermark").write_text("30", encoding="utf-8")
    answer = run(reference("create", "--dir", folder, "--n", "2"), home=str(tmp_path))
    assert answer["answers"] == ["31", "32"]


@pytest.mark.req("L-08")
@pytest.mark.parametrize("busy_check", ["no", "yes"])
def test_each_contested_task_has_one_winner(tmp_path: Path, busy_check: str) -> None:
    folder = list_folder(str(tmp_path), tasks=10)
    agents = ["ada", "bob", "cem"]
    more = ("--dir", folder, "--n", "10", "--warm", "5", "--busy-check", busy_check)
    answers = race([reference("claim", *more, "--agent", agent) for agent in agents], home=str(tmp_path))
    for number in range(10):
        winners = [agent for agent, answer in zip(agents, answers) if answer["answers"][number] == "ok"]
        owner = json.loads(Path(folder, f"{number + 1}.json").read_text(encoding="utf-8"))["owner"]
        assert winners == [owner]


@pytest.mark.req("L-07")
def test_a_blocked_task_is_refused(tmp_path: Path) -> None:
    folder = list_folder(str(tmp_path), tasks=2)
    second = Path(folder, "2.json")
    task = json.loads(second.read_text(encoding="utf-8"))
    second.write_text(json.dumps({**task, "blockedBy": ["1"]}), encoding="utf-8")
    answer = run(reference("claim", "--dir", folder, "--n", "3"), home=str(tmp_path))
    assert answer["answers"] == ["ok", "blocked", "not_found"]


@pytest.mark.req("M-02")
def test_mail_of_many_senders_arrives_once_each(tmp_path: Path) -> None:
    senders = [
        reference("mail", "--dir", str(tmp_path), "--n", "10", "--warm", "5", "--agent", agent)
        for agent in ("ada", "bob")
    ]
    race(senders, home=str(tmp_path))
    texts = run(reference("take", "--dir", str(tmp_path), "--agent", "lead"), home=str(tmp_path))["texts"]
    assert len(texts) == len(set(texts)) == 20
    assert json.loads((tmp_path / "lead.json").read_text(encoding="utf-8")) == []


@pytest.mark.req("L-02")
def test_a_torn_or_incomplete_file_is_not_listed(tmp_path: Path) -> None:
    folder = list_folder(str(tmp_path), tasks=3)
    Path(folder, "4.json").write_text('{"id": "4", "subj', encoding="utf-8")
    no_edges = '{"id": "5", "subject": "no edges", "description": "", "status": "pending"}'
    Path(folder, "5.json").write_text(no_edges, encoding="utf-8")
    assert run(reference("list", "--dir", folder), home=str(tmp_path))["count"] == 3
    assert run(reference("cold", "--dir", folder), home=str(tmp_path))["count"] == 3
