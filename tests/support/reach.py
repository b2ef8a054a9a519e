"""
Which public surface a test goes through: the command line, MCP, a screen, or the public names of `import taskyard`.

Tests are read, not run. A test reaches what its body names, and what that names in turn: functions, classes and
constants of its module, its fixtures (by parameter name, from its module or a `conftest.py` above it), and the shared
pieces in `tests/support`. Annotations do not count: a test that mentions a type does not use it.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from support.repo import TESTS

#: What is entered at each surface: `module.name`, or a whole module that is public.
_ENTRIES = {
    "taskyard.cli.main.main": "CLI",
    "taskyard.servers.mcp.server.build": "MCP",
    "taskyard.ui.tui.app.YardApp": "screen",
    "taskyard.ui.web.app.App": "screen",
    "taskyard.open": "Python",
    "taskyard.open_async": "Python",
    "taskyard.Yard": "Python",
    "taskyard.AsyncYard": "Python",
    "taskyard.register_completion_checker": "Python",
    "taskyard.yard.doctor": "Python",
    "taskyard.integrations.model_context": "Python",
    "taskyard.agents.teammate": "Python",
    "taskyard.testing": "Python",
}

#: A program or shell line in a string that starts the command line, or uses the library.
_COMMANDS = {
    "-m taskyard": "CLI",
    "taskyard.cli.main": "CLI",
    "taskyard.open(": "Python",
    "taskyard.open_async(": "Python",
}


class Place(NamedTuple):
    """A name at the top level of a module of the tests."""

    module: Path
    name: str


def surfaces(module: Path, test: str) -> set[str]:
    """The surfaces that a test reaches; `test` is its name, or `Class::name`."""
    tree = _tree(module)
    found: ast.AST = tree
    for part in test.split("::"):
        found = next(node for node in ast.iter_child_nodes(found) if getattr(node, "name", None) == part)
    return _reached(module, found)


def _reached(module: Path, start: ast.AST) -> set[str]:
    """Follow every name from a node on; the surfaces that are entered on the way."""
    first = _step(module, start)
    entered = set(first.entered)
    seen = set(first.next)
    waiting = list(first.next)
    while waiting:
        step = _step_from(waiting.pop())
        entered |= step.entered
        waiting.extend(step.next - seen)
        seen |= step.next
    return entered


class Step(NamedTuple):
    """What one definition enters by itself, and where it leads."""

    entered: frozenset[str]
    next: frozenset[Place]


@cache
def _step_from(place: Place) -> Step:
    return _step(place.module, _definitions(place.module)[place.name])


def _step(module: Path, node: ast.AST) -> Step:
    names = set(_names(node))
    public = {_ENTRIES[entry] for name in names for entry in _public(module, name)}
    places = {place for name in names for place in _places(module, name.split(".")[0])}
    return Step(frozenset(public.union(_commands(node))), frozenset(places))


def _commands(node: ast.AST) -> Iterator[str]:
    """Command lines of ours in strings and in lists of words."""
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield from (surface for text, surface in _COMMANDS.items() if text in part.value)
        elif isinstance(part, ast.List | ast.Tuple):
            words = [word.value if isinstance(word, ast.Constant) else None for word in part.elts]
            yield from ("CLI" for before, word in itertools.pairwise(words) if (before, word) == ("-m", "taskyard"))


def _names(node: ast.AST) -> Iterator[str]:
    """Names that a node uses, dotted where they are; parameters of functions, which may be fixtures, included."""
    if isinstance(node, ast.Attribute) and (dotted := _dotted(node)):
        yield dotted
        return
    if isinstance(node, ast.Name):
        yield node.id
    if isinstance(node, ast.arguments):
        yield from (argument.arg for argument in (*node.posonlyargs, *node.args, *node.kwonlyargs))
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("usefixtures"):
        yield from (str(given.value) for given in node.args if isinstance(given, ast.Constant))
    for field, value in ast.iter_fields(node):
        if field in {"annotation", "returns"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _names(child)


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (before := _dotted(node.value)):
        return f"{before}.{node.attr}"
    return ""


def _public(module: Path, name: str) -> Iterator[str]:
    """The entries that a name of a module stands for, by that module's imports."""
    first, _, rest = name.partition(".")
    imported = _imports(module).get(first)
    if imported is None:
        return
    full = f"{imported}.{rest}" if rest else imported
    yield from (entry for entry in _ENTRIES if full == entry or full.startswith(f"{entry}."))


def _places(module: Path, name: str) -> Iterator[Place]:
    """Where a name of a module is defined among the tests: there, in `tests/support`, or in a `conftest.py` above."""
    if name in _definitions(module):
        yield Place(module, name)
        return
    imported = _imports(module).get(name, "")
    if imported.startswith("support."):
        yield from _in_support(imported)
        return
    for folder in module.parents:
        if folder.is_relative_to(TESTS) and (above := folder / "conftest.py").exists():
            if name in _definitions(above):
                yield Place(above, name)
                return
            if (imported := _imports(above).get(name, "")).startswith("support."):
                yield from _in_support(imported)
                return


def _in_support(imported: str) -> Iterator[Place]:
    """A name of a shared module; all of its names where the module itself was imported."""
    whole = TESTS.joinpath(*imported.split(".")).with_suffix(".py")
    if whole.exists():
        yield from (Place(whole, name) for name in _definitions(whole))
        return
    before, _, name = imported.rpartition(".")
    module = TESTS.joinpath(*before.split(".")).with_suffix(".py")
    if module.exists() and name in _definitions(module):
        yield Place(module, name)


@cache
def _tree(module: Path) -> ast.Module:
    return ast.parse(module.read_text(encoding="utf-8"))


@cache
def _definitions(module: Path) -> dict[str, ast.AST]:
    """Functions, classes and constants at the top of a module."""
    found: dict[str, ast.AST] = {}
    for node in _tree(module).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.Assign):
            found |= {target.id: node.value for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            found[node.target.id] = node.value
    return found


@cache
def _imports(module: Path) -> dict[str, str]:
    """What imported names of a module stand for, also those imported inside functions."""
    found: dict[str, str] = {}
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return found
