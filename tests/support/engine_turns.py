"""One turn of an engine, as an agent's job runs it: what it told its watcher, and its outcome."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

from taskyard.agents import engines
from taskyard.agents.engines.engine import Brief, Progress, TurnResult
from taskyard.agents.engines.provider import resolve_engine


class Watch:
    """A watcher that remembers."""

    def __init__(self, answer: str | None = None) -> None:
        self.lines: list[dict[str, Any]] = []
        self.tools: list[tuple[str, dict[str, Any]]] = []
        self.limits: list[str] = []
        self.asked: list[str] = []
        self.progress = Progress()
        self._answer = answer

    def record(self, line: Mapping[str, object]) -> None:
        self.lines.append(dict(line))

    def used_tool(self, name: str, given: Mapping[str, object]) -> None:
        self.tools.append((name, dict(given)))

    def used_tokens(self, usage: Mapping[str, object]) -> None:
        self.progress = self.progress.used_tokens(usage)

    def costs(self, usd: float) -> None:
        pass

    def limited(self, seconds: float, why: str) -> None:
        self.limits.append(why)

    async def ask(self, question: str) -> str | None:
        self.asked.append(question)
        return self._answer

    async def messages(self) -> AsyncIterator[str]:
        nothing: tuple[str, ...] = ()
        for text in nothing:
            yield text

    @property
    def session(self) -> str | None:
        """The conversation, as the engine named it."""
        named = [line["session_id"] for line in self.lines if line.get("subtype") == "init"]
        return named[-1] if named else None


def turn(
    engine: str,
    prompt: str,
    cwd: Path,
    *,
    session: str | None = None,
    permissions: str = "",
    own_tools: bool = False,
    answer: str | None = None,
    until: Callable[[Watch], bool] | None = None,
) -> tuple[TurnResult | None, Watch]:
    """The outcome of a turn of an installed agent; with `until`, it is stopped as soon as that holds: no outcome."""
    name, command = resolve_engine(engine)
    env = {**os.environ, "TASKYARD_AGENT": "ada", "PWD": str(cwd)}
    brief = Brief(prompt, str(cwd), env, command=command, session=session)
    brief = brief._replace(own_tools=own_tools, permissions=permissions)
    watch = Watch(answer)

    async def work() -> TurnResult | None:
        working = asyncio.ensure_future(engines.find(name).work(brief, watch))
        while until is not None and not until(watch):
            await asyncio.wait([working], timeout=0.02)
            if working.done():
                break
        if until is not None and not working.done():
            working.cancel()
            await asyncio.wait([working])
            return None
        return await working

    return asyncio.run(work()), watch
