"""Argument models and output schemas of the MCP tools. Unknown arguments are refused.

`taskyard.servers.mcp.answers` builds the data that the output schemas describe. Docstrings of nested models are part
of the tool schemas.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase
from pydantic import BaseModel, ConfigDict, Field

#: Longest wait, in milliseconds.
LONGEST_WAIT = 600_000

#: Longest run of a command, in milliseconds: a day.
LONGEST_RUN = 86_400_000


class Arguments(ArgModelBase):
    """The arguments of one call, passed to its tool as one record."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    def model_dump_one_level(self) -> dict[str, Any]:
        """Return one keyword: the whole record."""
        return {"arguments": self}


def field(about: str, **more: Any) -> Any:
    """Declare a field with its description."""
    return Field(description=about, **more)


# Annotated, because `typing` caches unions by equality and literals are equal in any order: the union of the same
# levels in another library would set the order of the schema.
_LogLevel = Annotated[
    Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"], "from the least on"
]

TaskId = Annotated[str, field("The task's id, such as 7.", min_length=1, max_length=40)]
Ids = Annotated[list[str], Field(max_length=1000)]


class External(BaseModel):
    """The same task in another system."""

    model_config = ConfigDict(extra="forbid")

    system: str
    id: str
    url: str | None = None


class Acceptance(BaseModel):
    """A command that proves a task done."""

    model_config = ConfigDict(extra="forbid")

    command: Annotated[str, field("Run in bash when the task is completed; it must exit with 0.")]
    cwd: str | None = None
    timeout: Annotated[float | None, field("Seconds it may take.")] = None


class Extras(Arguments):
    """Optional fields of a task."""

    priority: Annotated[int | None, field("1 comes first, 9 last; 5 if not given.", ge=1, le=9)] = None
    labels: Annotated[list[str] | None, field("Words to find it by.")] = None
    due: Annotated[str | None, field("When it is due: 2027-01-31, or with a time.")] = None
    parent: Annotated[str | None, field("The id of the task it is a part of.")] = None
    external: Annotated[External | None, field("The same task in another system.")] = None
    requires: Annotated[list[str] | None, field("Capabilities an agent must have to be offered it.")] = None
    paths: Annotated[list[str] | None, field("Files and folders it will change; overlaps with others are told.")] = None
    acceptance: Annotated[Acceptance | None, field("A check that must pass before it counts as completed.")] = None


class TaskCreate(Extras):
    """A new task."""

    subject: Annotated[str, field("A brief title in the imperative, such as: Fix the login redirect.", min_length=1)]
    description: Annotated[
        str | None, field("What is to be done, with the context another agent needs to do it without asking.")
    ] = None
    active_form: Annotated[
        str | None,
        field("Shown while it is in progress, such as: Fixing the login redirect.", alias="activeForm"),
    ] = None
    owner: Annotated[str | None, field("Who shall do it; nobody if not given, so that anybody can claim it.")] = None
    blocks: Annotated[Ids | None, field("Ids of tasks that wait for this one.")] = None
    blocked_by: Annotated[Ids | None, field("Ids of tasks this one waits for.", alias="blockedBy")] = None
    metadata: Annotated[dict[str, Any] | None, field("Anything else to keep with it.")] = None


class TaskGet(Arguments):
    """One task."""

    task_id: Annotated[TaskId, Field(alias="taskId")]


class TaskList(Arguments):
    """A page of the list."""

    status: Annotated[
        Literal["pending", "in_progress", "completed"] | None, field("Only tasks of this status; all if not given.")
    ] = None
    owner: Annotated[str | None, field("Only tasks of this agent.")] = None
    after: Annotated[str | None, field("Turns the page: what the page before gave as `after`.", max_length=40)] = None


class TaskUpdate(Extras):
    """A change to one task."""

    task_id: Annotated[TaskId, Field(alias="taskId")]
    status: Annotated[
        Literal["pending", "in_progress", "completed", "deleted"] | None,
        field("pending, in_progress, completed, or deleted to remove it."),
    ] = None
    subject: Annotated[str | None, field("A new title.", min_length=1)] = None
    description: Annotated[str | None, field("A new description.")] = None
    active_form: Annotated[str | None, field("A new text to show while it is in progress.", alias="activeForm")] = None
    owner: Annotated[str | None, field('A new owner, who is told; "" for nobody.')] = None
    add_blocks: Annotated[Ids | None, field("Ids of tasks that shall wait for this one.", alias="addBlocks")] = None
    add_blocked_by: Annotated[Ids | None, field("Ids of tasks it shall wait for.", alias="addBlockedBy")] = None
    remove_blocks: Annotated[
        Ids | None, field("Ids of tasks that need not wait for this one.", alias="removeBlocks")
    ] = None
    remove_blocked_by: Annotated[Ids | None, field("Ids of tasks it need not wait for.", alias="removeBlockedBy")] = (
        None
    )
    metadata: Annotated[dict[str, Any] | None, field("Keys to lay over its metadata; null deletes a key.")] = None
    clear: Annotated[
        list[str] | None, field("Optional fields to take away, such as due; held offers it again after losses.")
    ] = None


