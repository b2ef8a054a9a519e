"""
An agent in the background: `local_agent`.

It works on a prompt by an engine, in a process below its keeper. What it says and does is its transcript, a line of
JSON each, and its output is a link to that; its final answer is the job's result.

    SubagentStart hooks    what they print comes before the prompt
    the engine             works; what is sent to the job reaches it; a question of its own is `needs_input`
    SubagentStop hooks     exit 2: what they say is the next prompt, and it goes on
"""

from __future__ import annotations

import os

from taskyard import config, engines, paths
from taskyard.engines.choice import chosen
from taskyard.engines.engine import PERMISSIONS, Brief
from taskyard.engines.provider import account_of
from taskyard.errors import BadText, BadValue
from taskyard.kinds.agent_lines import is_session
from taskyard.kinds.checks import check_on_rate_limit, check_run
from taskyard.names import check_name, check_number, check_text
from taskyard.runtime.kind import Wanted
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self

    from taskyard.runtime.context import JobContext
    from taskyard.runtime.kind import Outcome

#: Characters of a prompt: more than any model takes.
LONGEST_PROMPT = 2_000_000

#: The main conversation, put into the background.
MAIN_SESSION = "main-session"

#: More than any agent uses, and than anybody pays: typing errors.
_MOST_TOKENS, _MOST_COST = 1 << 50, 1_000_000.0


class Agent(NamedTuple):
    """An agent to run in the background."""

    prompt: str
    engine: str = ""  #: an engine's name, or an agent's that is installed here; the setting `engine` if not given
    command: Sequence[str] = ()  #: the program of engines that are one
    agent_type: str = "general-purpose"  #: what hooks match on
    name: str | None = None  #: under which it acts; its job's id if not given
    description: str | None = None  #: one line for people; the prompt's first line if not given
    model: str | None = None
    cwd: str | None = None
    env: Mapping[str, str] | None = None  #: its whole environment; this process's if not given
    timeout: float | None = None  #: seconds until it is ended
    on_parent_exit: str | None = None  #: "kill" or "keep"
    tool_use_id: str | None = None
    session: str | None = None  #: the conversation to go on with, as `claude-stream` engines name it
    resumes: str | None = None  #: the job whose work it goes on with; see `resume`
    task: str | None = None  #: the task it is for, `list/id`, to which what it takes is counted
    worktree: bool = False  #: it works in a git worktree of its own, or not at all
    max_tokens: int | None = None  #: it ends when it has used so many; the setting `agent_tokens` if not given
    max_cost: float | None = None  #: dollars, where its engine tells; the setting `agent_cost` if not given
    permissions: str = ""  #: "ask", "edit", "work" or "all"; the setting `agent_permissions` if not given
    on_rate_limit: str | None = None  #: "wait" or "stop"; the setting of that name if not given

    @property
    def type(self) -> str:
        """The kind, as records name it."""
        return "local_agent"

    @property
    def letter(self) -> str:
        """What its ids begin with."""
        return "s" if self.agent_type == MAIN_SESSION else "a"

    @classmethod
    def resume(cls, job_id: str, prompt: str, *, home: str | None = None) -> Self:
        """What goes on with the work of an agent that is over, with the same engine, model, name and folder.

        Where its engine keeps conversations, it goes on with that one; else it is told where the transcript is.

        Raises:
            JobNotFound: there is no such job.
            Conflict: it is no agent, or not over, or gone with all it said.
        """
        from taskyard.kinds.agent_resume import earlier

        return cls(**earlier(home or paths.home(), job_id, prompt))  # type: ignore[arg-type]  # fields of an earlier one

    def wanted(self) -> Wanted:
        """What its keeper is asked for.

        Raises:
            BadValue, BadText, BadName: something in it cannot be.
            EngineNotFound: there is no such engine.
        """
        engine, command, model = chosen(self.engine, self.command, self.model)
        self._check()
        engines.find(engine).check(self.brief(command, cwd="/")._replace(model=model))
        return Wanted(
            self._line(),
            arguments={
                "prompt": self.prompt,
                "engine": engine,
                "command": list(command),
                "agent_type": self.agent_type,
                "name": self.name,
                "description": self.description,
                "model": model,
                "session": self.session,
                "worktree": self.worktree,
                "max_tokens": self.max_tokens,
                "max_cost": self.max_cost,
                "permissions": self.permissions,
                "on_rate_limit": self.on_rate_limit,
            },
            text=f"agent ({engine})",
            cwd=self.cwd,
            env=self.env,
            timeout=self.timeout,
            on_parent_exit=self.on_parent_exit,
            stdin=True,
            transcript=True,
            task=self.task,
            provider=account_of(engine, command, model, os.environ if self.env is None else self.env).key,
            on_rate_limit=self.on_rate_limit,
            tool_use_id=self.tool_use_id,
            facts={
                "agentType": self.agent_type,
                "prompt": self.prompt[:10_000],
                "model": model,
                "engine": engine,
                **({"name": self.name} if self.name is not None else {}),
                **({"resumes": self.resumes} if self.resumes is not None else {}),
            },
        )

    @classmethod
    def from_json(cls, arguments: Mapping[str, object]) -> Self:
        """The record that `wanted().arguments` was made from."""
        return cls(**arguments)  # type: ignore[arg-type]  # made by `wanted`

    async def run(self, context: JobContext) -> Outcome:
        """Work, and say how it went."""
        from taskyard.kinds.agent_work import work

        return await work(self, context)

    def brief(self, command: tuple[str, ...], *, cwd: str, prompt: str | None = None) -> Brief:
        """What its engine is told."""
        given = os.environ if self.env is None else self.env
        env = {**given, "TASKYARD_AGENT": self.name or os.environ.get("TASKYARD_JOB", "agent"), "PWD": cwd}
        told = prompt if prompt is not None else self.prompt
        settings = config.load()
        permissions = self.permissions or settings.agent_permissions
        if permissions:
            env["TASKYARD_AGENT_PERMISSIONS"] = permissions  # agents that it starts may do no more by default
        return Brief(told, cwd, env, self.model, command, own_tools=settings.agent_tools, permissions=permissions)

    def _check(self) -> None:
        if not self.prompt.strip():
            raise BadText("prompt", "is empty")
        check_text("prompt", self.prompt, longest=LONGEST_PROMPT)
        if self.name is not None:
            check_name("an agent", self.name)
        if self.session is not None and not is_session(self.session):
            raise BadValue("session", self.session, "the name of a conversation: letters, digits, ., _ and -")
        check_text("agent type", self.agent_type, longest=100, allow_empty=False)
        check_number("max tokens", self.max_tokens, least=1, most=_MOST_TOKENS, whole=True)
        check_number("max cost", self.max_cost, least=0.000_001, most=_MOST_COST, unit="dollars")
        if self.model is not None and self.model.startswith("-"):
            raise BadValue("model", self.model, "the name of a model: it may not begin with -")
        if self.permissions and self.permissions not in PERMISSIONS:
            raise BadValue("permissions", self.permissions, f"one of {', '.join(PERMISSIONS)}")
        check_on_rate_limit(self.on_rate_limit)
        check_run(cwd=self.cwd, timeout=self.timeout, on_parent_exit=self.on_parent_exit)

    def _line(self) -> str:
        line = self.description or self.prompt.strip().splitlines()[0]
        return "".join(char if char.isprintable() else " " for char in line)[:200]
