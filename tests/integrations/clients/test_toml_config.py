"""Our table comes into a TOML text and goes out of it; every other byte stays."""

from __future__ import annotations

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.integrations.clients.formats import (
    NotEditable,
    dump_toml,
    install_toml,
    toml_equal,
    uninstall_toml,
)

SERVER = {"command": "/opt/bin/taskyard", "args": ["mcp"], "env": {"TASKYARD_HOME": "/x y"}, "tool_timeout_sec": 660}
OTHER = {**SERVER, "env": {"TASKYARD_HOME": "/elsewhere"}}

_WORD = st.text("abcXYZ09_-", min_size=1, max_size=5)
_TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=10)
_STRING = st.one_of(
    _TEXT.map(lambda text: json.dumps(text, ensure_ascii=False)),
    _TEXT.map(lambda text: "'" + text.replace("'", "") + "'"),
    _TEXT.map(lambda text: '"""\n[mcp_servers.taskyard]\n' + text.replace("\\", "").replace('"', "") + '"""'),
    st.just("'''\n[a]\n# no comment ''\n''''"),
    st.just('"""quotes at the end"""""'),
)
_VALUE = st.one_of(_STRING, st.integers().map(str), st.sampled_from(["nan", "-inf", "1979-05-27", "true"]))
_VALUES = st.one_of(
    _VALUE,
    st.lists(_VALUE, max_size=3).map(lambda items: "[ # why\n" + ",\n".join(items) + "\n]"),
    _VALUE.filter(lambda text: "\n" not in text).map(lambda text: "{ x = " + text + " }"),
)
_REMARK = st.sampled_from(["", "\n", "# [mcp_servers.taskyard]\n", "  # \"'''\n\n", "\r\n"])


@st.composite
def toml(draw: st.DrawFn) -> str:
    """Somebody's configuration, in all the ways in which people write one."""
    text = draw(_REMARK)
    for number in range(draw(st.integers(0, 3))):
        header = draw(
            st.sampled_from(
                ["[t{0}]", "[mcp_servers.s{0}]", "[[list]]", '[ "q.{0}" . x ]', "[mcp_servers.taskyardish{0}]"]
            )
        )
        text += header.format(number) + draw(st.sampled_from(["\n", "  # why\n"]))
        for key in draw(st.lists(_WORD, max_size=3, unique=True)):
            text += f"{key} = {draw(_VALUES)}{draw(st.sampled_from([chr(10), ' # why' + chr(10)]))}{draw(_REMARK)}"
    return text if draw(st.booleans()) else text.removesuffix("\n").removesuffix("\r")


@given(text=toml())
def test_installing_and_uninstalling_leaves_every_byte(text: str) -> None:
    before = tomllib.loads(text)

    there = install_toml(text, SERVER)
    assert there.text.startswith(text)
    found = tomllib.loads(there.text)
    assert found["mcp_servers"].pop("taskyard") == SERVER
    assert toml_equal(found, {**before, "mcp_servers": before.get("mcp_servers", {})})

    assert install_toml(there.text, SERVER, there.record).changes == ()
    changed = install_toml(there.text, OTHER, there.record)
    assert tomllib.loads(changed.text)["mcp_servers"]["taskyard"] == OTHER
    assert uninstall_toml(there.text, there.record).text == text
    assert uninstall_toml(changed.text, changed.record).text == text


@given(text=toml(), more=toml())
def test_what_came_behind_us_meanwhile_stays_and_so_does_its_meaning(text: str, more: str) -> None:
    there = install_toml(text, SERVER)
    try:
        expected = tomllib.loads(f"{text}\n{more}")
        tomllib.loads(there.text + more)
    except tomllib.TOMLDecodeError:
        return  # both define the same
    expected.setdefault("mcp_servers", {})

    for record in (there.record, None):
        left = uninstall_toml(there.text + more, record).text
        found = tomllib.loads(left)
        found.setdefault("mcp_servers", {})
        assert toml_equal(found, expected)


def test_a_server_of_our_name_makes_room_and_comes_back() -> None:
    table = '[mcp_servers.taskyard]\nurl = "https://x"  # mine\n\n[mcp_servers.taskyard.env]\nA = "1"\n'
    text = f"{table}\n# next\n[b]\nc = 1\n"

    there = install_toml(text, SERVER)
    assert tomllib.loads(there.text)["mcp_servers"]["taskyard"] == SERVER

    back = uninstall_toml(there.text, there.record).text
    assert tomllib.loads(back) == tomllib.loads(text)
    assert 'url = "https://x"  # mine' in back
    assert "# next\n[b]" in back


def test_what_somebody_set_for_us_stays_while_we_are_there_and_goes_with_us() -> None:
    there = install_toml("a = 1\n", SERVER)
    text = there.text.replace("args", 'default_tools_approval_mode = "approve"\nargs')
    text += '\n[mcp_servers.taskyard.tools.TaskStop]\napproval_mode = "prompt"\n'

    changed = install_toml(text, OTHER, there.record)
    assert tomllib.loads(changed.text)["mcp_servers"]["taskyard"] == {
        **OTHER, "default_tools_approval_mode": "approve", "tools": {"TaskStop": {"approval_mode": "prompt"}}
    }  # fmt: skip
    assert tomllib.loads(uninstall_toml(changed.text, changed.record).text) == {"a": 1}


def test_a_server_of_our_name_that_starts_something_else_stays() -> None:
    text = '[mcp_servers.taskyard]\ncommand = "other"\n'

    done = uninstall_toml(text)

    assert (done.text, done.changes) == (text, ())
    assert "starts something else" in done.notes[0]


@pytest.mark.parametrize(
    "text",
    [
        "a = ",
        "mcp_servers = {}\n",
        "mcp_servers = 1\n",
        '[mcp_servers]\ntaskyard = {command = "taskyard", args = ["mcp"]}\n',
        'mcp_servers.taskyard.command = "x"\n',
        "x = [" * 5_000,
    ],
)
def test_what_cannot_be_changed_safely_is_refused(text: str) -> None:
    with pytest.raises(NotEditable):
        install_toml(text, SERVER)


@given(st.recursive(st.text(st.characters(exclude_categories=["Cs"])) | st.integers(), st.lists, max_leaves=5))
def test_what_is_written_reads_the_same(value: object) -> None:
    assert tomllib.loads(f"a = {dump_toml(value)}") == {"a": value}
