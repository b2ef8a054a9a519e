"""What tests of real agent programs share: a model on loopback, and every program set up to use it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from support import agent_environment
from support.model_api import Choose, ModelApi, Step, model_api


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., ModelApi]]:
    """Starts a model that does as the given steps say; programs on the PATH speak to it and to nobody else."""
    with ExitStack() as stack:

        def started(*steps: Step | Choose) -> ModelApi:
            api = stack.enter_context(model_api(*steps))
            agent_environment.arranged(api, monkeypatch)
            return api

        yield started
