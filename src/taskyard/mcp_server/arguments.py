"""What each tool takes, as models know it: names, types, limits, and a word on each. Unknown fields are refused."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase
from pydantic import BaseModel, ConfigDict, Field

#: As long as a wait may last, in milliseconds.
LONGEST_WAIT = 600_000

#: As long as a command may run, in milliseconds: a day.
LONGEST_RUN = 86_400_000


class Arguments(ArgModelBase):
    """The arguments of one call, handed to its tool as they are."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    def model_dump_one_level(self) -> dict[str, Any]:
        """One keyword: the whole record."""
        return {"arguments": self}


def field(about: str, **more: Any) -> Any:
    """A field, with a word on it."""
    return Field(description=about, **more)


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
        Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"] | None,
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
