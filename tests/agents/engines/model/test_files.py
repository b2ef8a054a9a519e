"""Reading and changing the files of one folder, as models ask for it."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from taskyard.agents.engines.model_loop import LARGEST, Files, ToolRefused


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "work"
    found.mkdir()
    return found


@pytest.mark.req("K-02")
def test_lines_come_with_their_numbers_and_a_page_says_how_to_go_on(folder: Path) -> None:
    (folder / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 5001)), encoding="utf-8")
    files = Files(str(folder))

    assert files.read("a.txt", offset=2, limit=2) == (
        "     2\tline 2\n     3\tline 3\n… lines 4 to 5000: read on with offset 4."
    )
    first = files.read("a.txt")
    assert first.endswith("… lines 2001 to 5000: read on with offset 2001.")
    assert files.read("a.txt", offset=4999).splitlines() == ["  4999\tline 4999", "  5000\tline 5000"]
    assert files.read("a.txt", offset=6000) == "The file has 5000 lines, none from 6000 on."


@pytest.mark.req("K-02")
def test_what_is_read_is_bounded_however_long_its_lines_are(folder: Path) -> None:
    (folder / "a.txt").write_text(("x" * 50_000 + "\n") * 100, encoding="utf-8")
    assert len(Files(str(folder)).read("a.txt")) < 70_000


@pytest.mark.req("K-02")
def test_a_change_needs_exactly_one_place_unless_all_are_meant(folder: Path) -> None:
    path = folder / "a.py"
    path.write_text("a = 1\nb = 1\n", encoding="utf-8")
    path.chmod(0o750)
    files = Files(str(folder))

    for old, why in (("1", "2 times"), ("c = 1", "is not in"), ("", "is empty")):
        with pytest.raises(ToolRefused, match=why):
            files.edit("a.py", old, "2")
    with pytest.raises(ToolRefused, match="nothing would change"):
        files.edit("a.py", "a = 1", "a = 1")
    assert path.read_text(encoding="utf-8") == "a = 1\nb = 1\n"

    assert files.edit("a.py", "a = 1", "a = 2") == "Changed a.py in 1 place."
    assert files.edit(str(path), " = ", "=", replace_all=True) == f"Changed {path} in 2 places."
    assert path.read_text(encoding="utf-8") == "a=2\nb=1\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o750
    assert os.listdir(folder) == ["a.py"]


@pytest.mark.req("K-02")
def test_changes_that_are_asked_for_at_once_are_all_made(folder: Path) -> None:
    path, names = folder / "a.txt", [f"<{n}>" for n in range(50)]
    path.write_text("".join(names), encoding="utf-8")
    files = Files(str(folder))
    threads = [threading.Thread(target=files.edit, args=("a.txt", name, "")) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_text(encoding="utf-8") == ""


@pytest.mark.req("K-02")
def test_nothing_outside_the_folder_is_read_or_written(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s", encoding="utf-8")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "way").symlink_to(tmp_path)
    files = Files(str(folder))
    for place in (
        "../secret",
        str(tmp_path / "secret"),
        "link",
        "way/secret",
        "way/new",
        "/etc/passwd",
        "~/x",
        ".",
        "",
    ):
        with pytest.raises(ToolRefused):
            files.read(place)
        with pytest.raises(ToolRefused):
            files.write(place, "mine")
    assert (tmp_path / "secret").read_text(encoding="utf-8") == "s"
    assert not (tmp_path / "new").exists()


@pytest.mark.req("K-02")
def test_what_is_no_text_file_is_refused_in_a_sentence(folder: Path) -> None:
    (folder / "binary").write_bytes(b"\xff\x00")
    (folder / "dir").mkdir()
    os.mkfifo(folder / "pipe")
    with open(folder / "huge", "wb") as file:
        file.truncate(LARGEST + 1)
    files = Files(str(folder))
    for name, why in (
        ("binary", "no text"), ("dir", "no plain file"), ("pipe", "no plain file"), ("huge", "larger"),
        ("none", "There is no file"), ("a\0b", "zero byte"),
    ):  # fmt: skip
        with pytest.raises(ToolRefused, match=why):
            files.read(name)
    for name, text in (
        ("dir", "x"),
        ("pipe", "x"),
        ("binary/below", "x"),
        ("new", "\ud800"),
        ("new", "x" * (LARGEST + 1)),
    ):
        with pytest.raises(ToolRefused):
            files.write(name, text)
    assert sorted(os.listdir(folder)) == ["binary", "dir", "huge", "pipe"]


@pytest.mark.req("K-02")
def test_a_new_file_is_made_with_the_folders_on_its_way(folder: Path) -> None:
    files = Files(str(folder))
    assert files.write("a/b/c.txt", "hello") == "Created a/b/c.txt."
    assert files.write("a/b/c.txt", "") == "Replaced a/b/c.txt."
    assert files.read("a/b/c.txt") == "The file is empty."
