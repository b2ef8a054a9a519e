"""What tests of real agent programs share: a model on loopback, and every program set up to use it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from support import agent_environment, engines_page
from support.model_api import Choose, ModelApi, Step, model_api


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Write what was tried to the reference, where TASKYARD_WRITE_ENGINES asks for it."""
    if os.environ.get("TASKYARD_WRITE_ENGINES"):
        engines_page.write(terminalreporter.stats)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., ModelApi]]:
    """Starts a model that does as the given steps say; programs on the PATH speak to it and to nobody else."""
    with ExitStack() as stack:

        def started(*steps: Step | Choose) -> ModelApi:
            api = stack.enter_context(model_api(*steps))
            agent_environment.arranged(api, monkeypatch)
            return api

        yield started
