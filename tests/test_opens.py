"""Files are opened in one place: by `taskyard.core.files`, so that no link, pipe or device is opened by mistake."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.repo import SOURCE, python_files, shown

#: Folders are opened as such: what else stands there is refused by the kernel.
_FOLDER_FLAGS = ("O_DIRECTORY", "_FOLDER", "_DIR")

#: What no other program can replace: the kernel's own files, and our own package's.
_SAFE = ("os.devnull", "/proc/", "proc_folder(", "pyvenv.cfg", "FILE", "terminal")

#: Files that a person names on the command line, tables of the kernel given by a parameter, and the one repair
#: that opens files and folders alike, only to change their mode.
_EXCEPT = {
    "src/taskyard/core/files.py",
    "src/taskyard/cli/notices.py",
    "src/taskyard/cli/task_views.py",
    "src/taskyard/storage/locks.py",
    "src/taskyard/core/system.py",
    "src/taskyard/tasks/doctor/repairs.py",
    "src/taskyard/jobs/supervisor/kernel.py",
}


def opens(path: Path) -> Iterator[str]:
    """The calls in a module that open a file by themselves."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or ast.unparse(node.func) not in ("open", "io.open", "os.open"):
            continue
        call = ast.unparse(node)
        flags = " ".join(ast.unparse(each) for each in node.args[1:2])
        if any(name in flags for name in _FOLDER_FLAGS) or any(
            name in ast.unparse(arg) for arg in node.args[:1] for name in _SAFE
        ):
            continue
        yield f"{shown(path)}:{node.lineno} {call}"


@pytest.mark.req("L-02")
def test_every_file_is_opened_by_the_one_function_for_it() -> None:
    modules = [path for path in python_files(SOURCE) if shown(path) not in _EXCEPT]
    demos = ("src/taskyard/cli/demo", "src/taskyard/testing/fake_remote")
    found = [each for path in modules if not shown(path).startswith(demos) for each in opens(path)]
    assert found == []
