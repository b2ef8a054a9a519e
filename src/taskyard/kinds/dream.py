"""
Memory consolidation by an agent: `dream`.

It goes through past sessions and brings a memory folder in order, in four stages, on a copy that takes the folder's
place in one step, or not at all (`taskyard.dreaming`). For people only: its end is told to no model, and it has no
output; what it did is in its transcript and on its record.
"""

from __future__ import annotations

import os

from taskyard import config, engines, paths
from taskyard.dreaming import lock, memory, sources, standing
from taskyard.dreaming.side import Side
from taskyard.dreaming.sources.source import Project
from taskyard.engines.choice import chosen
from taskyard.engines.engine import Brief
from taskyard.errors import BadValue
from taskyard.kinds.checks import check_run
from taskyard.runtime import here
from taskyard.runtime.kind import Outcome, Wanted
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self

    from taskyard.runtime.context import JobContext


class Dream(NamedTuple):
    """A memory folder to bring in order."""

    memory: str = ""  #: a path, "claude" or "taskyard"; the setting `memory_dir` if not given
    sources: Sequence[str] = ()  #: where sessions are read from; the setting `dream_sources` if not given
    engine: str = ""  #: as an agent's; the setting `engine` if not given
    command: Sequence[str] = ()  #: the program of engines that are one
    model: str | None = None
    force: bool = False  #: also when it is not the time
    dry_run: bool = False  #: show what would change, and change nothing
    cwd: str | None = None  #: whose project; the current folder if not given
    env: Mapping[str, str] | None = None  #: its whole environment; this process's if not given
    timeout: float | None = None  #: seconds until it is ended
    on_parent_exit: str | None = None  #: "kill" or "keep"
    tool_use_id: str | None = None

    @property
    def type(self) -> str:
        """The kind, as records name it."""
        return "dream"

    @property
    def letter(self) -> str:
        """What its ids begin with."""
        return "d"

    def wanted(self) -> Wanted:
        """What its keeper is asked for.

        Raises:
            BadValue, EngineNotFound, UsageError: something in it cannot be.
            DreamHeld: it is not the time, or another is at work.
        """
        settings = config.load()
        self._check()
        engine, command, model = chosen(self.engine, self.command, self.model, settings)
        cwd = here.folder(self.cwd)
        engines.find(engine).check(Brief("dream", "/", self._env(), model, command))
        place, names = self.place(settings), self.names(settings)
        for name in names:
            sources.find(name)
        if not self.dry_run:
            lock.refuse_beside(Side(place))
        if not self.force and not self.dry_run:
            standing.refuse(standing.stands(place, names, self.project(), settings))
        return Wanted(
            "Show what a dream would change" if self.dry_run else "Bring the memory in order",
            arguments={
                "memory": place,
                "sources": list(names),
                "engine": engine,
                "command": list(command),
                "model": model,
                "force": self.force,
                "dry_run": self.dry_run,
            },
            text=f"dream ({engine})",
            cwd=cwd,
            env=self.env,
            timeout=self.timeout,
            on_parent_exit=self.on_parent_exit,
            tool_use_id=self.tool_use_id,
            is_for_people=True,
            facts={"phase": "starting", "memory": place, "engine": engine},
        )

    @classmethod
    def from_json(cls, arguments: Mapping[str, object]) -> Self:
        """The record that `wanted().arguments` was made from."""
        return cls(**arguments)  # type: ignore[arg-type]  # made by `wanted`

    async def run(self, context: JobContext) -> Outcome:
        """Dream."""
        from taskyard.dreaming.sitting import Wish, sit

        wish = Wish(
            self.memory,
            tuple(self.sources),
            self.engine,
            tuple(self.command),
            self.model,
            self.force,
            self.dry_run,
            self.project()._replace(home=context.home),
        )
        return await sit(wish, context)

    def place(self, settings: config.Settings) -> str:
        """The memory folder's real path.

        Raises:
            BadValue: it cannot be one.
        """
        cwd, env = here.folder(self.cwd), self._env()
        return memory.folder(self.memory or settings.memory_dir, cwd=cwd, home=paths.home(env), env=env)

    def names(self, settings: config.Settings) -> tuple[str, ...]:
        """The sources that are read."""
        return tuple(self.sources) or standing.named(settings.dream_sources)

    def project(self) -> Project:
        """Whose sessions are read."""
        folder, env = os.path.realpath(here.folder(self.cwd)), self._env()
        return Project(folder, paths.project(folder).root, paths.home(env), env)

    def _env(self) -> Mapping[str, str]:
        return os.environ if self.env is None else self.env

    def _check(self) -> None:
        if isinstance(self.sources, str) or isinstance(self.command, str):
            raise BadValue("sources and command", "text", "lists of words")
        check_run(cwd=self.cwd, timeout=self.timeout, on_parent_exit=self.on_parent_exit)


if TYPE_CHECKING:
    from taskyard.runtime.kind import Handler

    _conforms: type[Handler] = Dream