class TaskClaim(Arguments):
    """A claim of one task, or of the next that is free."""

    task_id: Annotated[
        str | None,
        field("The task to claim; without it, the next that is free: by priority, then the lowest id.", alias="taskId"),
    ] = None
    start: Annotated[bool, field("Also put it in progress, in the same step.")] = True
    check_busy: Annotated[bool, field("Refuse if you still have other open work.", alias="checkBusy")] = False
    capabilities: Annotated[
        list[str] | None, field("Without taskId: what you can do, for tasks that require something.")
    ] = None
    labels: Annotated[list[str] | None, field("Without taskId: only tasks with one of these labels.")] = None


class Bash(Arguments):
    """A command."""

    command: Annotated[str, field("What to run in bash.", min_length=1)]
    description: Annotated[
        str | None, field("What it does, in a few words, for people who look at it.", max_length=200)
    ] = None
    timeout: Annotated[
        int | None, field("Milliseconds after which it is ended, with everything it started.", ge=1, le=LONGEST_RUN)
    ] = None
    stdin: Annotated[bool, field("It may ask something: you can then answer it with SendInput.")] = False


class BackgroundBash(Bash):
    """A command that may run in the background."""

    run_in_background: Annotated[
        bool, field("Answer at once with an id; the answer says how you learn of its end.")
    ] = False


class Monitor(Arguments):
    """Something to watch."""

    command: Annotated[str | None, field("What to run in bash: each line it prints is an event.")] = None
    mcp_command: Annotated[str | None, field("What starts an MCP server that speaks on stdin and stdout.")] = None
    mcp_url: Annotated[str | None, field("Where an MCP server listens.")] = None
    token_env: Annotated[
        str | None, field("The name of the environment variable that holds the token for mcp_url.", max_length=200)
    ] = None
    resources: Annotated[
        list[str] | None, field("URIs of the MCP server whose changes are events.", max_length=100)
    ] = None
    logs: Annotated[
        _LogLevel | None,
        field("Log messages of the MCP server from this level on are events."),
    ] = None
    filter: Annotated[
        str | None, field("Only lines in which this regular expression is found are told.", max_length=1000)
    ] = None
    silence: Annotated[
        int | None, field("Milliseconds without an event after which you are told so.", ge=1000, le=LONGEST_RUN)
    ] = None
    timeout_ms: Annotated[int | None, field("Milliseconds after which it is ended.", ge=1, le=LONGEST_RUN)] = None
    reconnect: Annotated[bool, field("Try again if the source is lost, instead of ending.")] = False
    description: Annotated[str | None, field("What is watched, in a few words.", max_length=200)] = None


class TaskOutput(Arguments):
    """A job and what it printed."""

    task_id: Annotated[str, field("The job's id, such as b1x9k2m4q.", min_length=1, max_length=40)]
    block: Annotated[bool, field("Wait for its end, as long as `timeout` says.")] = True
    timeout: Annotated[int, field("Milliseconds to wait at most.", ge=0, le=LONGEST_WAIT)] = 30_000
    transcript: Annotated[bool, field("For an agent: its whole transcript in place of its answer.")] = False


class TaskStop(Arguments):
    """A job to end."""

    task_id: Annotated[str, field("The job's id, such as b1x9k2m4q.", min_length=1, max_length=40)]


class KillShell(Arguments):
    """A job to end, under the name older clients know."""

    shell_id: Annotated[str, field("The job's id, such as b1x9k2m4q.", min_length=1, max_length=40)]


class ListJobs(Arguments):
    """A page of the jobs."""

    all: Annotated[bool, field("Also those that are over.")] = False
    after: Annotated[str | None, field("Turns the page: what the page before gave as `after`.", max_length=40)] = None


class SendInput(Arguments):
    """Text for a job that waits for an answer."""

    task_id: Annotated[str, field("The job's id, such as b1x9k2m4q.", min_length=1, max_length=40)]
    text: Annotated[str, field("What to type; a line break is added.", max_length=60_000)]


