"""What tests of the page share: a browser, and a team at work to look at."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from support.browser import running
from support.page_team import PageTeam


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for the tests of a module."""
    with running() as found:
        yield found


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageTeam]:
    """The list `release-2` in the middle of its work, served to all tests of this module."""
    with PageTeam(tmp_path_factory.mktemp("team")) as found:
        yield found
