"""Memories to dream of, and programs that dream."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from support.repo import git_folder
from taskyard.agents.dream import staging
from taskyard.agents.dream.sources import claude_project
from taskyard.agents.dream.staging import DreamDir
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.model import Job

#: When the last dream was, in nanoseconds.
PRIOR = 1_700_000_000_123_456_789

_PROGRAM = """
import json, os, pathlib, sys, time
prompt = sys.stdin.read()
stage, sessions = os.environ["TASKYARD_DREAM_STAGE"], pathlib.Path(os.environ["TASKYARD_DREAM_TRANSCRIPTS"])
def say(**event):
    print(json.dumps(event), flush=True)
def wait(path):
    while not os.path.exists(path):
        time.sleep(0.01)
{body}
"""

#: Learns from what was said, adds a note, and takes one away.
GOOD = """
if stage == "gather":
    print("\\n".join(path.read_text() for path in sorted(sessions.iterdir())))
if stage == "consolidate":
    assert "USER: use tabs" in prompt, prompt
    index = pathlib.Path("MEMORY.md")
    index.write_text(index.read_text() + "- style.md: tabs\\n")
    pathlib.Path("style.md").write_text("Use tabs.\\n")
if stage == "prune":
    os.unlink("stale.md")
    print("Learned about tabs.")
"""


class Memory:
    """A project with a memory that was dreamt of once, and sessions since."""

    def __init__(self, root: Path, *, sessions: int = 5) -> None:
        self.project = root / "project"
        self.path = self.project / "notes"
        self.path.mkdir(parents=True)
        git_folder(self.project)
        (self.path / "MEMORY.md").write_text("# Index\n")
        (self.path / "stale.md").write_text("It is Tuesday.\n")
        self.side = DreamDir(str(self.path))
        self.side.make()
        os.utime(self.side.lock, ns=(PRIOR, PRIOR))
        self._programs = root
        self.sessions = folder = Path(claude_project(str(self.project), os.environ))
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(sessions):
            line = json.dumps({"type": "user", "message": {"content": f"use tabs ({number})"}})
            (folder / f"session-{number}.jsonl").write_text(line + "\n")

    def program(self, body: str) -> list[str]:
        path = self._programs / f"dreamer{len(os.listdir(self._programs))}.py"
        path.write_text(_PROGRAM.format(body=body), encoding="utf-8")
        return [sys.executable, "-I", "-S", str(path)]  # it starts four times a dream

    @property
    def texts(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in self.path.iterdir() if not path.is_symlink()}

    @property
    def last_done(self) -> int:
        return staging.last_done(self.side)


def transcript(home: str, job: Job) -> list[dict[str, Any]]:
    text = Path(JobPaths(home, job.id).transcript).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]
