"""The page of what was tried lists every engine that runs a program, and every case."""

from __future__ import annotations

import ast

import pytest

from support import engines_page
from support.engines_page import TABLES, Table
from support.repo import ROOT


def test_the_page_is_what_the_cells_on_it_generate_with_the_versions_that_are_pinned() -> None:
    text = engines_page.PAGE.read_text(encoding="utf-8")

    assert engines_page.page(engines_page.written()) == text, "run `make test-clients`"


def test_every_cell_was_run_and_every_dash_has_its_reason() -> None:
    cells = engines_page.written()
    wanted = {(table.tests, row, case) for table in TABLES for row in table.programs for case in table.cases}

    assert set(cells) == wanted
    assert {key: cell for key, cell in cells.items() if cell.mark != "yes" and not cell.reason} == {}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.tests)
def test_every_test_with_a_row_is_a_column(table: Table) -> None:
    tree = ast.parse((ROOT / "tests" / "clients" / table.tests).read_text(encoding="utf-8"))
    tests = [one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name.startswith("test_")]
    with_a_row = [one.name for one in tests if "client" in [argument.arg for argument in one.args.args]]
    rows = [one for one in ast.walk(tree) if isinstance(one, ast.Call) and getattr(one.func, "id", "") == "Client"]

    assert with_a_row == [f"test_{case}" for case in table.cases]
    assert [ast.literal_eval(row.args[0]) for row in rows] == list(table.programs)