class TeamCreate(Arguments):
    """A new team."""

    team_name: Annotated[str, field("The team's name, which is also its list's.", min_length=1, max_length=200)]
    description: Annotated[str | None, field("What the team is for.", max_length=2_000)] = None


class SendMessage(Arguments):
    """A message to another agent."""

    to: Annotated[
        str,
        field(
            "The agent's name, or the id of one you started; * for everyone else in the team.",
            min_length=1,
            max_length=200,
        ),
    ]
    message: Annotated[str, field("What to say.", min_length=1, max_length=200_000)]
    summary: Annotated[str | None, field("The message in five to ten words.", max_length=200)] = None


class ReadMail(Arguments):
    """Messages that wait for the caller."""

    limit: Annotated[int, field("How many at most.", ge=1, le=100)] = 20


class Agent(Arguments):
    """Work for an agent of its own."""

    prompt: Annotated[
        str,
        field("What it is to do, with all it needs to know: it sees nothing else.", min_length=1, max_length=200_000),
    ]
    description: Annotated[
        str | None, field("What it does, in three to five words, for people who look at it.", max_length=200)
    ] = None
    subagent_type: Annotated[str, field("What kind of agent: hooks go by it.", min_length=1, max_length=100)] = (
        "general-purpose"
    )
    model: Annotated[str | None, field("Which model, where its engine lets one choose.", max_length=200)] = None
    name: Annotated[
        str | None, field("A name for it: SendMessage reaches it by that.", min_length=1, max_length=200)
    ] = None
    team_name: Annotated[
        str | None,
        field("Make it a teammate of this team, under `name`; the prompt becomes a task of its own.", max_length=200),
    ] = None
    engine: Annotated[
        str | None, field("What it runs on, such as claude; what is set up here if not given.", max_length=200)
    ] = None
    remote: Annotated[
        str | None,
        field(
            "Have it work elsewhere, at this place, as people named it; it sees nothing of this folder.", max_length=200
        ),
    ] = None
    remote_task_type: Annotated[
        Literal["remote-agent", "ultraplan", "ultrareview", "autofix-pr", "background-pr"] | None,
        field("With remote: what kind of work; remote-agent if not given."),
    ] = None
    isolation: Annotated[
        Literal["worktree"] | None,
        field(
            "worktree: it works in a git worktree of its own, from the last commit, which is kept if it leaves work."
        ),
    ] = None
    timeout: Annotated[
        int | None, field("Milliseconds after which it is ended, with everything it started.", ge=1, le=LONGEST_RUN)
    ] = None
    max_tokens: Annotated[int | None, field("It ends when it has used so many tokens.", ge=1, le=1 << 50)] = None
    max_cost: Annotated[float | None, field("It ends when it has cost so many dollars.", gt=0, le=1_000_000)] = None


class BackgroundAgent(Agent):
    """Work for an agent that may run in the background."""

    run_in_background: Annotated[
        bool, field("Answer at once with an id; the answer says how you learn of its end.")
    ] = False


class Workflow(Arguments):
    """Steps to run."""

    path: Annotated[str | None, field("A file with the workflow, YAML or JSON.", min_length=1, max_length=4096)] = None
    definition: Annotated[
        dict[str, Any] | None,
        field(
            "The workflow itself: name, and steps with id, one of run, agent and tasks, and optional needs, env, if,"
            " timeout, retries."
        ),
    ] = None
    resume_from: Annotated[
        str | None, field("A run that did not finish: what is finished is not run again.", max_length=40)
    ] = None
    failed: Annotated[bool, field("With resume_from: also run again what failed.")] = False
    env: Annotated[dict[str, str] | None, field("Variables for every step.", max_length=1000)] = None
    timeout: Annotated[
        int | None, field("Milliseconds after which it is ended; resume_from goes on.", ge=1, le=LONGEST_RUN)
    ] = None


class BackgroundWorkflow(Workflow):
    """Steps that may run in the background."""

    run_in_background: Annotated[
        bool, field("Answer at once with an id; the answer says how you learn of its end.")
    ] = False


_TEXT: dict[str, Any] = {"type": "string"}
_MAYBE_TEXT: dict[str, Any] = {"type": ["string", "null"]}
_MAYBE_NUMBER: dict[str, Any] = {"type": ["integer", "null"]}
_IDS: dict[str, Any] = {"type": "array", "items": _TEXT}

