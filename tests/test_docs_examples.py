"""What the documentation shows is what happens: every block of the first pages is run."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from support.doc_examples import Reader, agrees, blocks, commands
from support.repo import ROOT, shown

#: Pages that a newcomer types along with.
STARTING = [ROOT / "README.md", *sorted((ROOT / "docs" / "start").glob("*.md"))]
#: Guides whose every command and program is whole, and so can be run as well.
GUIDES = [ROOT / "docs" / "guides" / name for name in ("import-export.md", "teams-and-mail.md")]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("page", [*STARTING, *GUIDES], ids=shown)
def test_every_example_of_such_a_page_does_what_it_says(page: Path, tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.language == "python":
            reader.run(block.text)
        for command in commands(block.text) if block.language == "console" else ():
            printed = reader.type(command.words)
            assert agrees(command.expected, printed), f"{shown(page)}, line {block.line}: $ {command.words}\n{printed}"


@pytest.mark.parametrize("page", STARTING, ids=shown)
def test_a_starting_page_has_no_block_that_is_neither_run_nor_plain_text(page: Path) -> None:
    languages = {block.language for block in blocks(page.read_text(encoding="utf-8"))}

    assert languages <= {"console", "python", "text"}


def test_every_json_example_is_json_and_every_python_example_is_python() -> None:
    for page in PAGES:
        for block in blocks(page.read_text(encoding="utf-8")):
            if block.language == "json":
                json.loads(block.text)
            elif block.language == "python":
                ast.parse(block.text)


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        (["◐ 1  Port  @ada   0s"], "◐ 1  Port   @ada  12s\n", True),
        (["one", "…", "four"], "one\ntwo\nthree\nfour\n", True),
        (["…", "… ada  complete"], "x\n2026-11-16 00:55:47  ada  complete\n", True),
        (["one"], "one\ntwo\n", False),
        (["one", "two"], "one\n", False),
        ([], "Error\n", False),
    ],
)
def test_output_is_compared_loosely_but_compared(expected: list[str], printed: str, same: bool) -> None:
    assert agrees(expected, printed) is same
