"""
The engine `model`: a loop of our own, with Bash, Read, Edit, Write and the tools of the shared list.

Which model is `provider:name`, such as `anthropic:claude-sonnet-4-5` or `openai:gpt-5`; or `python:module:attribute`,
a model of your own as pydantic-ai has it. Its key comes from the environment.
"""

from __future__ import annotations

from taskyard.engines.model import providers
from taskyard.loading import Loading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.engines.engine import Brief, Said, Watcher
    from taskyard.engines.model.loop import Memory


class Model:
    """A model with tools."""

    def __init__(self) -> None:
        self._memory: Memory | None = None

    def check(self, brief: Brief) -> None:
        """Refuse a brief without a model, a model without its key, and where a library is missing."""
        providers.check(brief.model, brief.env)

    async def work(self, brief: Brief, watcher: Watcher) -> Said:
        """Talk to the model until it has its answer. Called again, it goes on in the same conversation."""
        with Loading():
            from taskyard.engines.model.loop import Memory, run

        self._memory = self._memory or Memory()
        return await run(brief, watcher, self._memory)
