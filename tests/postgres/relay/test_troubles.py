"""An error that was raised elsewhere is the same error here."""

from __future__ import annotations

import json

import pytest

from taskyard import errors
from taskyard.errors import JobEnded, NoInput, OutputGone, TaskyardError
from taskyard.postgres.relay.handler import error_from_json, error_to_json

pytestmark = pytest.mark.req("X-01")


@pytest.mark.parametrize(
    "error",
    [
        JobEnded("b3k9x0q2m", "completed"),
        NoInput("b3k9x0q2m", "takes no input", "Start it with --stdin."),
        OutputGone("b3k9x0q2m", status="failed", cause="exited", exit_code=3),
        errors.JobNotFound("b3k9x0q2m", nearest=["b3k9x0q2n"]),
        errors.Busy("job b3k9x0q2m", "its supervisor", 1.0),
    ],
)
def test_an_error_keeps_its_class_words_and_facts(error: TaskyardError) -> None:
    found = error_from_json(json.loads(json.dumps(error_to_json(error))))

    assert type(found) is type(error)
    assert (str(found), found.fact, found.facts()) == (str(error), error.fact, error.facts())
    assert (found.code, found.exit_code) == (error.code, error.exit_code)


@pytest.mark.parametrize("name", ["", "Unheard", "clipped", "__class__"])
def test_an_error_of_a_version_to_come_keeps_its_words(name: str) -> None:
    found = error_from_json(
        {"class": name, "message": "It is too late. Go home.", "fact": "It is too late.", "facts": {}}
    )

    assert (type(found), str(found), found.fact) == (TaskyardError, "It is too late. Go home.", "It is too late.")
