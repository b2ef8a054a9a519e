"""Job kind `dream`: memory consolidation by an agent.

It reads past sessions and tidies a memory folder, in four stages, on a copy that replaces the folder in one
step, or not at all (`taskyard.agents.dream`). For people only: its end sends no notice to a model, and it has
no output; what it did is in its transcript and record.
"""

from __future__ import annotations

import os

from taskyard import config
from taskyard.agents import engines
from taskyard.agents.dream import schedule, sources, staging
from taskyard.agents.dream import sources as dream_sources
from taskyard.agents.dream.sources import Project
from taskyard.agents.dream.staging import DreamDir
from taskyard.agents.engines.engine import Brief
from taskyard.agents.engines.provider import choose_engine
from taskyard.core.values import NamedTuple
from taskyard.errors import BadValue
from taskyard.jobs import environment
from taskyard.jobs.kind import LaunchSpec, Outcome, check_run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self

    from taskyard.jobs.context import JobContext


class Dream(NamedTuple):
    """A memory folder to tidy."""

    memory: str = ""  #: a path, "claude" or "taskyard"; default: the setting `memory_dir`
    sources: Sequence[str] = ()  #: where sessions are read from; default: the setting `dream_sources`
    engine: str = ""  #: as for an agent; default: the setting `engine`
    command: Sequence[str] = ()  #: the command line, for engines that are programs
    model: str | None = None
    force: bool = False  #: also when it is not due
    dry_run: bool = False  #: show what would change, and change nothing
    cwd: str | None = None  #: selects the project; default: the current folder
    env: Mapping[str, str] | None = None  #: its whole environment; default: this process's
    timeout: float | None = None  #: timeout in seconds
    on_parent_exit: str | None = None  #: "kill" or "keep"
    tool_use_id: str | None = None

    @property
    def type(self) -> str:
        """The job type in records."""
        return "dream"

    @property
    def letter(self) -> str:
        """First character of its job ids."""
        return "d"

    def wanted(self) -> LaunchSpec:
        """Return the launch spec for its supervisor.

        Raises:
            BadValue, EngineNotFound, UsageError: a field is invalid.
            DreamHeld: it is not due, or another dream is running.
        """
        settings = config.load_settings()
        self._check()
        engine, command, model = choose_engine(self.engine, self.command, self.model, settings)
        cwd = environment.resolve_cwd(self.cwd)
        engines.find(engine).check(Brief("dream", "/", self._env(), model, command))
        place, names = self.place(settings), self.names(settings)
        for name in names:
            sources.find(name)
        if not self.dry_run:
            staging.refuse_if_running(DreamDir(place))
        if not self.force and not self.dry_run:
            schedule.require_ready(schedule.check_schedule(place, names, self.project(), settings))
        return LaunchSpec(
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
        """Restore a dream from `wanted().arguments`."""
        return cls(**arguments)  # type: ignore[arg-type]  # made by `wanted`

    async def run(self, context: JobContext) -> Outcome:
        """Run the dream."""
        from taskyard.agents.dream.run import DreamOptions, run_dream

        options = DreamOptions(
            self.memory,
            tuple(self.sources),
            self.engine,
            tuple(self.command),
            self.model,
            self.force,
            self.dry_run,
            self.project()._replace(home=context.home),
        )
        return await run_dream(options, context)

    def place(self, settings: config.Settings) -> str:
        """Return the memory folder's real path.

        Raises:
            BadValue: it cannot be one.
        """
        cwd, env = environment.resolve_cwd(self.cwd), self._env()
        return dream_sources.memory_folder(self.memory or settings.memory_dir, cwd=cwd, home=config.home(env), env=env)

    def names(self, settings: config.Settings) -> tuple[str, ...]:
        """Return the names of the sources to read."""
        return tuple(self.sources) or schedule.parse_source_names(settings.dream_sources)

    def project(self) -> Project:
        """Return the project whose sessions are read."""
        folder, env = os.path.realpath(environment.resolve_cwd(self.cwd)), self._env()
        return Project(folder, config.project(folder).root, config.home(env), env)

    def _env(self) -> Mapping[str, str]:
        return os.environ if self.env is None else self.env

    def _check(self) -> None:
        if isinstance(self.sources, str) or isinstance(self.command, str):
            raise BadValue("sources and command", "text", "lists of words")
        check_run(cwd=self.cwd, timeout=self.timeout, on_parent_exit=self.on_parent_exit)


if TYPE_CHECKING:
    from taskyard.jobs.kind import Handler

    _conforms: type[Handler] = Dream
