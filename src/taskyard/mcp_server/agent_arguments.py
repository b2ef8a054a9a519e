"""What Agent and Workflow take, as models know it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from taskyard.mcp_server.arguments import LONGEST_RUN, Arguments, field


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
