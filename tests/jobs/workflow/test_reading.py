"""What people write is understood, or refused with its place before anything is done."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.errors import BadWorkflow, NotFound
from taskyard.jobs.workflow.parse import MAX_FILE_BYTES, parse_definition, read_file

WHOLE = """
name: release
env: {PORT: 8080, DEBUG: true, VERSION: "1.10"}
max-parallel: 4
steps:
  - id: build
    run: make
    timeout: 10m
    retries: 2
    retry-delay: 0
  - id: test
    needs: build
    run: make test > ${{ env.PORT }}
    if: steps.build.exit_code == 0
    on-failure: continue
  - needs: [build, test]
    tasks:
      - Read the notes
      - {subject: Sign off, needs: Read the notes, owner: ada}
"""


def written(folder: Path, text: str, name: str = "w.yaml") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_workflow_is_read_whole(tmp_path: Path) -> None:
    found, raw = read_file(written(tmp_path, WHOLE), has_agents=False)

    assert (found.name, found.env, found.max_parallel) == (
        "release",
        {"PORT": "8080", "DEBUG": "true", "VERSION": "1.10"},
        4,
    )
    build, test, third = found.steps
    assert (build.timeout, build.retries, build.retry_delay) == (600, 2, 0)
    assert (test.needs, test.condition, test.goes_on) == (("build",), "steps.build.exit_code == 0", True)
    assert (third.id, [wish.needs for wish in third.tasks], third.tasks[1].owner) == ("step-3", [(), (0,)], "ada")
    assert parse_definition(json.loads(json.dumps(raw)), has_agents=False)[0] == found


def test_json_says_the_same_without_any_package(tmp_path: Path) -> None:
    path = written(tmp_path, '{"steps": [{"id": "a", "run": "true"}]}', "w.json")

    assert read_file(path, has_agents=False)[0].steps[0].run == "true"


@pytest.mark.req("K-05")
@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("steps:\n  - id: a\n    rum: x\n", 3, "no key 'rum'; did you mean run"),
        ("stages: []\n", 1, "no key 'stages'"),
        ("steps: []\n", 1, "1 to 500"),
        ("steps:\n  - id: a\n", 2, "exactly one of run, agent and tasks"),
        ("steps:\n  - {id: a, run: x, tasks: [y]}\n", 2, "exactly one of"),
        ("steps:\n  - {id: 'a b', run: x}\n", 2, "its id is"),
        ("steps:\n  - {id: a, run: x}\n  - {id: a, run: x}\n", 3, "two steps are called a"),
        ("steps:\n  - id: a\n    run: x\n    needs: b\n", 4, "it needs 'b', which is not a step"),
        ("steps:\n  - {id: a, run: x, needs: b}\n  - {id: b, run: x, needs: [c]}\n  - {id: c, run: x, needs: a}\n", 2,
         "a needs b needs c needs a"),
        ("steps:\n  - {id: a, run: x, needs: a}\n", 2, "a needs a"),
        ("steps:\n  - id: a\n    run: x\n    if: system('x')\n", 4, "asks system"),
        ("steps:\n  - {id: a, run: x}\n  - id: b\n    run: echo ${{ steps.a.output }}\n", 3, "add it to `needs` of b"),
        ("steps:\n  - id: a\n    run: x\n    env:\n      V: 3.10\n", 5, "put it into quotes"),
        ("steps:\n  - {id: a, run: x, timeout: soon}\n", 2, "must be a time"),
        ("steps:\n  - {id: a, run: x, retries: -1}\n", 2, "whole number"),
        ("steps:\n  - {id: a, agent: do it}\n", 2, "local_agent"),
        ("steps:\n  - {id: a, tasks: [{subject: x, needs: y}]}\n", 2, "not the subject of an earlier task"),
        ("steps:\n  - &x {id: a, run: x}\n  - *x\n", 2, "alias"),
        ("steps: !!python/object/apply:os.system ['x']\n", 1, "tag"),
        ("steps:\n  - {id: a, id: b, run: x}\n", 2, "'id' twice"),
        ("steps:\n  - [\n", 3, "not YAML"),
        ("", 1, "is empty"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_its_line(tmp_path: Path, text: str, line: int, why: str) -> None:
    with pytest.raises(BadWorkflow, match=why) as caught:
        read_file(written(tmp_path, text), has_agents=False)

    assert caught.value.line == line
    assert str(caught.value).startswith(f"w.yaml, line {line}: ")


def test_what_is_too_large_or_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        read_file(str(tmp_path / "none.yaml"), has_agents=False)
    with pytest.raises(Exception, match="larger than"):
        read_file(written(tmp_path, "#" * (MAX_FILE_BYTES + 1)), has_agents=False)
    with pytest.raises(BadWorkflow, match="nested too deeply"):
        read_file(written(tmp_path, "[" * 30 + "]" * 30), has_agents=False)
    with pytest.raises(BadWorkflow, match=r"JSON.*") as caught:
        read_file(written(tmp_path, '{\n"steps": [}', "w.json"), has_agents=False)
    assert caught.value.line == 2


_KEYS = st.sampled_from(["id", "run", "needs", "env", "steps", "tasks", "if"])
_PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=5),
    max_leaves=20,
)


@given(_PLAIN)
def test_no_data_is_taken_for_a_workflow_by_accident(raw: object) -> None:
    try:
        parse_definition(raw, has_agents=False)
    except BadWorkflow:
        pass
