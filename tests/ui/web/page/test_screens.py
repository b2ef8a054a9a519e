"""Pictures of the page for the documentation, made when asked for: TASKYARD_WRITE_SCREENS=1."""

from __future__ import annotations

import os

import pytest
from playwright.sync_api import Browser

from support.browser import THIN, WIDE, tab
from support.page_team import PageTeam, at
from support.pictures import shrink
from support.repo import ROOT

IMAGES = ROOT / "docs" / "images"

#: Whether they are made.
WRITES = os.environ.get("TASKYARD_WRITE_SCREENS") == "1"

VIEWS = ("board", "graph", "background", "timeline", "panel")


@pytest.mark.req("U-04")
@pytest.mark.skipif(not WRITES, reason="pictures are made on demand")
@pytest.mark.parametrize(
    ("name", "size", "scheme", "views"),
    [("", WIDE, "light", VIEWS), ("-thin", THIN, "light", VIEWS), ("-dark", WIDE, "dark", ("board",))],
)
def test_pictures_for_the_documentation(
    browser: Browser, team: PageTeam, name: str, size: tuple[int, int], scheme: str, views: tuple[str, ...]
) -> None:
    IMAGES.mkdir(exist_ok=True)
    with tab(browser, size, color_scheme=scheme, reduced_motion="reduce") as one:
        page = one.see(team.server)
        for view in views:
            at(page, view)
            page.mouse.move(size[0] - 4, size[1] - 4)
            path = IMAGES / f"web-{view}{name}.png"
            page.screenshot(path=path, animations="disabled")
            shrink(path)
            assert path.stat().st_size < 120_000


@pytest.mark.req("U-04")
@pytest.mark.parametrize("view", VIEWS)
def test_the_documentation_has_a_picture_of_each_view_at_two_sizes(view: str) -> None:
    for name in ("", "-thin"):
        assert 5_000 < (IMAGES / f"web-{view}{name}.png").stat().st_size < 120_000
