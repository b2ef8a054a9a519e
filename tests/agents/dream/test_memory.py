"""Which memory folder is meant."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from support.repo import git_folder
from taskyard import config
from taskyard.agents.dream import sources
from taskyard.errors import BadValue


def folder(chosen: str, cwd: Path) -> str:
    return sources.memory_folder(chosen, cwd=str(cwd), home=config.home(), env=os.environ)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    place = tmp_path / "my.project"
    git_folder(place)
    (place / "src").mkdir()
    return place


@pytest.mark.req("K-07")
def test_claude_code_s_folder_is_taken_where_it_is_there_else_our_own(project: Path, outside: Path) -> None:
    ours = folder("", project)
    assert ours == str(outside / "taskyard" / "memory" / config.project_list(str(project)))

    slug = str(project).replace("/", "-").replace(".", "-").replace("_", "-")
    theirs = outside / ".claude" / "projects" / slug / "memory"
    theirs.mkdir(parents=True)
    assert folder("", project) == folder("", project / "src") == folder("claude", project) == str(theirs)
    assert folder("taskyard", project) == ours


@pytest.mark.req("K-07")
def test_where_claude_code_was_told_to_keep_it_is_honoured(project: Path, outside: Path) -> None:
    settings = outside / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"autoMemoryDirectory": "~/remembered"}), encoding="utf-8")
    assert folder("claude", project) == str(outside / "remembered")
    for broken in ("{", '{"autoMemoryDirectory": 7}', "[]"):
        settings.write_text(broken, encoding="utf-8")
        assert folder("claude", project).endswith("/memory")


@pytest.mark.req("K-07")
def test_a_path_is_taken_as_it_is_meant(project: Path, tmp_path: Path, outside: Path) -> None:
    assert folder("notes", project) == str(project / "notes")
    assert folder("~/notes/{project}", project) == str(outside / "notes" / config.project_list(str(project)))
    (tmp_path / "real").mkdir()
    (project / "link").symlink_to(tmp_path / "real")
    assert folder("link", project) == str(tmp_path / "real")


@pytest.mark.req("K-07")
@pytest.mark.parametrize("chosen", [".", "..", "/", "~", "$TASKYARD_HOME", "$CLAUDE_CONFIG_DIR"])
def test_a_folder_that_is_more_than_a_memory_is_refused(project: Path, chosen: str) -> None:
    with pytest.raises(BadValue, match="folder of its own"):
        folder(os.path.expandvars(chosen), project)


def test_a_file_is_no_folder(project: Path) -> None:
    (project / "notes").write_text("x")
    with pytest.raises(BadValue, match="a folder"):
        folder("notes", project)


def test_a_very_long_path_is_found_by_its_beginning(tmp_path: Path, outside: Path) -> None:
    place = tmp_path / ("x" * 120) / ("y" * 120)
    slug = str(place).replace("/", "-").replace("_", "-")[:200]
    found = outside / ".claude" / "projects" / f"{slug}-1k2j3h"
    found.mkdir(parents=True)
    assert sources.claude_project(str(place), os.environ) == str(found)
