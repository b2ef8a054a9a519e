"""What a job printed, in windows and whole."""

from __future__ import annotations

import anyio.to_thread
import pytest

from support.web import Web, with_web
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.model import Job


async def ran(web: Web, script: str) -> Job:
    return await anyio.to_thread.run_sync(lambda: web.yard.jobs.run(Shell(script), timeout=30))


def texts(window: dict[str, list[list[tuple[str, str]]]]) -> list[str]:
    return ["".join(text for text, _ in line) for line in window["lines"]]


@pytest.mark.req("U-04")
def test_windows_are_the_last_lines_those_before_and_those_after() -> None:
    async def body(web: Web) -> None:
        path = f"/api/jobs/{(await ran(web, 'seq 100')).id}/output.json"
        last = (await web.get(f"{path}?tail=10")).data
        assert texts(last) == [str(number) for number in range(91, 101)]
        assert (last["is_over"], last["end"], last["omitted"]) == (True, last["size"], 0)
        before = (await web.get(f"{path}?before={last['start']}&lines=5")).data
        assert (texts(before), before["end"]) == (["86", "87", "88", "89", "90"], last["start"])
        after = (await web.get(f"{path}?after={before['start']}&lines=3")).data
        assert texts(after) == ["86", "87", "88"]
        assert texts((await web.get(f"{path}?after={after['end']}&lines=1")).data) == ["89"]
        assert texts((await web.get(path)).data) == [str(number) for number in range(1, 101)]
        assert (await web.get(f"{path}?tail=1&before=1")).status == 400
        assert (await web.get(f"{path}?tail=9999999")).status == 400

    with_web(body)


@pytest.mark.req("U-04")
def test_output_is_text_with_names_of_styles_and_nothing_in_it_acts() -> None:
    script = r"""printf '<script>alert(1)</script>\n\033[31;1mred\033[0m \033]0;title\007\033[2Jplain\n'"""

    async def body(web: Web) -> None:
        got = await web.get(f"/api/jobs/{(await ran(web, script)).id}/output.json")
        assert got.headers["content-type"] == "application/json"
        lines = got.data["lines"]
        assert lines[0] == [["<script>alert(1)</script>", ""]]
        assert lines[1][0] == ["red", "fg1 bold"]
        assert "".join(text for text, _ in lines[1]) == "red plain"

    with_web(body)


def test_a_text_is_found_from_any_place_in_either_direction() -> None:
    async def body(web: Web) -> None:
        path = f"/api/jobs/{(await ran(web, 'echo One; echo two; echo one; echo three')).id}/find.json?text=ONE"
        assert (await web.get(path)).data == {"offset": 0}
        assert (await web.get(f"{path}&from=1")).data == {"offset": 8}
        assert (await web.get(f"{path}&from=9")).data == {"offset": None}
        assert (await web.get(f"{path}&backwards=1")).data == {"offset": 8}
        assert (await web.get(f"{path}&from=8&backwards=1")).data == {"offset": 0}
        assert (await web.get(path.partition("?")[0])).status == 400

    with_web(body)


@pytest.mark.req("U-04")
def test_all_of_it_can_be_fetched_as_a_file_up_to_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(web: Web) -> None:
        path = f"/api/jobs/{(await ran(web, 'seq 100000')).id}/output.txt"
        got = await web.get(path)
        assert got.body == "".join(f"{number}\n" for number in range(1, 100_001)).encode()
        assert got.headers["content-type"] == "text/plain; charset=utf-8"
        assert got.headers["content-disposition"].startswith("attachment")
        assert got.headers["x-content-type-options"] == "nosniff"
        monkeypatch.setattr("taskyard.ui.web.reads.LARGEST_FILE", 1000)
        large = await web.get(path)
        assert (large.status, large.error["code"]) == (413, "too_large")
        assert "/output" in large.error["message"]

    with_web(body)
