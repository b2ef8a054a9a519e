"""What a dream made different, and what must not take the memory's place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from taskyard.agents.dream import staging
from taskyard.errors import Conflict


def folders(tmp_path: Path, before: dict[str, bytes], after: dict[str, bytes]) -> tuple[str, str, staging.Changes]:
    for name, files in (("before", before), ("after", after)):
        (tmp_path / name).mkdir()
        for file, data in files.items():
            (tmp_path / name / file).write_bytes(data)
    old, new = str(tmp_path / "before"), str(tmp_path / "after")
    return old, new, staging.diff_trees(staging.read_tree(old), staging.read_tree(new))


@pytest.mark.req("K-07")
def test_added_changed_and_removed_files_are_told_apart(tmp_path: Path) -> None:
    old, new, made = folders(tmp_path, {"a": b"1\n", "b": b"1\n", "c": b"1\n"}, {"a": b"1\n", "b": b"2\n", "d": b"1\n"})
    assert made == staging.Changes(("d",), ("b",), ("c",))
    assert list(staging.diff(old, new, made)) == [
        "--- a/b", "+++ b/b", "@@ -1 +1 @@", "-1", "+2",
        "--- a/c", "+++ /dev/null", "@@ -1 +0,0 @@", "-1",
        "--- /dev/null", "+++ b/d", "@@ -0,0 +1 @@", "+1",
    ]  # fmt: skip


@pytest.mark.req("K-07")
def test_a_diff_acts_on_no_terminal_and_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    after = {
        "evil\x1b]0;x\x07": b"\x1b[2J\xe2\x80\xae\n",
        "bytes": b"\xff\xfe",
        "long": b"x\n" * 100_000,
        "wide": b"y" * 300_000,
    }
    old, new, made = folders(tmp_path, {}, after)
    lines = list(staging.diff(old, new, made))
    assert all(line.isprintable() for line in lines)
    assert sum("not text, or too long" in line for line in lines) == 3
    monkeypatch.setattr(staging, "LONGEST_DIFF", 60)
    cut = list(staging.diff(old, new, made))
    assert cut[-1].endswith("the diff is cut here.")
    assert sum(map(len, cut[:-1])) <= 60


def test_a_change_that_no_line_shows_is_said(tmp_path: Path) -> None:
    old, new, _ = folders(tmp_path, {"a": b"1\n"}, {"a": b"1\n"})
    (tmp_path / "after" / "a").chmod(0o755)
    made = staging.diff_trees(staging.read_tree(old), staging.read_tree(new))
    assert "its mode" in list(staging.diff(old, new, made))[-1]


@pytest.mark.req("K-07")
@pytest.mark.parametrize(("how", "why"), [("link", "a link"), ("name", "another name"), ("nothing", "nothing")])
def test_a_result_that_leads_out_or_is_empty_is_refused(tmp_path: Path, how: str, why: str) -> None:
    old, new, _ = folders(tmp_path, {"a": b"1"}, {"a": b"1"})
    staging.check_result(staging.read_tree(old), staging.read_tree(new))
    if how == "link":
        (tmp_path / "after" / "b").symlink_to("/etc/passwd")
    elif how == "name":
        (tmp_path / "secret").write_text("key")
        os.link(tmp_path / "secret", tmp_path / "after" / "b")
    else:
        (tmp_path / "after" / "a").unlink()
    with pytest.raises(Conflict, match=why):
        staging.check_result(staging.read_tree(old), staging.read_tree(new))
