"""An output on the screen, and signs in it that are wider than one column."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.tui import RELEASE, Scenery, driven, eventually, grid, home_of, printed, scene, view_of

#: Of an odd number of columns, wherever a line is folded.
SIGNS = "a" + "".join(chr(0x4E00 + at) for at in range(120))


def right(text: str) -> str:
    """The signs in the right half of a screen."""
    return "".join(re.findall("[\u4e00-\u9fff]", "".join(line.split("││")[-1] for line in text.splitlines()[2:])))


@pytest.mark.req("U-01")
@driven
async def test_a_wrapped_output_and_a_long_description_show_every_wide_sign(tmp_path: Path) -> None:
    home = home_of(tmp_path)
    printed(home, "b7k2m3x0q", f"{SIGNS}\n".encode())
    tasks = [RELEASE[0]._replace(description=SIGNS), *RELEASE[1:]]
    app = view_of(Scenery(scene(tasks=tasks), home))
    async with app.run_test(size=(121, 40)) as pilot:
        await pilot.press("2")
        app.main.jobs.select("b7k2m3x0q")
        await pilot.press("3", "w")
        await eventually(pilot, lambda: SIGNS[1:] in right(grid(app)), "the output")
        await pilot.press("1")
        app.main.tasks.select("9")
        await eventually(pilot, lambda: SIGNS[1:] in right(grid(app)), "the description")
