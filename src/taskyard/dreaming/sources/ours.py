"""The transcripts of agents that ran as jobs in this project."""

from __future__ import annotations

import os

from taskyard import paths
from taskyard.dreaming.sources import jsonl
from taskyard.runtime.ending import read_ours
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.ids import is_job_id
from taskyard.shapes import as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from taskyard.dreaming.sources.source import Project, Session, Told

#: Their ids begin so: agents, teammates, main sessions. A dream is none: it would remember itself.
_LETTERS = "ast"

_SPOKEN = {"prompt": "USER", "user": "USER", "answer": "USER", "assistant": "ASSISTANT", "question": "ASSISTANT"}


class AgentJobs:
    """Agents as jobs, with a transcript each."""

    def sessions(self, project: Project) -> Iterator[Session]:
        """Those that worked anywhere in the project."""
        try:
            names = os.listdir(f"{project.home}/jobs")
        except OSError:
            return
        here: dict[str, bool] = {}
        for name in names:
            if not is_job_id(name) or name[0] not in _LETTERS:
                continue
            folder = JobFolder(project.home, name)
            found = None if os.path.islink(folder.path) else jsonl.session(folder.transcript)
            if found is None:
                continue
            cwd = as_text((read_ours(folder.record) or {}).get("cwd"))
            if cwd not in here:
                here[cwd] = bool(cwd) and paths.project(cwd).root == project.root
            if here[cwd]:
                yield found._replace(id=name)

    def read(self, session: Session, most: int) -> Told:
        """What it was asked and answered."""
        return jsonl.read(session.path, most, _said)


def _said(line: Mapping[str, object]) -> str:
    text, who = as_text(line.get("text")), _SPOKEN.get(as_text(line.get("type")))
    if text and who:
        return f"{who}: {text}"
    if line.get("type") == "tool_use":
        return f"ASSISTANT: [{as_text(line.get('name'))[:100] or 'tool'}]"
    return jsonl.in_a_conversation(line)
