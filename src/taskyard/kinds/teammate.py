"""
A teammate: `in_process_teammate`. It works on its team's list until that is done, or until it is shut down.

Inside a program with an event loop hundreds cost little more than their work; below a keeper each has a process
of its own, and the kernel proves its end. How it works is `taskyard.teamwork`. Its end is told to no model: the
team speaks by mail.
"""

from __future__ import annotations

import os

from taskyard import config, engines, paths
from taskyard.engines.choice import chosen
from taskyard.engines.engine import Brief, Said
from taskyard.errors import BadValue, UsageError
from taskyard.kinds.checks import check_on_rate_limit, check_run
from taskyard.names import check_name, check_number, check_text
from taskyard.places import folder_for_others, lists_here
from taskyard.runtime import families, here
from taskyard.runtime.kind import Outcome, Wanted
from taskyard.teamwork.colours import check_colour
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self

    from taskyard.runtime.context import JobContext
    from taskyard.teamwork.loop import Turn

#: Characters of standing instructions: more than any model takes.
LONGEST_PROMPT = 2_000_000

#: When a teammate ends by itself.
UNTIL = ("done", "stopped")

#: Capabilities or labels of one teammate.
_MOST_WORDS = 50


class Teammate(NamedTuple):
    """A teammate to work with others on a list."""

    name: str
    team: str  #: which also names the list; founded if there is none
    prompt: str = ""  #: standing instructions that come before each task
    engine: str = ""  #: an engine's name, or an agent's that is installed here; the setting `engine` if not given
    command: Sequence[str] = ()  #: the program of engines that are one
    model: str | None = None
    colour: str | None = None  #: one of `teamwork.colours.PALETTE`; in the order of joining if not given
    plan_first: bool = False  #: the lead approves a plan before a task is worked on
    is_inside: bool = True  #: inside the program that starts it; else in a process of its own below a keeper
    until: str = "done"  #: "done": ends when every task of the list is completed; "stopped": idles until shut down
    capabilities: Sequence[str] = ()  #: what it can do: tasks that require something else are left out
    labels: Sequence[str] = ()  #: only tasks with one of these labels
    task_timeout: float | None = None  #: seconds for one task, or one message
    on_rate_limit: str | None = None  #: "wait" or "stop"; the setting of that name if not given
    tasks_dir: str | None = None  #: the folder of lists; if not given, Claude Code's, or the database that is set up
    cwd: str | None = None
    env: Mapping[str, str] | None = None  #: its whole environment; this process's if not given
    on_parent_exit: str | None = None  #: "kill" or "keep"
    tool_use_id: str | None = None

    @property
    def type(self) -> str:
        """The kind, as records name it."""
        return "in_process_teammate"

    @property
    def letter(self) -> str:
        """What its ids begin with."""
        return "t"

    @property
    def identity(self) -> str:
        """As everybody names it."""
        return f"{self.name}@{self.team}"

    def wanted(self) -> Wanted:
        """What the runtime is asked for.

        Raises:
            BadValue, BadText, BadName: something in it cannot be.
            EngineNotFound: there is no such engine.
        """
        engine, command, model = chosen(self.engine, self.command, self.model)
        env = os.environ if self.env is None else self.env
        engines.find(engine).check(Brief("", "/", env, model, command))
        return self._replace(engine=engine, command=list(command), model=model).wanted_with(engine)

    def wanted_with(self, engine: str) -> Wanted:
        """The same for whatever does its work, in a word for people."""
        self._check()
        settled = self._replace(
            command=list(self.command),
            capabilities=list(self.capabilities),
            labels=list(self.labels),
            tasks_dir=folder_for_others(self.tasks_dir, config.load()),
            cwd=here.folder(self.cwd),
            env=None,
        )
        return Wanted(
            f"{self.identity}: {_line(self.prompt)}" if self.prompt.strip() else self.identity,
            arguments=settled._asdict(),
            is_inside=self.is_inside,
            text=f"teammate ({engine})",
            cwd=self.cwd,
            env=self.env,
            on_parent_exit=self.on_parent_exit,
            stdin=True,
            transcript=True,
            tool_use_id=self.tool_use_id,
            is_silent=True,
            is_light=self.is_inside,
            facts={
                "identity": {"agentId": self.identity, "agentName": self.name, "teamName": self.team},
                "prompt": self.prompt[:10_000],
                "model": self.model,
                "engine": engine,
                "isIdle": False,
            },
        )

    @classmethod
    def from_json(cls, arguments: Mapping[str, object]) -> Self:
        """The record that `wanted().arguments` was made from."""
        return cls(**{name: arguments[name] for name in cls._fields if name in arguments})  # type: ignore[arg-type]  # by `wanted`

    async def run(self, context: JobContext) -> Outcome:
        """Be a teammate, and say how it went."""
        import shutil

        from taskyard.teamwork.leash import leashed
        from taskyard.teamwork.running import run

        engine, command, model = chosen(self.engine, self.command, self.model)
        env = self._environment(context)
        if command and shutil.which(command[0], path=env.get("PATH")) is None:
            return Outcome(error=f"{command[0]} is not there, or cannot be run")
        hears = _hears(engine, command)
        guard = leashed(home=context.home, job=context.id) if self.is_inside else ()
        found, about = engines.find(engine), ""
        cwd = here.folder(self.cwd)

        async def work(turn: Turn) -> Said:
            nonlocal found, about
            task = turn.task.id if turn.task is not None else ""
            if not task or task != about:  # engines go on where they were: one conversation for all would never end
                found, about = type(found)(), task
            theirs = {**env, "TASKYARD_INSTANCE": turn.who.instance.id}
            if turn.task is not None:
                theirs[families.VARIABLE] = f"{env['TASKYARD_LIST']}/{turn.task.id}"
            settings = config.load()
            brief = Brief(turn.prompt, cwd, theirs, model, command, turn.session)._replace(
                own_tools=settings.agent_tools, permissions=settings.agent_permissions, guard=guard
            )
            return await found.work(brief, turn.watch)

        return await run(self, context, work, hears=hears)

    def _environment(self, context: JobContext) -> dict[str, str]:
        """What its engine's programs know: whatever they do on the list is this teammate's doing."""
        name = paths.list_name(self.team)
        return {
            **(os.environ if self.env is None else self.env),
            "TASKYARD_HOME": context.home,
            "TASKYARD_JOB": context.id,
            "TASKYARD_AGENT": self.name,
            "TASKYARD_LIST": name,
            **lists_here(self.tasks_dir).environ(),
            "CLAUDE_CODE_TASK_LIST_ID": name,
        }

    def _check(self) -> None:
        check_name("an agent", self.name)
        check_name("a team", self.team)
        paths.list_name(self.team)
        check_text("prompt", self.prompt, longest=LONGEST_PROMPT)
        check_colour(self.colour)
        if self.until not in UNTIL:
            raise BadValue("until", self.until, '"done" or "stopped"')
        for field, words in (("capabilities", self.capabilities), ("labels", self.labels)):
            if isinstance(words, str) or len(words) > _MOST_WORDS:
                raise BadValue(field, words, f"a list of at most {_MOST_WORDS} words")
            for word in words:
                check_text(field, word, longest=100, allow_empty=False)
        check_number("task_timeout", self.task_timeout, least=0.001, most=31 * 86_400.0)
        check_on_rate_limit(self.on_rate_limit)
        check_run(cwd=self.cwd, timeout=None, on_parent_exit=self.on_parent_exit)
        if self.plan_first and self.name == "me":
            raise UsageError("Who would approve the plans of `me`? Give the teammate another name.")


def _hears(engine: str, command: Sequence[str]) -> bool:
    """Whether an engine takes messages while it works; a program that reads its prompt from stdin has that closed."""
    from taskyard.engines.command import takes_prompt

    return engine != "command" or takes_prompt(command)


def _line(prompt: str) -> str:
    line = prompt.strip().splitlines()[0]
    return "".join(char if char.isprintable() else " " for char in line)[:150]


if TYPE_CHECKING:
    from taskyard.runtime.kind import Handler

    _conforms: type[Handler] = Teammate
