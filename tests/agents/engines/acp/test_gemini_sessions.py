"""A session of Gemini CLI is loaded only in a later minute than the one in which it began."""

from __future__ import annotations

from pathlib import Path

import pytest

from taskyard.agents.engines import acp_session

#: 2026-11-17, 10:02:48 UTC.
NOW = 1_794_909_768.0


def keeps(home: Path, *names: str) -> dict[str, str]:
    """A home in which Gemini CLI keeps files of these names."""
    chats = home / ".gemini" / "tmp" / "work" / "chats"
    chats.mkdir(parents=True)
    for name in names:
        (chats / name).touch()
    return {"HOME": str(home)}


@pytest.mark.parametrize(
    ("names", "seconds"),
    [
        (["session-2026-11-17T10-02-2d31bdc4.jsonl"], 12.1),
        (["session-2026-11-17T10-01-2d31bdc4.jsonl"], 0.0),
        (["session-2026-11-17T10-01-2d31bdc4.jsonl", "session-2026-11-17T10-02-2d31bdc4.jsonl"], 0.0),
        (["session-2026-11-17T10-02-ffffffff.jsonl"], 0.0),
        ([], 0.0),
    ],
)
def test_a_session_is_safe_to_load_once_the_minute_of_its_start_is_over(
    tmp_path: Path, names: list[str], seconds: float
) -> None:
    env = keeps(tmp_path, *names)
    session = "2d31bdc4-ea70-43c8-8017-890f0a8d6328"
    assert acp_session.seconds_until_loadable(session, env, now=NOW) == pytest.approx(seconds)
    assert acp_session.is_gemini_session(session, env) is any("2d31bdc4" in name for name in names)
