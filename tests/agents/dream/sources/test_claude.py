"""Claude Code's sessions."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from support.repo import git_folder
from taskyard import config
from taskyard.agents.dream.sources import ClaudeSessions, Project, claude_project


@pytest.mark.req("K-07")
def test_sessions_of_the_project_and_of_where_we_are_count_and_those_of_sub_agents_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = tmp_path / "project" / "src"
    inside.mkdir(parents=True)
    git_folder(tmp_path / "project")
    said = json.dumps({"type": "user", "message": {"content": "Never push on Fridays."}})
    for place in (tmp_path / "project", inside, tmp_path / "other"):
        folder = Path(claude_project(str(place), os.environ))
        folder.mkdir(parents=True)
        for name in (f"{place.name}-1", "agent-7", "now"):
            (folder / f"{name}.jsonl").write_text(said + "\n")
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "now")

    project = Project(str(inside), str(tmp_path / "project"), config.home(), os.environ)
    found = sorted(ClaudeSessions().sessions(project))

    assert [session.id for session in found] == ["project-1", "src-1"]
    assert ClaudeSessions().read(found[0], 1000).text == "USER: Never push on Fridays."
