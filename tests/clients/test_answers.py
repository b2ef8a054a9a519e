"""A prompt in, an answer out: `taskyard agent --engine NAME` with each real program."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support import cli
from support.model_api import ModelApi, Say

pytestmark = [pytest.mark.client, pytest.mark.smoke]


@pytest.mark.parametrize("engine", ["claude"])
def test_the_answer_of_the_model_is_the_answer_of_the_job(engine: str, model: Callable[..., ModelApi]) -> None:
    api = model(Say("Forty-two, as always."))

    done = cli.process("agent", "What is the answer?", "--engine", engine)

    assert done.code == 0, done.err
    assert "Forty-two, as always." in done.out
    assert "What is the answer?" in api.turns[0].text
