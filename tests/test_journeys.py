"""How many source files a command passes through, and that the architecture page names functions that exist."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.repo import ROOT, SOURCE

#: Distinct files of `src/taskyard` whose functions run in the calling process, at most.
FILES = {
    "task add hello": 26,
    "task list": 18,
    "task next --start --by ada": 26,
    "task done 1 --by ada": 28,
    "run -d -- true": 26,
    "ps --all": 22,
}

_COUNT = """
import json, sys, threading
files = set()
def called(frame, event, argument):
    code = frame.f_code
    if event == "call" and "/src/taskyard/" in code.co_filename and code.co_flags & 1:  # a function, no class body
        files.add(code.co_filename.split("/src/taskyard/")[1])
from taskyard.cli.main import main
threading.setprofile(called)
sys.setprofile(called)
try:
    code = main(sys.argv[1:])
except SystemExit as end:
    code = end.code
sys.setprofile(None)
sys.stderr.write("\\n" + json.dumps([code, sorted(files)]))
"""


def files_of(command: str) -> list[str]:
    """The files that a command passes through."""
    words = [sys.executable, "-c", _COUNT, *command.split()]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True, stdin=subprocess.DEVNULL)
    code, files = json.loads(done.stderr.splitlines()[-1])
    assert code == 0, done.stderr
    return list(files)


def test_a_command_passes_through_few_source_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = {command: files_of(command) for command in FILES}  # in this order: each uses what the one before made

    assert {command: len(files) for command, files in found.items() if len(files) > FILES[command]} == {}, found


def names_in_journeys() -> list[str]:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    journeys = page.split("## Journeys")[1].split("\n## ")[0]
    return re.findall(r"`([a-z_]+(?:\.\w+)+)`", journeys)


def is_defined(name: str) -> bool:
    """Whether `package.module.Class.method` is defined in the source."""
    parts = name.split(".")
    for count in range(len(parts) - 1, 0, -1):
        folder = SOURCE.joinpath("taskyard", *parts[:count])
        for file in (folder.with_suffix(".py"), folder / "__init__.py"):
            if file.is_file():
                return _has(ast.parse(file.read_text(encoding="utf-8")), parts[count:])
    return False


def _has(node: ast.AST, names: list[str]) -> bool:
    if not names:
        return True
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return any(
        isinstance(child, kinds) and child.name == names[0] and _has(child, names[1:])
        for child in ast.iter_child_nodes(node)
    )


def test_every_function_that_the_architecture_page_names_exists() -> None:
    names = names_in_journeys()

    assert len(names) >= 20
    assert [name for name in names if not is_defined(name)] == []


def test_the_package_has_fourteen_entries_and_at_most_three_hundred_modules() -> None:
    package = SOURCE / "taskyard"
    entries = {path.stem for path in package.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    modules = [path for path in package.rglob("*.py") if os.sep + "static" + os.sep not in str(path)]

    assert len(entries - {"__init__", "__main__"}) == 14
    assert len(modules) <= 300


def test_a_long_module_says_why() -> None:
    long = [path for path in (SOURCE / "taskyard").rglob("*.py") if path.read_text("utf-8").count("\n") > 1_000]

    assert [path.name for path in long if "Over 1,000 lines because" not in path.read_text(encoding="utf-8")] == []
