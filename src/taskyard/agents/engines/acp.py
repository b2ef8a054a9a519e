"""Engine `acp`: agent programs that speak the Agent Client Protocol over stdin and stdout.

For Claude Code's adapter, Gemini CLI, Codex' adapter and others. A permission request of the agent sets
`needs_input` on the job; messages sent to the job while it works are its next prompt. The agent reads and
writes files and runs commands by itself, under its own rules: none of that is done for it here. The protocol
library is imported only when an agent runs (`acp_session`).
"""

from __future__ import annotations

from taskyard.errors import MissingExtra, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.agents.engines.acp_session import SessionState
    from taskyard.agents.engines.engine import Brief, Recorder, TurnResult


class Acp:
    """A program that speaks the Agent Client Protocol."""

    def __init__(self) -> None:
        self._memory: SessionState | None = None

    def check(self, brief: Brief) -> None:
        """Refuse a brief without a program, or where the protocol's library is missing."""
        from importlib.util import find_spec

        if not brief.command:
            raise UsageError(
                "The engine `acp` needs a program that speaks the Agent Client Protocol: `--command 'gemini --acp'`,"
                " or the name of one that is installed here: see `taskyard engines`."
            )
        if find_spec("acp") is None:
            raise MissingExtra("The engine `acp`", "agents", "acp")

    async def work(self, brief: Brief, watcher: Recorder) -> TurnResult:
        """Run the agent for the prompt and messages sent meanwhile; later calls continue the session."""
        from taskyard.agents.engines.acp_session import SessionState, run

        self._memory = self._memory or SessionState(brief.session)
        return await run(brief, watcher, self._memory)
