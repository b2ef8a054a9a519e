"""
The engine `acp`: Claude Code's adapter, Gemini CLI, Codex' adapter and all others that speak the protocol.

What the agent asks permission for makes the job `needs_input`; what is sent to the job while it works is its next
prompt. It reads and writes files and runs commands by itself, under its own rules: none of that is done for it here.
"""

from __future__ import annotations

from taskyard.errors import MissingExtra, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.engines.acp.updates import Memory
    from taskyard.engines.engine import Brief, Said, Watcher


class Acp:
    """A program that speaks the Agent Client Protocol."""

    def __init__(self) -> None:
        self._memory: Memory | None = None

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

    async def work(self, brief: Brief, watcher: Watcher) -> Said:
        """Run the agent for as many turns as there is something to say to it. Called again, it goes on where it was."""
        from taskyard.engines.acp.session import run
        from taskyard.engines.acp.updates import Memory

        self._memory = self._memory or Memory(brief.session)
        return await run(brief, watcher, self._memory)