_TASK: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": _TEXT,
        "subject": _TEXT,
        "description": _TEXT,
        "active_form": _MAYBE_TEXT,
        "owner": _MAYBE_TEXT,
        "status": {"enum": ["pending", "in_progress", "completed"]},
        "blocks": _IDS,
        "blocked_by": _IDS,
        "metadata": {"type": "object"},
        "created_at": _MAYBE_NUMBER,
        "updated_at": _MAYBE_NUMBER,
        "lease": {"type": ["object", "null"]},
        "ready": _IDS,
        "notes": _IDS,
    },
}

ONE_TASK: dict[str, Any] = {"task": _TASK}
UPDATED_TASK: dict[str, Any] = {**ONE_TASK, "changed": _IDS, "ready": _IDS}

_COUNTS: dict[str, Any] = {
    "total": {"type": "integer", "description": "How many there are of those asked for."},
    "left_out": {"type": "integer", "description": "How many of them are not on this page."},
    "after": {**_MAYBE_TEXT, "description": "What to ask for next, if there is more."},
}

TASKS: dict[str, Any] = {
    "tasks": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "id": _TEXT,
                "status": _TEXT,
                "subject": _TEXT,
                "owner": _TEXT,
                "blocked_by": {**_IDS, "description": "What it still waits for."},
            },
        },
    },
    **_COUNTS,
}

JOBS: dict[str, Any] = {"jobs": {"type": "array", "items": {"type": "object"}}, **_COUNTS}

#: The fields of a job, named as in TaskOutput, in all answers.
JOB: dict[str, Any] = {
    "task_id": _TEXT,
    "task_type": _TEXT,
    "status": {"enum": ["pending", "running", "completed", "failed", "killed"]},
    "description": _TEXT,
    "output_file": _MAYBE_TEXT,
    "output": {**_TEXT, "description": "What it printed; of much, the end."},
    "was_truncated": {"type": "boolean"},
    "exitCode": {**_MAYBE_NUMBER, "description": "null until the end."},
    "signal": _MAYBE_NUMBER,
    "cause": _MAYBE_TEXT,
    "needs_input": {"type": "boolean"},
    "waiting": {**_TEXT, "description": "What it waits for: a rate limit, and until when. It goes on by itself."},
    "host": {**_TEXT, "description": "The machine it runs on, if that is another: its output file is there."},
    "disconnected": {**_TEXT, "description": "Its work goes on elsewhere, out of sight: since when, and why."},
    "prompt": _TEXT,
    "result": _TEXT,
    "error_text": _TEXT,
    "retrieval_status": {"enum": ["success", "timeout", "not_ready"]},
}

#: Usage of an agent: total_tokens, tool_uses, duration_ms.
_USAGE: dict[str, Any] = {"type": "object", "additionalProperties": {"type": "integer"}}

AGENT: dict[str, Any] = {
    name: JOB[name]
    for name in (
        "task_id",
        "task_type",
        "status",
        "description",
        "output_file",
        "was_truncated",
        "needs_input",
        "waiting",
        "disconnected",
    )
} | {
    "name": {**_TEXT, "description": "By which SendMessage reaches it, beside its id."},
    "summary": {**_TEXT, "description": "What it is doing, in a sentence or two."},
    "result": {**_TEXT, "description": "Its final answer; of a long one, the end."},
    "error_text": {**_TEXT, "description": "Why it did not finish."},
    "usage": _USAGE,
    "cost_usd": {"type": "number"},
    "worktree": {"type": "object", "description": "path and branch, what it began at, and why it was kept."},
}

#: Any kind of job; fields that a kind does not have are absent.
OUTPUT: dict[str, Any] = {**AGENT, **JOB}

WORKFLOW: dict[str, Any] = {
    name: JOB[name] for name in ("task_id", "task_type", "status", "description", "output_file", "needs_input")
} | {
    "run": {**_TEXT, "description": "What resume_from takes."},
    "steps": {"type": "array", "items": {"type": "object"}, "description": "How each step went: id, status, job, why."},
}

STOPPED: dict[str, Any] = {
    "message": _TEXT,
    "task_id": _TEXT,
    "task_type": _TEXT,
    "command": _TEXT,
    "outcome": {"enum": ["stopped", "already_ended", "partial", "best_effort", "timeout"]},
    "survivors": {"type": "array", "items": {"type": "integer"}},
    "kept": _IDS,
}

TEAM: dict[str, Any] = {"team_name": _TEXT, "lead": _TEXT, "list": _TEXT}
SENT: dict[str, Any] = {"sent": _IDS, "ids": _IDS}
TYPED: dict[str, Any] = {"task_id": _TEXT}
MAIL: dict[str, Any] = {"messages": {"type": "array", "items": {"type": "object"}}, "left": {"type": "integer"}}
