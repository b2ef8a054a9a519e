"""
What the requirements page promises, and which tests prove it.

Tests are read, not run: `@pytest.mark.req("L-07")` on a function or class, or `pytestmark` at the
top of a module or class. Ids must be written out, so that a search finds them. A requirement is delivered
only if a user can reach it: at least one of its tests must go through a public surface (`support.reach`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

_ROW = re.compile(r"^\|\s*([A-Z]-\d\d)\s*\|(.*)\|\s*([^|]*?)\s*\|$", re.MULTILINE)
_STATES = ("delivered", "planned")

MOST_PER_TEST = 3


class Promise(NamedTuple):
    """One row of the page."""

    id: str
    state: str  #: "delivered" or "planned"


class Proof(NamedTuple):
    """One test, and the ids it names."""

    test: str
    ids: tuple[str, ...]


def promises(page: str) -> list[Promise]:
    """The rows of the page, in its order."""
    return [Promise(row[1], row[3]) for row in _ROW.finditer(page)]


def proofs(source: str, name: str) -> list[Proof]:
    """Every test in the text of a module; `name` is the module's, for messages."""
    module = ast.parse(source)
    return list(_proofs_in(module.body, name, _module_marks(module.body)))


def faults(page: Sequence[Promise], tests: Sequence[Proof], *, is_public: Callable[[str], bool]) -> list[str]:
    """What is wrong between page and tests, one sentence each; `is_public`: whether a test uses a public surface."""
    return [*_faults_of_page(page), *_faults_of_tests(page, tests), *_unproved(page, tests, is_public)]


def _faults_of_page(page: Sequence[Promise]) -> Iterator[str]:
    numbers: dict[str, list[int]] = {}
    for promise in page:
        numbers.setdefault(promise.id[0], []).append(int(promise.id[2:]))
        if promise.state not in _STATES:
            yield f"{promise.id} is {promise.state!r}, neither delivered nor planned"
    for group, found in numbers.items():
        if found != list(range(1, len(found) + 1)):
            yield f"group {group} does not count up from 1 without a gap: {found}"


def _faults_of_tests(page: Sequence[Promise], tests: Sequence[Proof]) -> Iterator[str]:
    known = {promise.id for promise in page}
    for test in tests:
        if unknown := [name for name in test.ids if name not in known]:
            yield f"{test.test} names {', '.join(unknown)}, which is not on the page"
        if len(test.ids) > MOST_PER_TEST:
            yield f"{test.test} names {len(test.ids)} requirements; at most {MOST_PER_TEST} a test"


def _unproved(page: Sequence[Promise], tests: Sequence[Proof], is_public: Callable[[str], bool]) -> Iterator[str]:
    naming: dict[str, list[str]] = {}
    for test in tests:
        for name in test.ids:
            naming.setdefault(name, []).append(test.test)
    for promise in page:
        if promise.state != "delivered":
            continue
        found = naming.get(promise.id, [])
        if not found:
            yield f"{promise.id} is delivered, but no test names it"
        elif not any(is_public(test) for test in found):
            yield f"{promise.id} is delivered, but no test reaches it from the CLI, MCP, a screen or `import taskyard`"


def _proofs_in(body: Sequence[ast.stmt], name: str, inherited: tuple[str, ...]) -> Iterator[Proof]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            marks = (*inherited, *_marks(node.decorator_list), *_module_marks(node.body))
            yield from _proofs_in(node.body, f"{name}::{node.name}", marks)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            ids = (*inherited, *_marks(node.decorator_list))
            yield Proof(f"{name}::{node.name}", tuple(dict.fromkeys(ids)))


def _module_marks(body: Sequence[ast.stmt]) -> tuple[str, ...]:
    """The ids of `pytestmark = pytest.mark.req(…)`, alone or in a list."""
    found: list[str] = []
    for node in body:
        if isinstance(node, ast.Assign) and any(ast.unparse(target) == "pytestmark" for target in node.targets):
            value = node.value
            found.extend(_marks(value.elts if isinstance(value, ast.List | ast.Tuple) else [value]))
    return tuple(found)


def _marks(expressions: Sequence[ast.expr]) -> Iterator[str]:
    for node in expressions:
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.req":
            for argument in node.args:
                yield str(argument.value) if isinstance(argument, ast.Constant) else ast.unparse(argument)
