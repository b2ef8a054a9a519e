"""A release in twelve tasks: a small program is written, checked, built and tagged, for real."""

from __future__ import annotations

import sys

from taskyard.typed import NamedTuple

#: How checks and jobs call the interpreter that runs the demo.
PYTHON = sys.executable


class Step(NamedTuple):
    """One task of the plan."""

    subject: str
    active_form: str
    after: tuple[int, ...] = ()  #: the steps it waits for, counted from 1
    check: tuple[str, ...] = ()  #: the program that must end well before it counts as done


def _tests(module: str) -> tuple[str, ...]:
    return (PYTHON, "-B", "-m", "unittest", "-q", f"tests.{module}")


PLAN = (
    Step("Start the repository", "Starting the repository"),
    Step("Write the tests", "Writing the tests", (1,)),
    Step("Write the word splitter", "Writing the word splitter", (2,), _tests("test_words")),
    Step("Write the counter", "Writing the counter", (2,), _tests("test_count")),
    Step("Write the manual", "Writing the manual", (1,)),
    Step("Write the command line", "Writing the command line", (3, 4)),
    Step("Compile the sources", "Compiling the sources", (6,)),
    Step("Run every test", "Running every test", (6,)),
    Step("Measure the speed", "Measuring the speed", (6,)),
    Step("Build the archive", "Building the archive", (7,)),
    Step("Sign the archive", "Signing the archive", (8, 10)),
    Step("Tag the release", "Tagging the release", (5, 9, 11)),
)
