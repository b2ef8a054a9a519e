"""The page of what was tried lists every engine that runs a program, and every case."""

from __future__ import annotations

import ast

from support import engines_page
from support.repo import ROOT


def test_the_page_lists_every_engine_and_case_with_the_version_that_is_pinned() -> None:
    text = engines_page.PAGE.read_text(encoding="utf-8")

    assert engines_page.page(engines_page.written()) == text, "run `make test-clients`"


def test_every_case_and_every_engine_of_the_tests_is_on_the_page() -> None:
    tree = ast.parse((ROOT / "tests" / "clients" / "test_engines.py").read_text(encoding="utf-8"))
    cases = [one.name.removeprefix("test_") for one in tree.body if isinstance(one, ast.FunctionDef)]
    calls = [one for one in ast.walk(tree) if isinstance(one, ast.Call) and getattr(one.func, "id", "") == "Client"]

    assert {case for case in cases if f"test_{case}" in {f"test_{name}" for name in engines_page.CASES}} == set(
        engines_page.CASES
    )
    assert [ast.literal_eval(call.args[0]) for call in calls] == list(engines_page.PROGRAMS)
