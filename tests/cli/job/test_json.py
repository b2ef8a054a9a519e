"""One record of a job in every answer: the keys that docs/reference/json.md promises, and the same everywhere."""

from __future__ import annotations

import re
from typing import Any

import pytest

from support.cli import process, taskyard
from support.job_cli import ended, is_running, job, started
from support.repo import ROOT
from support.wait import until

pytestmark = pytest.mark.req("B-03", "B-11")


def documented(heading: str) -> list[str]:
    """The keys in the table below a heading of the page about JSON."""
    page = (ROOT / "docs" / "reference" / "json.md").read_text(encoding="utf-8")
    section = page.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return [key for row in re.findall(r"^\| (`.+?) \|", section, re.MULTILINE) for key in re.findall(r"`(\w+)`", row)]


def answers() -> dict[str, dict[str, Any]]:
    """What each command answers about a job that runs, one that waits and one that is over."""
    asks = started("--stdin", "--", "cat")
    until(lambda: is_running(asks))
    waits = taskyard("run", "-d", "--json", "--after", asks, "--", "true").data
    return {
        "run -d": waits,
        "ps": job(asks),
        "send": taskyard("send", asks, "x", "--json").data,
        "pause": taskyard("pause", asks, "--json").data,
        "resume": taskyard("resume", asks, "--json").data,
        "wait, not over": taskyard("wait", asks, "--timeout", "0.01s", "--json").data,
        "stop": taskyard("stop", asks, "--json").data,
        "wait": ended(waits["id"]),
        "ps --all": job(asks),
        "logs": taskyard("logs", asks, "--json").data["ended"],
        "run": process("run", "--json", "--", "true").data,
    }


def test_every_command_answers_with_the_same_record_of_a_job() -> None:
    keys = documented("A job")
    assert documented("An attached run") == ["code", "interrupted", "backgroundTaskId", "backgroundedByUser"]
    own = {
        "ps": {"last_line", "total"},
        "ps --all": {"last_line", "total"},
        "send": {"sent", "eof"},
        "pause": {"changed"},
        "resume": {"changed"},
        "stop": {"outcome"},
        "run": set(documented("An attached run")),
    }

    for command, answer in answers().items():
        assert [key for key in answer if key not in own.get(command, set())] == keys, command
        assert answer.keys() - set(keys) == own.get(command, set()), command


def test_the_record_of_an_attempt_and_a_part_of_an_output_have_the_keys_that_are_promised() -> None:
    tries = started("--retry", "1", "--retry-delay", "0", "--", "exit 3")
    ended(tries)

    assert list(job(tries)["earlier"][0]) == documented("An attempt")
    assert list(taskyard("logs", tries, "--json").data) == documented("A part of an output")


def test_while_a_job_is_not_over_nothing_is_known_of_its_end() -> None:
    naps = started("--", "sleep", "60")
    found = job(naps)

    of_the_end = ("exit_code", "signal", "cause", "error", "proof", "ended_at", "duration_ms", "survivors", "kept")
    assert {found[key] for key in of_the_end} == {None}
    assert found["started_at"] and found["output"].endswith(f"/jobs/{naps}/output")
