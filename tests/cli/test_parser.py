"""Lists of ids never swallow a subject; errors are raised; help tells examples and exit codes."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping

import pytest

from support.cli import taskyard
from taskyard.cli.main import COMMANDS, Command, CommandEntry, load_entry

pytestmark = pytest.mark.req("T-05")


def commands(table: Mapping[str, CommandEntry] = COMMANDS, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command there is, by the words that lead to it."""
    for name, row in table.items():
        if importlib.util.find_spec(row.target.partition(":")[0]) is None:
            continue
        found = load_entry(row)
        path = (*words, name) if name else words
        if isinstance(found, Command):
            if not row.hidden:
                yield path
        else:
            yield from commands(found, path)


@pytest.mark.parametrize("words", list(commands()), ids=" ".join)
def test_the_help_of_every_command_has_examples_and_exit_codes(words: tuple[str, ...]) -> None:
    ran = taskyard(*words, "--help")

    assert ran.code == 0
    for part in (f"usage: taskyard {' '.join(words)}", "examples:\n  ", "exit codes:\n  0  done", "--json", "--list"):
        assert part in ran.out
    assert max(map(len, ran.lines)) <= 120


@pytest.mark.parametrize(
    "words",
    [
        ("--blocked-by", "1", "2", "S"),
        ("--blocked-by", "1,2", "S"),
        ("S", "--blocked-by", "1", "--blocked-by", "2"),
        ("--blocked-by=1,2", "S"),
        ("--blocked-by", "#1", "#2", "--owner", "ada", "S"),
        ("--blocked-by", "1,", "2", "--", "S"),
    ],
)
def test_ids_may_be_given_in_a_row_with_commas_or_repeated(words: tuple[str, ...]) -> None:
    taskyard("task", "add", "A")
    taskyard("task", "add", "B")

    task = taskyard("task", "add", "--json", *words).data

    assert (task["subject"], task["blocked_by"]) == ("S", ["1", "2"])


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("stop", "b00000000", "--grace", "1s", "b00000001"), "job_not_found"),
        (("wait", "b00000000", "--timeout=1s", "b00000001"), "job_not_found"),
        (("send", "b00000000", "--eof", "text"), "job_not_found"),
        (("send", "b00000000", "-n", "--", "--text"), "job_not_found"),
        (("send", "b00000000", "--eof", "text", "more"), "usage"),
        (("send", "b00000000", "--no-such-option", "text"), "usage"),
        (("wait", "b00000000", "--timeout"), "usage"),
    ],
)
def test_options_may_stand_between_words(words: tuple[str, ...], code: str) -> None:
    assert taskyard("--json", *words).error["code"] == code


def test_an_id_that_is_none_is_refused_and_nothing_is_added() -> None:
    assert taskyard("task", "add", "S", "--blocked-by", "x").code == 2
    assert taskyard("task", "list", "--json").data == []


def test_options_are_not_guessed_from_their_beginning() -> None:
    assert taskyard("task", "list", "--al").code == 2


@pytest.mark.parametrize(
    "words",
    [
        ("run", "--timeout", "-5s", "--", "true"),
        ("run", "--grace", "-1", "true"),
        ("wait", "bnosuch12", "--timeout", "-5s"),
        ("stop", "--grace", "-5s", "bnosuch12"),
    ],
)
def test_a_number_below_nothing_is_a_value_that_is_refused_by_whoever_reads_it(words: tuple[str, ...]) -> None:
    ran = taskyard(*words, "--json") if words[0] != "run" else taskyard("--json", *words)

    assert ran.error["code"] == "bad_value"
    assert "no less than nothing" in ran.error["message"]


def test_numbers_of_a_command_within_the_command_are_its_own() -> None:
    assert taskyard("run", "-q", "-d", "--name", "-5", "--", "true").code == 0
    ran = taskyard("run", "-d", "--json", "echo", "--timeout", "-5", "--name", "-1")

    assert ran.data["command"] == "echo --timeout -5 --name -1"
