"""What tests of the page share: a browser, a tab at a server, and a team at work to look at."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from support.browser import LOOP, Kept, profile, running
from support.desk import Desk
from support.page_team import PageTeam


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Be where the browser can be spoken with."""
    LOOP.step_in()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """Leave it to itself: tests that come next may run loops of their own."""
    LOOP.step_out()


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """A browser for all tests of the page."""
    with running() as found:
        yield found


@pytest.fixture(scope="package")
def shared_desk(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """One server and one tab; tests take it as `desk`."""
    with profile(browser) as context, Desk(context, tmp_path_factory.mktemp("desk")) as found:
        yield found


@pytest.fixture
def desk(shared_desk: Desk, outside: object, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """A list of the test's own at the server and in the tab that all share; the page there may act."""
    shared_desk.settle(monkeypatch)
    yield shared_desk
    shared_desk.leave()


@pytest.fixture(scope="package")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageTeam]:
    """The list `release-2` in the middle of its work, served to all tests that only look."""
    with PageTeam(tmp_path_factory.mktemp("team")) as found:
        yield found


@pytest.fixture(scope="package")
def look(browser: Browser, team: PageTeam) -> Iterator[Kept]:
    """A tab at the team, for all tests that only look; other people's code may look, too."""
    with profile(browser, bypass_csp=True, reduced_motion="reduce") as context:
        yield Kept(context, team.server)
