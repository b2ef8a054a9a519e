"""The MCP server: the task list, jobs and mail as tools for any model's client.

`calls` handles one tool call, `callers` resolves its caller, the `*_tools` modules have the tools, `server` and `http`
run it. Loaded only by `taskyard mcp`: importing the SDK takes most of a second.
"""
