"""One idea a file, one level of abstraction a function: the sizes that keep it so. No exceptions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from support.repo import ROOT, SOURCE, TESTS, python_files, shown

LONGEST_SOURCE = 300
LONGEST_TEST = 400
LONGEST_FUNCTION = 40


def too_long(folder: Path, most: int) -> list[str]:
    """The files below `folder` with more than `most` lines, as `path: lines`."""
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in python_files(folder)}
    return [f"{shown(path)}: {length} lines" for path, length in lengths.items() if length > most]


def functions(text: str) -> Iterator[tuple[str, int]]:
    """Each function of a source text: `name (line N)`, and its lines from `def` to its end but for its docstring."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            told = ast.get_docstring(node, clean=False) is not None
            docstring = (first.end_lineno or first.lineno) - first.lineno + 1 if told else 0
            yield f"{node.name} (line {node.lineno})", (node.end_lineno or node.lineno) - node.lineno + 1 - docstring


def test_no_source_file_is_longer_than_300_lines() -> None:
    assert too_long(SOURCE, LONGEST_SOURCE) == []


def test_no_script_is_longer_than_300_lines() -> None:
    assert too_long(ROOT / "scripts", LONGEST_SOURCE) == []


def test_no_test_file_is_longer_than_400_lines() -> None:
    assert too_long(TESTS, LONGEST_TEST) == []


def test_no_function_is_longer_than_40_lines() -> None:
    long = [
        f"{shown(path)}: {name}, {length} lines"
        for path in python_files(SOURCE)
        for name, length in functions(path.read_text(encoding="utf-8"))
        if length > LONGEST_FUNCTION
    ]
    assert long == []


def test_a_function_is_measured_from_its_def_to_its_last_line_without_its_docstring() -> None:
    text = '@decorated\ndef f():\n    """What."""\n\n    def g():\n        pass\n\n    return g\n'

    assert dict(functions(text)) == {"f (line 2)": 6, "g (line 5)": 2}
