"""The transcripts of agents that ran as jobs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.repo import git_folder
from taskyard import config
from taskyard.agents.agent.kind import Agent
from taskyard.agents.dream.sources import AgentJobs, Project
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell


@pytest.mark.req("K-07")
def test_an_agent_of_this_project_is_a_session_and_no_other_job_is(tmp_path: Path) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    git_folder(here)
    (here / "src").mkdir()
    elsewhere.mkdir()
    home = config.home()
    jobs = Jobs(home)
    try:
        agent = jobs.run(Agent("remember the milk", command=["cat"], cwd=str(here / "src")), timeout=30)
        jobs.run(Agent("not here", command=["cat"], cwd=str(elsewhere)), timeout=30)
        jobs.run(Shell("true", cwd=str(here)), timeout=30)
    finally:
        jobs.close()

    (found,) = AgentJobs().sessions(Project(str(here), str(here), home, os.environ))

    assert found.id == agent.id
    told = AgentJobs().read(found, 1000)
    assert told.text == "USER: remember the milk\n\nASSISTANT: remember the milk"
