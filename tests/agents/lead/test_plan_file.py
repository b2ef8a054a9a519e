"""Plans for teams, good and bad."""

from __future__ import annotations

from pathlib import Path

import pytest

import taskyard
from taskyard.agents.lead import plan_file
from taskyard.errors import BadPlan, NotFound

GOOD = """\
name: shop
tasks:
  - Read the specification
  - id: parser
    subject: Write the parser
    description: Recursive descent.
    needs: task-1
    priority: 1
    labels: [core]
    requires: [python]
    acceptance: make test
  - id: printer
    subject: Write the printer
    blocked_by: [parser, task-1]
    owner: bob
    parent: parser
"""


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "plan.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.req("L-21", "L-22", "M-01")
def test_a_plan_is_put_on_a_list_whole_and_a_second_time_adds_nothing(tmp_path: Path) -> None:
    plan = plan_file.read_plan(written(tmp_path, GOOD))

    with taskyard.open(list="shop", tasks_dir=tmp_path / "tasks", is_person=True) as yard:
        added = yard.tasks.add_all(plan.tasks)
        again = yard.tasks.add_all(plan.tasks)
        read, parser, printer = yard.tasks.list()

    assert plan.name == "shop"
    assert [task.subject for task in added] == ["Read the specification", "Write the parser", "Write the printer"]
    assert again == ()
    assert read.description == "Read the specification"
    assert (parser.blocked_by, printer.blocked_by) == (("1",), ("2", "1"))
    assert parser.extra["acceptance"] == {"command": "make test"}
    assert (parser.extra["priority"], parser.extra["labels"], parser.extra["requires"]) == (1, ["core"], ["python"])
    assert (printer.owner, printer.extra["parent"]) == ("bob", "2")


@pytest.mark.req("M-01")
def test_a_bare_list_is_a_plan_and_so_is_json(tmp_path: Path) -> None:
    assert [task.draft.subject for task in plan_file.read_plan(written(tmp_path, "- One\n- Two\n")).tasks] == [
        "One",
        "Two",
    ]
    assert plan_file.read_plan(written(tmp_path, '{"tasks": ["One"]}')).tasks[0].key == "task-1"


@pytest.mark.req("M-01")
@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("tasks: 5\n", 1, "a list of 1 to 5,000 tasks"),
        ("just text\n", 1, "a list of tasks"),
        ("tasks:\n  - a\n  - subjekt: b\n", 3, "did you mean subject?"),
        ("tasks:\n  - description: b\n", 2, "subject"),
        ("tasks:\n  - id: a\n    subject: One\n  - id: a\n    subject: Two\n", 4, "another task's"),
        ("tasks:\n  - id: one\n    subject: One\n    needs: [won]\n", 4, "did you mean one?"),
        ("- id: a\n  subject: A\n  needs: b\n- id: b\n  subject: B\n  blocked_by: [a]\n", 1, "wait for each other"),
        ("- subject: A\n  blocked_by: {a: 1}\n", 2, "an id or a list of ids"),
        ("- subject: A\n  needs: [b]\n", 2, "`needs` names 'b'"),
        ("- subject: A\n  blocked_by: [b]\n", 2, "`blocked_by` names 'b'"),
        ("- subject: A\n  needs: 5.5\n", 2, "`needs` must be an id"),
        ("- subject: A\n  needs: [[b]]\n", 2, "`needs` names .* The id must be text, not list"),
        ("- subject: A\n  needs: ['']\n", 2, "`needs` names '': The id is empty"),
        (f"- subject: A\n  needs: {list(range(1001))}\n", 2, "`needs` must be .* 1,000 at most"),
        ("- subject: A\n  priority: 99\n", 2, "priority"),
        ("- subject: A\n  owner: ''\n  labels: 5\n", 3, "labels"),
        ("- subject: A\n  needs: []\n  blocked_by: []\n", 2, "mean the same"),
        ("- subject: &x A\n- subject: *x\n", 1, "alias"),
        ("- subject: !!python/object/apply:os.system ['true']\n", 1, "plain values only"),
        ("- subject: A\n  subject: B\n", 2, "twice"),
        ("- subject: 'A\n", 2, "not YAML"),
        ("name: ''\ntasks: [A]\n", 1, "not a valid team name"),
        ("- subject: A\n  id: [1]\n", 2, "id"),
    ],
)
def test_a_bad_plan_is_refused_with_its_line_and_the_reason(tmp_path: Path, text: str, line: int, why: str) -> None:
    with pytest.raises(BadPlan, match=why) as refused:
        plan_file.read_plan(written(tmp_path, text))
    assert (refused.value.file, refused.value.line) == ("plan.yaml", line)


def test_a_plan_that_is_not_there_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        plan_file.read_plan(str(tmp_path / "none.yaml"))
    (tmp_path / "plan.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadPlan, match="not UTF-8"):
        plan_file.read_plan(str(tmp_path / "plan.yaml"))
