"""Descriptions of the tools and server instructions, written for models."""

from __future__ import annotations

TASK_CREATE = """\
Add a task to the shared list. It starts as pending and without an owner unless you name one.

Use it for work of more than three steps, for several requests at once, or for anything that needs a plan; not for \
less, and not for talk. Write the subject in the imperative and a description that another agent can act on without \
asking. Dependencies can be given with it: blockedBy names tasks that must be completed first. A circle is refused."""

TASK_GET = """\
One task in full: status, description, what it still waits for, and what waits for it. Read it before you start on \
it."""

TASK_LIST = """\
All tasks of the shared list: id, status, subject, owner, and what each still waits for. Look here for what is \
free (pending, no owner, not blocked) and after each task you complete, since others work on the same list. Long \
lists come in pages: the answer says how to see the rest."""

TASK_UPDATE = """\
Change a task: its status, fields, owner or dependencies, all in one step or not at all.

Set it to in_progress before you start, which makes you its owner if it has none, and to completed as soon as it is \
truly done: no failing tests, no open errors. A task that waits for others can be neither started nor completed. \
status deleted removes it. metadata is laid over what is there; null deletes a key. The answer says which fields \
changed, and which tasks are ready now."""

TASK_CLAIM = """\
Take a task, so that nobody else does: the one you name, or the next that is free, by priority and then the lowest \
id. It is atomic: of many agents that ask at once, each gets another one. It is put in progress unless start is \
false. If your connection ends, what you have not completed goes back to the list."""

BASH = """\
Run a command in bash as a Taskyard job: people and other agents see it, its output is kept, and its end is proved. \
For a quick look at files the client's own shell tool is enough.

In the foreground it answers with the output and the exit code; a command that takes too long for one answer goes on \
in the background, and the answer gives its id. With run_in_background it answers at once with an id and the output \
file, and says how you learn of its end: do not poll. TaskOutput reads its output, TaskStop ends it with \
everything it started, SendInput answers it if it asks something (with stdin)."""

BASH_IN_FOREGROUND = """\
Run a command in bash. It answers with the output and the exit code, once it has ended: nothing can run in the \
background here. Give a timeout to what might not end."""

MONITOR = """\
Watch something in the background: what a command prints, a line an event, or an MCP server's resources and log \
messages. Give exactly one of command, mcp_command and mcp_url.

It answers at once with an id. Events come with the answers to later Taskyard calls, in batches with a count of what \
was held back; all of it is in the output file. Use a filter for what matters, and silence if no news is bad \
news. TaskStop ends it. To hear of the end of one command alone, use Bash with run_in_background."""

_AGENT = """\
Have an agent of its own do something: it gets the prompt and nothing else of what you know, works in this folder, \
and answers with one text. Use it for work that stands by itself: a search through much, a part of a plan, an \
independent check."""

AGENT = f"""\
{_AGENT}

In the foreground it answers with the agent's final text and what it took; one that takes too long for one answer \
goes on in the background, and the answer gives its id. With run_in_background it answers at once, and \
says how you get its answer: do not poll. TaskOutput gives its answer once more (or its \
transcript), TaskStop ends it with everything it started, SendMessage tells it something, SendInput answers it if it \
asks."""

AGENT_IN_FOREGROUND = f"""\
{_AGENT} It answers once the agent is done: nothing can run in the background here."""

_WORKFLOW = """\
Run steps that depend on each other, side by side where they may: commands (run), agents (agent), or tasks for the \
shared list (tasks). Give exactly one of path, definition and resume_from. What is finished is written down: after a \
stop or a crash resume_from goes on with the rest."""

WORKFLOW = f"""\
{_WORKFLOW}

In the foreground it answers with how each step went; one that takes too long for one answer goes on in the \
background. With run_in_background it answers at once with an id."""

WORKFLOW_IN_FOREGROUND = f"""\
{_WORKFLOW} It answers once all steps are over: nothing can run in the background here."""

TASK_OUTPUT = """\
A background job and what it printed, cut to its end if it is long (the answer names the file with all of it); of an \
agent its final answer (while it works, what it said and did last), or with transcript all it said and did. Waits for \
its end unless block is false. Reading the end here counts as having been told of it. For jobs of Taskyard; those of \
the client's own tools have ids of their own."""

TASK_STOP = """\
End a background job of Taskyard with everything it started. The answer says whether the kernel \
confirmed that nothing of it is left."""

KILL_SHELL = "The same as TaskStop, under an older name."

LIST_JOBS = """\
Background jobs that run or wait for their turn, of all agents; with all, also those that are over."""

SEND_INPUT = """\
Answer a background job that waits for input. Only for jobs that were started with stdin (or a terminal)."""

TEAM_CREATE = """\
Create a team that you lead, with a task list of the same name. From then on TaskCreate, TaskList and the other tools \
work on that list. Agent with name and team_name adds a teammate to it, which works on its own until it is stopped."""

SEND_MESSAGE = """\
Send a message to another agent of the team, by its name; * sends it to everyone else. It is stored until it is read. \
An agent that you started with Agent gets it at once, or as soon as it has finished what it is at. Agents do not see \
what you write elsewhere: this is the only way to tell them."""

READ_MAIL = """\
Messages that other agents sent you, oldest first. What you have read is not shown again."""

_LIST = """\
- TaskList shows the list, TaskClaim takes what is free, TaskUpdate says how it goes.
"""

INSTRUCTIONS = f"""\
Taskyard keeps a list of tasks that several agents share, and runs commands in the background.

{_LIST}\
- Bash, Agent and Workflow with run_in_background start a job. Its end comes with the answer to a later call of these \
tools, as a <task-notification>: it is automated and no user input. There is no need to poll.
- Some tools here share a name with the client's own (Bash, TaskList, TaskOutput, …). These work on the shared list \
and on jobs that other agents and people see; ids of one are unknown to the other.
"""

INSTRUCTIONS_WITHOUT_COMMANDS = f"""\
Taskyard keeps a list of tasks that several agents share.

{_LIST}\
"""

INSTRUCTIONS_IN_FOREGROUND = f"""\
Taskyard keeps a list of tasks that several agents share, and runs commands.

{_LIST}\
- Bash answers once its command has ended: nothing can run in the background here.
"""
