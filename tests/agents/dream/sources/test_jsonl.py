"""Transcripts of whoever wrote them: torn, huge, linked."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from taskyard.agents.dream import sources


def line(who: str, content: object, **more: object) -> str:
    return json.dumps({"type": who, "message": {"role": who, "content": content}, **more}) + "\n"


@pytest.mark.req("K-07")
def test_what_was_said_is_read_and_what_is_torn_is_skipped_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    tool = {"type": "tool_use", "name": "Edit", "input": {"secret": "x"}}
    path.write_bytes(
        line("user", "Use tabs.").encode()
        + b'{"type": "assistant", "mess\n\xff\xfe\x00\n[1]\n7\n\n'
        + b"[" * 100_000
        + b"\n"
        + line("assistant", [{"type": "text", "text": "I will."}, tool, {"type": "image"}, 7]).encode()
        + line("user", [{"type": "tool_result", "content": "…"}]).encode()
        + line("user", "meta", isMeta=True).encode()
        + line("assistant", "a sub-agent", isSidechain=True).encode()
        + b'{"type": "user", "message": {"content": "cut o'
    )
    told = sources.read_transcript(str(path), 10_000, sources.format_message)
    assert told.text == "USER: Use tabs.\n\nASSISTANT: I will.\n[Edit]"
    assert (told.skipped, told.is_cut) == (6, False)


@pytest.mark.req("K-07")
def test_of_a_huge_one_the_end_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text("".join(line("user", f"number {number}") for number in range(1000)))
    monkeypatch.setattr(sources, "MOST_READ", 4000)
    told = sources.read_transcript(str(path), 10_000, sources.format_message)
    assert told.is_cut
    assert "number 999" in told.text
    assert "number 1\n" not in told.text
    assert told.skipped == 0  # where reading begins in the middle of a line, that is no fault of it
    assert sources.read_transcript(str(path), 20, sources.format_message).text.endswith("number 999")


@pytest.mark.req("K-07")
def test_a_line_without_an_end_is_not_held_to_be_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "LONGEST_LINE", 1000)
    path = tmp_path / "s.jsonl"
    path.write_text(line("user", "x" * 2000) + line("user", "short"))
    told = sources.read_transcript(str(path), 10_000, sources.format_message)
    assert (told.text, told.skipped) == ("USER: short", 1)


@pytest.mark.req("K-07", "O-02")
def test_links_and_pipes_are_no_transcripts(tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    folder.mkdir()
    (tmp_path / "secret.jsonl").write_text(line("user", "secret"))
    (folder / "link.jsonl").symlink_to(tmp_path / "secret.jsonl")
    os.mkfifo(folder / "pipe.jsonl")
    (folder / "empty.jsonl").touch()
    (folder / "folder.jsonl").mkdir()
    (folder / "real.jsonl").write_text(line("user", "hello"))
    (tmp_path / "elsewhere").symlink_to(folder)

    assert [found.id for found in sources.list_sessions(str(folder))] == ["real"]
    assert list(sources.list_sessions(str(tmp_path / "elsewhere"))) == []
    assert list(sources.list_sessions(str(tmp_path / "none"))) == []
    for name in ("link.jsonl", "pipe.jsonl", "folder.jsonl", "gone.jsonl"):
        assert sources.read_transcript(str(folder / name), 100, sources.format_message).text == ""
