"""
What an import costs: a command line that starts on every tool call loads little.

Counted in modules, not in milliseconds: counts are exact, times are noise.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.python import run_python
from support.repo import SOURCE, python_files, shown

#: Standard modules that only those who need them pay for, inside the function that does.
HEAVY = frozenset({
    "asyncio", "concurrent.futures", "dataclasses", "hashlib", "inspect", "logging",
    "multiprocessing", "pathlib", "ssl", "subprocess", "tomllib", "unittest",
})  # fmt: skip

#: Modules for programs that run an event loop, and so have paid for it: nothing else imports them.
FOR_ASYNCIO = frozenset({
    "taskyard.agents.agent.recorder", "taskyard.jobs.async_jobs", "taskyard.storage.async_change_feed",
    "taskyard.yard.async_yard",
})  # fmt: skip

#: What stands on other people's libraries: each is loaded by the one command or kind of job that needs it.
EDGES = (
    "agents/engines/acp_session.py", "agents/engines/model_loop.py", "jobs/kinds/mcp_source.py", "jobs/remote/a2a.py",
    "jobs/remote/ray.py", "jobs/workflow/yaml_text.py", "postgres", "servers", "ui/tui", "ui/web",
)  # fmt: skip

#: Importing the module, in a bare interpreter, adds at most this many, itself included. The
#: counts on CPython 3.11 are a few lower; other versions split their library a little differently.
BUDGETS = {
    "taskyard": 8,
    "taskyard.errors": 7,
    "taskyard.core.system": 5,
    "taskyard.core.values": 16,
    "taskyard.config": 22,
    "taskyard.core.files": 11,
    "taskyard.storage.locks": 17,
    "taskyard.tasks.model": 22,
    "taskyard.cli.main": 10,
}

_IMPORT_EACH = """
    import importlib, json, sys
    before = set(sys.modules)
    brought = {}
    for name in sys.argv[1:]:
        importlib.import_module(name)
        brought[name] = sorted(set(sys.modules) - before)
        before = set(sys.modules)
    print(json.dumps(brought))
"""


#: Libraries that one function of the core imports when it is called: a setting, a key or a file asks for them.
ON_DEMAND = {
    "src/taskyard/jobs/notice_payload.py": {"_sha2"},  # in the standard library since 3.12
    "src/taskyard/config.py": {"psycopg", "psycopg.conninfo"},
    "src/taskyard/jobs/remote/remotes.py": {"keyring", "keyring.errors"},
}


def core_files() -> list[Path]:
    """Every file of the package but those of its edges, which are loaded by one command each, with what they need."""
    edges = [SOURCE / "taskyard" / name for name in EDGES]
    return [path for path in python_files(SOURCE / "taskyard") if not any(map(path.is_relative_to, edges))]


def core_modules() -> list[str]:
    """Every module of the core, by its dotted name; `__main__` would run."""
    names: list[str] = []
    for path in core_files():
        parts = path.relative_to(SOURCE).with_suffix("").parts
        if parts[-1] != "__main__":
            names.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return names


def brought_by(*modules: str) -> dict[str, list[str]]:
    """For each module, imported in this order in one new interpreter: what it was the first to load."""
    found: dict[str, list[str]] = json.loads(run_python(_IMPORT_EACH, *modules))
    return found


def is_ours_or_standard(module: str) -> bool:
    return module.split(".")[0] in sys.stdlib_module_names | {"taskyard"}


def imports_in(path: Path) -> Iterator[tuple[int, str]]:
    """Every absolute import in a file, at its top or inside a function: line and module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.lineno, node.module


def test_importing_any_module_loads_nothing_heavy() -> None:
    guilty = {
        module: sorted(HEAVY.intersection(loaded))
        for module, loaded in brought_by(*core_modules()).items()
        if HEAVY.intersection(loaded) and module not in FOR_ASYNCIO
    }
    assert guilty == {}


def test_the_core_is_made_of_the_standard_library_alone() -> None:
    foreign = [
        f"{shown(path)}:{line}: {module}"
        for path in core_files()
        for line, module in imports_in(path)
        if not is_ours_or_standard(module) and module not in ON_DEMAND.get(shown(path), ())
    ]
    assert foreign == []


@pytest.mark.parametrize("module", BUDGETS)
def test_a_module_stays_within_its_budget_of_modules(module: str) -> None:
    loaded = brought_by(module)[module]
    assert len(loaded) <= BUDGETS[module], loaded


#: What a whole `taskyard task list` loads, from the interpreter's start to its end. It runs on every
#: look of an agent: neither writers nor locks nor `typing` nor threads are needed for that.
LISTING = 95
NOT_FOR_LISTING = frozenset({"typing", "threading", "ctypes", "shutil", "taskyard.tasks.writer"})

_LIST_TASKS = """
    import json, sys
    before = set(sys.modules)
    from taskyard.cli.main import main
    code = main(["task", "list", "-q"])
    print(json.dumps([code, sorted(set(sys.modules) - before)]))
"""


def test_listing_tasks_from_a_shell_loads_little(tmp_path: Path) -> None:
    import taskyard

    with taskyard.open() as yard:
        yard.tasks.create("A")
        yard.tasks.create("B", blocked_by=["1"])
    *ids, last = run_python(_LIST_TASKS).splitlines()
    code, loaded = json.loads(last)

    assert (code, ids) == (0, ["1", "2"])
    assert not (NOT_FOR_LISTING | HEAVY).intersection(loaded)
    assert len(loaded) <= LISTING, loaded


#: What the server of keepers does without: with each library, every keeper forked from it costs more time and memory.
NOT_FOR_KEEPERS = frozenset(
    {"_hashlib", "hashlib", "hmac", "selectors", "signal", "socket", "termios", "threading", "typing", "zlib"}
)

_SERVER = "taskyard.jobs.supervisor.server"


@pytest.mark.req("B-08")
def test_the_server_that_forks_keepers_carries_little() -> None:
    loaded = brought_by(_SERVER)[_SERVER]

    assert "taskyard.jobs.supervisor.run" in loaded
    assert not (NOT_FOR_KEEPERS | HEAVY).intersection(loaded)


def test_a_heavy_import_is_seen_where_it_happens() -> None:
    assert "dataclasses" in brought_by("taskyard.errors", "dataclasses")["dataclasses"]


def test_no_module_of_the_core_loads_an_edge() -> None:
    loaded = {name for names in brought_by(*core_modules()).values() for name in names}
    assert [
        name
        for name in loaded
        if name.startswith(tuple(f"taskyard.{edge.removesuffix('.py').replace('/', '.')}" for edge in EDGES))
    ] == []
