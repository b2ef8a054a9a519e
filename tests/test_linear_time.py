"""Hostile text takes time in proportion to its length, wherever text from outside is read."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from taskyard.core.values import nearest
from taskyard.errors import TaskyardError
from taskyard.jobs.output import TerminalText
from taskyard.jobs.workflow import expressions, parse
from taskyard.tasks.formats.markdown import from_markdown

#: Seconds of processor time for the longest text that is taken. Quadratic ones took 4 to 150.
LONGEST = 1.5


def _workflow(raw: object) -> object:
    return parse.parse_definition(raw, has_agents=True)


def _step(**more: object) -> dict[str, object]:
    return {"id": "s", "run": "true", **more}


def _everyone_needs_everyone() -> dict[str, object]:
    ids = [f"s{at}" for at in range(400)]
    return {"steps": [_step(id=each, needs=ids[:at], run="${{ steps.s0.status }}") for at, each in enumerate(ids)]}


def _fed(piece: str) -> None:
    """An output that comes in pieces, as a screen is given it."""
    text = TerminalText(colours=False)
    for _ in range(400):
        text.feed(piece.encode())


def _nested(items: int, lines: int) -> str:
    """A checklist `items` deep, with text below the first of them."""
    return "\n".join(" " * depth + "- [ ] a" for depth in range(items)) + "\n  x" * lines


HOSTILE: dict[str, Callable[[], object]] = {
    "${{ without end": lambda: _workflow({"env": {"a": "${{" * 60_000}, "steps": [_step()]}),
    "${{ in a command": lambda: _workflow({"steps": [_step(run="${{" * 60_000)]}),
    "many ${{ }}": lambda: expressions.parse_placeholders("${{ 1 }}" * 25_000),
    "}} alone": lambda: expressions.parse_placeholders("}}" * 100_000),
    "a key twice": lambda: parse.parse_text(json.dumps({f"k{at}": 1 for at in range(60_000)})[:-1] + ', "k59999": 2}'),
    "many needs": lambda: _workflow(_everyone_needs_everyone()),
    "tasks that need tasks": lambda: _workflow(
        {
            "steps": [
                {"id": "s", "tasks": [*(f"t{at}" for at in range(400)), {"subject": "z", "needs": ["t399"] * 90_000}]}
            ]
        }
    ),
    "a 300 kB file": lambda: parse.parse_text("steps:\n" + f"- id: a\n  run: echo {'x' * 570}\n" * 500),
    "many values": lambda: parse.parse_text(f"steps: [{'1,' * 450_000}1]"),
    "many keys": lambda: parse.parse_text("".join(f"k{at}: 1\n" for at in range(90_000))),
    "a sexagesimal number": lambda: parse.parse_text("steps: " + ":".join(["1"] * 300_000)),
    "nested lists": lambda: parse.parse_text("steps: " + "[" * 500_000),
    "nested mappings": lambda: parse.parse_text("steps: " + "{" * 500_000),
    "an unknown key": lambda: _workflow({"x" * 900_000: 1}),
    "a condition": lambda: _workflow({"steps": [_step(**{"if": "(" * 900_000})]}),
    "strings of a terminal that end together": lambda: _fed("\x90" * 4_000 + "\x07"),
    "strings of a terminal before an escape": lambda: _fed("\x90" * 4_000 + "\x1b[0m."),
    "parameters without an end": lambda: _fed("\x9b" + "0" * 4_000 + "é"),
    "a checkbox with many labels": lambda: from_markdown("- [ ] a" + " · label b" * 50_000),
    "text far above where a checklist is": lambda: from_markdown(_nested(1_500, 50_000)),
    "a line of spaces": lambda: from_markdown("- [ ]" + " " * 1_000_000 + "."),
    "names alike": lambda: nearest("a" * 200, [f"{'a' * 190}{at}" for at in range(500)]),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_text_takes_time_in_proportion_to_its_length(what: str) -> None:
    began = time.thread_time()
    with suppress(TaskyardError, expressions.BadExpression):
        HOSTILE[what]()
    assert time.thread_time() - began < LONGEST
