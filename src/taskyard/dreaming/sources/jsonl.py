"""Transcripts as lines of JSON, from whoever wrote them: bounded, and never through a link."""

from __future__ import annotations

import json
import os
import stat

from taskyard.dreaming.sources.source import Session, Told
from taskyard.plain_file import open_plain
from taskyard.shapes import as_list, as_object, as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

#: Of a longer transcript the end is read, in bytes; a longer line is skipped.
MOST_READ = 16_000_000
LONGEST_LINE = 1_000_000

#: Files of one folder that are looked at.
MOST_FILES = 20_000


def files_in(folder: str) -> Iterator[Session]:
    """The transcripts that lie in a folder itself; links, and a folder that is one, are passed over."""
    try:
        if os.path.islink(folder):
            return
        with os.scandir(folder) as entries:
            for count, entry in enumerate(entries):
                if count >= MOST_FILES:
                    return
                if entry.name.endswith(".jsonl") and (found := session(entry.path)) is not None:
                    yield found
    except OSError:
        return  # none there, or none for us


def session(path: str) -> Session | None:
    """The session in a file, if it is a plain one that holds something."""
    try:
        seen = os.lstat(path)
    except OSError:
        return None
    if not stat.S_ISREG(seen.st_mode) or not seen.st_size:
        return None
    name = os.path.basename(path).removesuffix(".jsonl")
    return Session(name, path, seen.st_mtime, seen.st_size)


def read(path: str, most: int, said: Callable[[Mapping[str, object]], str]) -> Told:
    """What the lines of a transcript say by `said`, the last `most` characters of it."""
    data, is_cut = _bytes(path)
    parts: list[str] = []
    skipped = 0
    for line in data.split(b"\n"):
        if not line.strip():
            continue
        message = _message(line)
        if message is None:
            skipped += 1
        elif text := said(message).strip():
            parts.append(text)
    text = "\n\n".join(parts)
    return Told(text[-most:], skipped, is_cut or len(text) > most)


def in_a_conversation(message: Mapping[str, object]) -> str:
    """What a line says that is written as Claude Code's are: who, and what in words; tools by name."""
    who = message.get("type")
    if who not in ("user", "assistant") or message.get("isMeta") is True or message.get("isSidechain") is True:
        return ""
    inner = as_object(message.get("message")) or {}
    content = inner.get("content")
    blocks = [content] if isinstance(content, str) else as_list(content) or []
    words = "\n".join(filter(None, map(_block, blocks)))
    return f"{str(who).upper()}: {words}" if words.strip() else ""


def _block(raw: object) -> str:
    if isinstance(raw, str):
        return raw
    block = as_object(raw) or {}
    if block.get("type") == "text":
        return as_text(block.get("text"))
    return f"[{as_text(block.get('name'))[:100] or 'tool'}]" if block.get("type") == "tool_use" else ""


def _bytes(path: str) -> tuple[bytes, bool]:
    try:
        fd = open_plain(path)
    except OSError:
        return b"", False
    try:
        start = max(0, os.fstat(fd).st_size - MOST_READ)
        parts, at = list[bytes](), start
        while at < start + MOST_READ and (chunk := os.pread(fd, min(1 << 20, start + MOST_READ - at), at)):
            parts.append(chunk)
            at += len(chunk)
    except OSError:
        return b"", False
    finally:
        os.close(fd)
    data = b"".join(parts)
    return (data.partition(b"\n")[2] if start else data), start > 0


def _message(line: bytes) -> dict[str, object] | None:
    if len(line) > LONGEST_LINE:
        return None
    try:
        return as_object(json.loads(line))
    except (ValueError, RecursionError):
        return None
