"""
The A2A (Agent2Agent) server: offers our agents to other programs as A2A tasks.

The first message of a task starts a background job; the task is the state of that job. `server` checks access
and publishes the card, `handler` implements the protocol's methods, `tasks` reads jobs as tasks, `skills` has
the offered agents and the callers' tokens.

All state is on disk: a task is its job, and exists as long as the job is kept, also across server restarts.
"""
