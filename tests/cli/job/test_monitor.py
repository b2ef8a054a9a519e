"""`taskyard monitor` as a person at a shell has it."""

from __future__ import annotations

import pytest

from support.cli import process, taskyard
from support.job_cli import ended, job, prints
from support.wait import until
from taskyard.cli.complete import candidates


@pytest.mark.req("K-06")
def test_a_monitor_in_the_background_is_listed_and_its_events_are_notices() -> None:
    ran = taskyard(
        "monitor", "-d", "--json", "--command", "echo ERROR 7; sleep 300", "--filter", "ERROR", "--name", "app"
    )
    assert ran.code == 0, ran
    job_id = ran.data["id"]
    prints(job_id, "ERROR 7")

    found = job(job_id)
    assert (found["type"], found["description"], found["command"]) == ("monitor_mcp", "app", "echo ERROR 7; sleep 300")
    until(lambda: 'Monitor event: "app"' in taskyard("notices").out, timeout=20)
    told = taskyard("notices").lines
    assert "event" in told[0].split() and told[1:] == ['    Monitor event: "app"', "    ERROR 7"]
    assert taskyard("stop", job_id).code == 0
    assert ended(job_id)["status"] == "killed"


@pytest.mark.req("K-06")
def test_a_monitor_in_the_foreground_shows_what_it_hears_and_ends_as_it_did() -> None:
    ran = process("monitor", "--command", "echo one; exit 3")

    assert (ran.code, "one" in ran.out, "exit code 3" in ran.err) == (1, True, True)
    assert "Monitor" not in taskyard("notices").out


@pytest.mark.req("K-06")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "one source"),
        (["--command", "true", "--mcp-url", "http://localhost/mcp"], "one source"),
        (["--mcp-url", "http://localhost/mcp"], "Which events"),
        (["--command", "true", "--filter", "("], "regular expression"),
        (["--command", "true", "--every", "1s"], "every"),
    ],
)
def test_what_makes_no_sense_is_refused(words: list[str], said: str) -> None:
    ran = taskyard("monitor", "-d", *words)

    assert ran.code == 2 and said in ran.err
    assert taskyard("ps", "--all", "--json").data == []


def test_its_options_complete() -> None:
    assert {"--mcp-command", "--mcp-url"} == {text for text, _ in candidates(["monitor", "--mcp"])}
    assert "warning" in {text for text, _ in candidates(["monitor", "--logs", "w"])}
