"""Claude Code's sessions: `<its folder>/projects/<project>/<session>.jsonl`."""

from __future__ import annotations

from taskyard.dreaming.memory import claude_project
from taskyard.dreaming.sources import jsonl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.dreaming.sources.source import Project, Session, Told

#: What sub-agents said lies beside the sessions that started them, and is no session.
_SUB_AGENT = "agent-"


class ClaudeSessions:
    """The sessions that were held in a project's root, or where it is worked in now; the one under way is none yet."""

    def sessions(self, project: Project) -> Iterator[Session]:
        """All of them."""
        under_way = project.env.get("CLAUDE_CODE_SESSION_ID")
        folders = dict.fromkeys(claude_project(place, project.env) for place in (project.root, project.folder))
        for folder in folders:
            for found in jsonl.files_in(folder):
                if not found.id.startswith(_SUB_AGENT) and found.id != under_way:
                    yield found

    def read(self, session: Session, most: int) -> Told:
        """What its user and its model said."""
        return jsonl.read(session.path, most, jsonl.in_a_conversation)
