"""Job kind `local_agent`: an agent in the background.

An engine works on a prompt, in a process below a supervisor. Its transcript has one JSON line per text or
action, and the job's output is a link to it; the final answer is the job's result.

    SubagentStart hooks    their output comes before the prompt
    the engine             works; it gets messages sent to the job; its own questions set `needs_input`
    SubagentStop hooks     exit 2: their stderr is the next prompt, and it continues

`Agent.resume` continues a finished agent as another job, with the same engine and its conversation or
transcript.
"""

from __future__ import annotations

import os

from taskyard import config
from taskyard.agents import engines
from taskyard.agents.engines.engine import PERMISSIONS, Brief, is_session_id
from taskyard.agents.engines.provider import account_of, choose_engine
from taskyard.core.values import (
    NamedTuple,
    as_list,
    as_object,
    as_text,
    check_name,
    check_number,
    check_text,
)
from taskyard.errors import BadText, BadValue, Conflict
from taskyard.jobs.agent_reports import AgentMessage
from taskyard.jobs.exit_record import read_json
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.kind import LaunchSpec, check_on_rate_limit, check_run
from taskyard.jobs.query import read_job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self

    from taskyard.jobs.context import JobContext
    from taskyard.jobs.kind import Outcome


#: Maximum characters of a prompt: more than any model takes.
LONGEST_PROMPT = 2_000_000

#: The main conversation, put into the background.
MAIN_SESSION = "main-session"

#: Limits that catch typing errors: more than any agent uses or costs.
_MOST_TOKENS, _MOST_COST = 1 << 50, 1_000_000.0


class Agent(NamedTuple):
    """An agent to run in the background."""

    prompt: str
    engine: str = ""  #: an engine's name, or that of an installed agent; default: the setting `engine`
    command: Sequence[str] = ()  #: the command line, for engines that are programs
    agent_type: str = "general-purpose"  #: what hooks match on
    name: str | None = None  #: the name it acts under; default: its job's id
    description: str | None = None  #: one line for people; default: the prompt's first line
    model: str | None = None
    cwd: str | None = None
    env: Mapping[str, str] | None = None  #: its whole environment; default: this process's
    timeout: float | None = None  #: timeout in seconds
    on_parent_exit: str | None = None  #: "kill" or "keep"
    tool_use_id: str | None = None
    session: str | None = None  #: conversation to continue, by the id `claude-stream` engines gave it
    resumes: str | None = None  #: the job whose work it continues; see `resume`
    task: str | None = None  #: the task that its usage is counted for, `list/id`
    worktree: bool = False  #: works in a git worktree of its own, or fails
    max_tokens: int | None = None  #: token budget; default: the setting `agent_tokens`
    max_cost: float | None = None  #: dollars, where its engine reports cost; default: the setting `agent_cost`
    permissions: str = ""  #: "ask", "edit", "work" or "all"; default: the setting `agent_permissions`
    on_rate_limit: str | None = None  #: "wait" or "stop"; default: the setting of that name

    @property
    def type(self) -> str:
        """The job type in records."""
        return "local_agent"

    @property
    def letter(self) -> str:
        """First character of its job ids."""
        return "s" if self.agent_type == MAIN_SESSION else "a"

    @classmethod
    def resume(cls, job_id: str, prompt: str, *, home: str | None = None) -> Self:
        """Return an agent that continues a finished one, with the same engine, model, name and folder.

        Where its engine keeps conversations, it continues that one; else the prompt names the transcript
        file.

        Raises:
            JobNotFound: there is no such job.
            Conflict: it is not an agent, is still running, or its transcript is gone.
        """
        return cls(**resume_fields(home or config.home(), job_id, prompt))  # type: ignore[arg-type]  # fields of an earlier one

    def wanted(self) -> LaunchSpec:
        """Return the launch spec for its supervisor.

        Raises:
            BadValue, BadText, BadName: a field is invalid.
            EngineNotFound: there is no such engine.
        """
        engine, command, model = choose_engine(self.engine, self.command, self.model)
        self._check()
        engines.find(engine).check(self.brief(command, cwd="/")._replace(model=model))
        return LaunchSpec(
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
        """Restore an agent from `wanted().arguments`."""
        return cls(**arguments)  # type: ignore[arg-type]  # made by `wanted`

    async def run(self, context: JobContext) -> Outcome:
        """Run the agent and return the outcome."""
        from taskyard.agents.agent.run import work

        return await work(self, context)

    def brief(self, command: tuple[str, ...], *, cwd: str, prompt: str | None = None) -> Brief:
        """Return the brief for its engine."""
        given = os.environ if self.env is None else self.env
        env = {**given, "TASKYARD_AGENT": self.name or os.environ.get("TASKYARD_JOB", "agent"), "PWD": cwd}
        told = prompt if prompt is not None else self.prompt
        settings = config.load_settings()
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
        if self.session is not None and not is_session_id(self.session):
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


#: Fields that a resumed agent takes from the earlier one.
_INHERITED_FIELDS = (
    "engine",
    "command",
    "agent_type",
    "name",
    "description",
    "model",
    "max_tokens",
    "max_cost",
    "on_rate_limit",
)


def resume_fields(home: str, job_id: str, prompt: str) -> dict[str, object]:
    """Return the fields of an agent that continues `job_id`.

    Raises:
        JobNotFound: there is no such job.
        Conflict: it is not an agent, is still running, or its transcript is gone.
    """
    job = read_job(home, job_id)
    if job.type != "local_agent":
        raise Conflict(f"{job.id} is not an agent: it is a {job.type}.")
    if not job.is_final:
        raise Conflict(f"Agent {job.id} is still running: `taskyard send {job.id} TEXT` sends it a message.")
    folder = JobPaths(home, job.id)
    arguments = as_object((read_json(folder.arguments) or {}).get("arguments"))
    if arguments is None or not os.path.lexists(folder.transcript):
        raise Conflict(f"The transcript of agent {job.id} was removed by `taskyard gc`.")
    fields: dict[str, object] = {name: arguments.get(name) for name in _INHERITED_FIELDS}
    fields |= {"command": tuple(arguments.get("command") or ()), "cwd": _cwd(folder), "resumes": job.id}  # type: ignore[arg-type]  # words, by `wanted`
    fields["permissions"] = arguments.get("permissions") or ""  # jobs of earlier versions have none
    fields["description"] = fields["description"] or next(iter(prompt.strip().splitlines()), None)
    prompt = "\n\n".join([*_undelivered_messages(job.facts), prompt]) if prompt.strip() else prompt
    session = job.facts.get("session")
    if isinstance(session, str) and is_session_id(session):  # set only by engines that keep conversations
        return {**fields, "prompt": prompt, "session": session}
    return {**fields, "prompt": f"{prompt}\n\nYou go on with earlier work; its transcript is in {folder.transcript}."}


def _undelivered_messages(facts: Mapping[str, object]) -> list[str]:
    """Return messages that were sent to the earlier agent but never delivered, from its record."""
    found: list[str] = []
    for raw in as_list(facts.get("messages")) or []:
        message = as_object(raw) or {}
        if message.get("queued") is True and (text := as_text(message.get("text"))):
            found.append(str(AgentMessage(text, as_text(message.get("from")))))
    return found


def _cwd(folder: JobPaths) -> str | None:
    cwd = (read_json(folder.record) or {}).get("cwd")
    return cwd if isinstance(cwd, str) and os.path.isdir(cwd) else None
