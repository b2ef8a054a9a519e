"""docs/reference/engines.md: what was tried with which real program, how that ended, and why a case was not run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from support.agent_programs import PACKAGES, pinned
from support.repo import ROOT

PAGE = ROOT / "docs" / "reference" / "engines.md"


class Table(NamedTuple):
    """One table of the page: a row for each parameter of a test file, a column for each of its tests."""

    title: str
    about: str
    tests: str  #: the file below tests/clients
    row: str  #: what a row is
    programs: Mapping[str, str]  #: the program of each row
    cases: Mapping[str, str]  #: what each case shows, by the name of its test


class Cell(NamedTuple):
    """How one case ended."""

    mark: str  #: "yes", "no" or "–"
    reason: str = ""  #: why the case was not run: the program does not offer it, or Taskyard does not install it


TABLES = (
    Table(
        "Engines",
        "A turn of `taskyard agent --engine NAME` with the real program.",
        "test_engines.py",
        "engine",
        {
            "claude": "claude",
            "codex": "codex",
            "gemini": "gemini",
            "opencode": "opencode",
            "claude-acp": "claude-agent-acp",
            "codex-acp": "codex-acp",
            "gemini-acp": "gemini",
            "opencode-acp": "opencode",
        },
        {
            "result": "the job's result is the model's answer; a prompt that begins with `-` is a prompt",
            "progress": "in mode `work` it writes a file and runs a command without asking; progress names each tool",
            "usage": "the tokens are exactly those that the program reports",
            "resume": "a second run continues the same conversation and counts only its own tokens",
            "refusal": "a denied tool is not run; the turn names it and is not complete",
            "permission": "it asks before a tool runs, and runs it after the answer `y`",
            "stop": "stopped while it runs a command, it leaves no process",
            "status_429": "HTTP 429 is a rate limit",
            "status_529": "HTTP 529 (overloaded) is a rate limit",
            "status_500": "HTTP 500 is an error that a retry may resolve",
            "reset_time": "a used-up quota is a rate limit until the time that the provider names",
            "cut_stream": "a connection that breaks in the middle of an answer is an error that a retry may resolve",
            "own_tools": "Taskyard's tools are in its first request, and its model reads the text of their answers",
            "own_commands": "in mode `ask`, Taskyard's own Bash runs nothing without permission",
        },
    ),
    Table(
        "Clients of the MCP server",
        "The program with Taskyard's MCP server in its configuration, run by its own command.",
        "test_mcp_tools.py",
        "client",
        {"claude-code": "claude", "codex": "codex", "gemini": "gemini", "opencode": "opencode"},
        {
            "install": "`taskyard install` sets it up, it connects; `taskyard uninstall` restores its files",
            "answers": "the tools are in its first request; its model reads the text of each answer",
            "notices": "its model reads the end of a background job exactly once, with the next answer",
            "mail": "its model is told of mail, and reads it",
            "reminder": "after ten turns without the task tools its model is reminded of the open tasks, once",
            "hooks": "its hooks tell its model each notice exactly once, also when it calls none of our tools",
            "idle_session": "an idle interactive session begins a turn when a background job ends",
        },
    ),
)

_NODE = re.compile(r"tests/clients/(test_\w+\.py)::test_(\w+)\[([a-z-]+)\]")

Cells = dict[tuple[str, str, str], Cell]  # by the test file, row and case


def write(stats: Mapping[str, Any]) -> None:
    """Write the page from the reports of a run; what did not run stays as it was."""
    cells = written()
    for outcome in ("passed", "skipped", "failed", "error"):  # the worst of several counts
        for report in stats.get(outcome, []):
            if (found := _NODE.match(report.nodeid)) is not None:
                cells[found[1], found[3], found[2]] = _cell(outcome, report)
    PAGE.write_text(page(cells), encoding="utf-8")


def _cell(outcome: str, report: Any) -> Cell:
    if outcome == "skipped":
        return Cell("–", str(report.longrepr[2]).removeprefix("Skipped: "))
    return Cell("yes" if outcome == "passed" else "no")


def written() -> Cells:
    """The cells as the page has them."""
    text = PAGE.read_text(encoding="utf-8")
    reasons = dict(re.findall(r"^(\d+)\. (.*)$", text, re.MULTILINE))
    cells: Cells = {}
    for table in TABLES:
        _, _, part = text.partition(f"## {table.title}\n")
        for row, rest in re.findall(r"^\| `([\w-]+)` \|(.*)\|$", part.partition("\n## ")[0], re.MULTILINE):
            marks = [mark.strip() for mark in rest.split("|")][1:]
            if row in table.programs and len(marks) == len(table.cases):
                for case, mark in zip(table.cases, marks, strict=True):
                    number = re.search(r"\d+", mark)
                    cells[table.tests, row, case] = Cell(mark[:1], reasons[number[0]]) if number else Cell(mark)
    return cells


def page(cells: Cells) -> str:
    """The page."""
    reasons: list[str] = []
    lines = [
        "# Engines with real agent programs",
        "",
        "Every `yes` is a test with the unmodified program, at the version named, on a scripted model on this machine.",
        "`make test-clients` runs them and generates this page.",
        "",
        "`yes`: works. `no`: the test failed. `–`: not tested, since the program does not offer it or Taskyard",
        "does not install it; the [reason](#reasons) of that number says which.",
    ]
    for table in TABLES:
        lines += ["", f"## {table.title}", "", table.about, ""]
        lines += [f"| {table.row} | program | {' | '.join(_heading(case) for case in table.cases)} |"]
        lines += [f"|---|---|{'---|' * len(table.cases)}"]
        for row, program in table.programs.items():
            found = (cells.get((table.tests, row, case), Cell("")) for case in table.cases)
            marks = " | ".join(_mark(cell, reasons) for cell in found)
            lines.append(f"| `{row}` | {PACKAGES[program]} {pinned(program)} | {marks} |")
        lines += ["", "| case | what it shows |", "|---|---|"]
        lines += [f"| {_heading(case)} | {what} |" for case, what in table.cases.items()]
    lines += ["", "## Reasons", ""]
    lines += [f"{number}. {reason}" for number, reason in enumerate(reasons, 1)]
    return "\n".join(lines) + "\n"


def _heading(case: str) -> str:
    return case.removeprefix("status_").replace("_", " ")


def _mark(cell: Cell, reasons: list[str]) -> str:
    if not cell.reason:
        return cell.mark
    if cell.reason not in reasons:
        reasons.append(cell.reason)
    return f"{cell.mark} {reasons.index(cell.reason) + 1}"
