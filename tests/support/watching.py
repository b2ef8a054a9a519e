"""An engine at work, without a job around it: what it tells is kept, and it is answered from a list."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from taskyard.agents.engines.engine import Brief, TurnResult

#: Seconds that guard against hanging.
_PATIENCE = 40.0


class Watched:
    """A watcher (`taskyard.agents.engines.engine.Recorder`) that remembers."""

    def __init__(
        self, *, answers: Sequence[str | None] = (), messages: Sequence[str] = (), after_a_tool: bool = False
    ) -> None:
        """`after_a_tool`: messages are sent when a tool was used."""
        self.lines: list[dict[str, Any]] = []
        self.tools: list[tuple[str, Mapping[str, object]]] = []
        self.usage: list[Mapping[str, object]] = []
        self.cost: float | None = None
        self.limits: list[tuple[float, str]] = []
        self.questions: list[str] = []
        self._answers = list(answers)
        self._messages = list(messages)
        self._may_send = asyncio.Event()
        if not after_a_tool:
            self._may_send.set()

    def record(self, line: Mapping[str, object]) -> None:
        self.lines.append(dict(line))

    def used_tool(self, name: str, given: Mapping[str, object]) -> None:
        self.tools.append((name, given))
        self._may_send.set()

    def used_tokens(self, usage: Mapping[str, object]) -> None:
        self.usage.append({key: value for key, value in usage.items() if value is not None})

    def costs(self, usd: float) -> None:
        self.cost = usd

    def limited(self, seconds: float, why: str) -> None:
        self.limits.append((seconds, why))

    async def ask(self, question: str) -> str | None:
        self.questions.append(question)
        return self._answers.pop(0) if self._answers else None

    async def messages(self) -> AsyncIterator[str]:
        await self._may_send.wait()
        for text in self._messages:
            yield text
        await asyncio.Event().wait()

    def said(self, kind: str) -> list[str]:
        """The texts of all lines of one type."""
        return [str(line["text"]) for line in self.lines if line["type"] == kind]


def work(
    engine: Any,
    prompt: str,
    cwd: Path,
    *,
    command: Sequence[str] = (),
    model: str | None = None,
    watched: Watched | None = None,
    own_tools: bool = False,
) -> TurnResult:
    """What came of a prompt."""
    brief = Brief(prompt, str(cwd), dict(os.environ), model, tuple(command), own_tools=own_tools)

    async def bounded() -> TurnResult:
        said: TurnResult = await asyncio.wait_for(engine.work(brief, watched or Watched()), _PATIENCE)
        return said

    return asyncio.run(bounded())
