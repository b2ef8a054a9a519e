"""Job kind `in_process_teammate`: a teammate that works on its team's list until done or shut down.

Inside a program with an event loop hundreds cost little more than their work; below a supervisor each has a
process of its own, and the kernel proves its exit. The loop is in `taskyard.agents.teammate`. Its end sends
no notice to a model: the team communicates by mail.
"""

from __future__ import annotations

import os

from taskyard import config
from taskyard.agents import engines
from taskyard.agents.engines.engine import Brief, TurnResult
from taskyard.agents.engines.provider import choose_engine
from taskyard.agents.teammate.rules import check_colour
from taskyard.core.values import NamedTuple, check_name, check_number, check_text
from taskyard.errors import BadValue, UsageError
from taskyard.jobs import environment, query
from taskyard.jobs.kind import LaunchSpec, Outcome, check_on_rate_limit, check_run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self

    from taskyard.agents.teammate.loop import Turn
    from taskyard.jobs.context import JobContext

#: Maximum characters of standing instructions: more than any model takes.
LONGEST_PROMPT = 2_000_000

#: When a teammate ends by itself.
UNTIL = ("done", "stopped")

#: Maximum capabilities or labels of one teammate.
_MOST_WORDS = 50


class Teammate(NamedTuple):
    """A teammate that works with others on a list."""

    name: str
    team: str  #: also names the list; created if there is none
    prompt: str = ""  #: standing instructions that come before each task
    engine: str = ""  #: an engine's name, or that of an installed agent; default: the setting `engine`
    command: Sequence[str] = ()  #: the command line, for engines that are programs
    model: str | None = None
    colour: str | None = None  #: one of `rules.PALETTE`; default: in the order of joining
    plan_first: bool = False  #: the lead approves a plan before a task is worked on
    is_inside: bool = True  #: inside the program that starts it; else in a process of its own below a supervisor
    until: str = "done"  #: "done": ends when every task of the list is completed; "stopped": idles until shut down
    capabilities: Sequence[str] = ()  #: tasks that require anything else are left out
    labels: Sequence[str] = ()  #: only tasks with one of these labels
    task_timeout: float | None = None  #: seconds for one task, or one message
    on_rate_limit: str | None = None  #: "wait" or "stop"; default: the setting of that name
    tasks_dir: str | None = None  #: the folder of lists; default: Claude Code's, or the configured database
    cwd: str | None = None
    env: Mapping[str, str] | None = None  #: its whole environment; default: this process's
    on_parent_exit: str | None = None  #: "kill" or "keep"
    tool_use_id: str | None = None

    @property
    def type(self) -> str:
        """The job type in records."""
        return "in_process_teammate"

    @property
    def letter(self) -> str:
        """First character of its job ids."""
        return "t"

    @property
    def identity(self) -> str:
        """The id `name@team`."""
        return f"{self.name}@{self.team}"

    def wanted(self) -> LaunchSpec:
        """Return the launch spec.

        Raises:
            BadValue, BadText, BadName: a field is invalid.
            EngineNotFound: there is no such engine.
        """
        engine, command, model = choose_engine(self.engine, self.command, self.model)
        env = os.environ if self.env is None else self.env
        engines.find(engine).check(Brief("", "/", env, model, command))
        return self._replace(engine=engine, command=list(command), model=model).wanted_for_engine(engine)

    def wanted_for_engine(self, engine: str) -> LaunchSpec:
        """Return the launch spec with `engine` as the name shown for what does the work."""
        self._check()
        settled = self._replace(
            command=list(self.command),
            capabilities=list(self.capabilities),
            labels=list(self.labels),
            tasks_dir=config.child_tasks_dir(self.tasks_dir, config.load_settings()),
            cwd=environment.resolve_cwd(self.cwd),
            env=None,
        )
        return LaunchSpec(
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
            needs_no_slot=self.is_inside,
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
        """Restore a teammate from `wanted().arguments`."""
        return cls(**{name: arguments[name] for name in cls._fields if name in arguments})  # type: ignore[arg-type]  # by `wanted`

    async def run(self, context: JobContext) -> Outcome:
        """Run the teammate and return the outcome."""
        import shutil

        from taskyard.agents.teammate.child_guard import guard_command
        from taskyard.agents.teammate.membership import run

        engine, command, model = choose_engine(self.engine, self.command, self.model)
        env = self._environment(context)
        if command and shutil.which(command[0], path=env.get("PATH")) is None:
            return Outcome(error=f"{command[0]} is not there, or cannot be run")
        hears = _accepts_messages(engine, command)
        guard = guard_command(home=context.home, job=context.id) if self.is_inside else ()
        found, about = engines.find(engine), ""
        cwd = environment.resolve_cwd(self.cwd)

        async def work(turn: Turn) -> TurnResult:
            nonlocal found, about
            task = turn.task.id if turn.task is not None else ""
            if not task or task != about:  # one conversation per task, or it would grow without end
                found, about = type(found)(), task
            theirs = {**env, "TASKYARD_INSTANCE": turn.who.instance.id}
            if turn.task is not None:
                theirs[query.TASK_VARIABLE] = f"{env['TASKYARD_LIST']}/{turn.task.id}"
            settings = config.load_settings()
            brief = Brief(turn.prompt, cwd, theirs, model, command, turn.session)._replace(
                own_tools=settings.agent_tools, permissions=settings.agent_permissions, guard=guard
            )
            return await found.work(brief, turn.watch)

        return await run(self, context, work, hears=hears)

    def _environment(self, context: JobContext) -> dict[str, str]:
        """Return the environment of its engine's programs: what they do on the list counts as this teammate's."""
        name = config.list_name(self.team)
        return {
            **(os.environ if self.env is None else self.env),
            "TASKYARD_HOME": context.home,
            "TASKYARD_JOB": context.id,
            "TASKYARD_AGENT": self.name,
            "TASKYARD_LIST": name,
            **context.services.lists(self.tasks_dir).environ(),
            "CLAUDE_CODE_TASK_LIST_ID": name,
        }

    def _check(self) -> None:
        check_name("an agent", self.name)
        check_name("a team", self.team)
        config.list_name(self.team)
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


def _accepts_messages(engine: str, command: Sequence[str]) -> bool:
    """Return whether an engine takes messages while it works.

    A program that reads its prompt from stdin cannot: its stdin is closed after it.
    """
    from taskyard.agents.engines.command import takes_prompt

    return engine != "command" or takes_prompt(command)


def _line(prompt: str) -> str:
    line = prompt.strip().splitlines()[0]
    return "".join(char if char.isprintable() else " " for char in line)[:150]


if TYPE_CHECKING:
    from taskyard.jobs.kind import Handler

    _conforms: type[Handler] = Teammate
