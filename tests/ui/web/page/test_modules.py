"""The page's own code: typed, small, and the same words as everywhere; its decisions are tried without a browser."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.repo import SOURCE, TESTS
from taskyard.core import text

STATIC = SOURCE / "taskyard" / "ui" / "web" / "static"
MODULES = sorted((STATIC / "js").glob("*.js"))
NODE = TESTS / "node"

#: What reads a text as markup or code.
READS_MARKUP = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|DOMParser|srcdoc"
)


def run(script: str, given: object = None) -> Any:
    """What a script answers that can import the page's modules."""
    imports = re.sub(r'from "\./', f'from "{STATIC.as_uri()}/js/', script)
    program = f"const given = {json.dumps(given)};\n{imports}"
    ran = subprocess.run(
        ["node", "--input-type=module", "-"], input=program, capture_output=True, text=True, timeout=50, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.req("U-04")
def test_the_type_checker_agrees_with_every_module() -> None:
    checker = NODE / "node_modules" / ".bin" / "tsc"
    if not checker.exists():
        pytest.fail("The type checker is not here. `make setup` brings it.")
    ran = subprocess.run(
        [checker, "-p", NODE / "tsconfig.page.json"], capture_output=True, text=True, timeout=55, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, "")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_a_module_is_one_idea_and_never_reads_text_as_markup(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 300
    assert max(map(len, source.splitlines())) <= 160
    assert source.startswith("/**")
    assert READS_MARKUP.findall(source) == []


@pytest.mark.req("U-04")
def test_the_page_asks_nobody_but_its_own_server() -> None:
    for path in (*MODULES, *STATIC.glob("css/*.css"), STATIC / "index.html"):
        source = path.read_text(encoding="utf-8")
        assert [found for found in re.findall(r"https?://[\w./]+", source) if "www.w3.org" not in found] == [], (
            path.name
        )
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<script(?![^>]*src=)|<style|\sstyle=|\son\w+=", page)


@pytest.mark.req("U-04")
def test_ages_and_sizes_are_told_as_the_command_line_tells_them() -> None:
    seconds = [-5, 0, 0.4, 59.9, 60, 61, 200, 3_599, 3_600, 3_840, 86_399, 86_400, 200_000]
    sizes = [0, 1, 812, 999, 1_000, 4_096, 9_949, 9_951, 999_499, 32_000_000, 1_500_000_000, 10_000_000_000_000]
    script = """import { duration, size } from "./words.js";
    console.log(JSON.stringify([given[0].map(duration), given[1].map(size)]));"""
    assert run(script, [seconds, sizes]) == [[text.duration(n) for n in seconds], [text.size(n) for n in sizes]]


@pytest.mark.req("U-04")
def test_events_are_understood_wherever_the_line_was_cut() -> None:
    sent = (
        'retry: 1000\n: hello\n\nid: a-1\nevent: change\ndata: {"a":\ndata: 1}\n\r\n'
        ": beat\n\ndata: plain\r\n\r\nid: a-2\ndata\n\ndata: half"
    )
    script = """import { Parser } from "./sse.js";
    const heard = (parts, parser = new Parser()) => parts.flatMap((part) => parser.feed(part));
    const cut = (at) => heard([given.slice(0, at), given.slice(at)]);
    console.log(JSON.stringify([...given].map((_, at) => cut(at))));"""
    events = [
        {"event": "change", "id": "a-1", "data": '{"a":\n1}'},
        {"event": "message", "id": "a-1", "data": "plain"},
        {"event": "message", "id": "a-2", "data": ""},
    ]
    assert all(found == events for found in run(script, sent))


@pytest.mark.req("U-04")
def test_a_change_touches_only_its_rows_and_a_new_whole_keeps_what_did_not_change() -> None:
    script = """import { merged, settled } from "./merge.js";
    const before = { tasks: { 1: { id: "1", a: 1 }, 2: { id: "2" } }, jobs: {}, people: {}, task_order: ["1"] };
    const after = merged(before, { tasks: { 2: null, 3: { id: "3" } }, task_order: ["3", "1"] });
    const again = settled(after, JSON.parse(JSON.stringify(after)));
    const kept = [after.tasks[1] === before.tasks[1], again.tasks[3] === after.tasks[3], "2" in before.tasks];
    console.log(JSON.stringify([after, ...kept]));"""
    after, *kept = run(script)
    assert after["tasks"] == {"1": {"id": "1", "a": 1}, "3": {"id": "3"}}
    assert after["task_order"] == ["3", "1"]
    assert kept == [True, True, True]


@pytest.mark.req("U-04")
def test_time_is_folded_where_nothing_happened_and_bars_never_cover_each_other() -> None:
    script = """import { FOLD, packed, scale } from "./timescale.js";
    const drawn = scale(0, 7_200_000, [{ start: 600_000, end: 6_600_000 }], 1_000);
    const bars = [[0, 5], [1, 2], [2, 9], [5, null], [6, 7]].map(([start, end]) => ({ start, end }));
    const points = [0, 600_000, 3_600_000, 6_600_000, 7_200_000].map(drawn.at);
    console.log(JSON.stringify([points, FOLD, packed(bars, 10).map((row) => row.map((bar) => bar.start))]));"""
    points, fold, rows = run(script)
    half = (1_000 - fold) / 2
    assert points == pytest.approx([0, half, half + fold / 2, half + fold, 1_000])
    assert rows == [[0, 5], [1, 2], [6]]


@pytest.mark.req("U-04")
def test_a_filter_looks_everywhere_and_a_mark_turns_it_round() -> None:
    script = """import { filter } from "./filter.js";
    const rows = [["12", "Migrate", "@ada"], ["13", "Switch", null]];
    console.log(JSON.stringify(given.map((asked) => rows.filter((row) => filter(asked)(row)).map((row) => row[0]))));"""
    found = run(script, ["", "  ", "MIGR", "@ada", "!@ada", "! ", "1", "!1"])
    assert found == [["12", "13"], ["12", "13"], ["12"], ["12"], ["13"], ["12", "13"], ["12", "13"], []]
