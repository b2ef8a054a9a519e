"""
The MCP server: the list, the jobs and the mail as tools for any model's client.

    calls.py        one tool call: who asks, what they ask for, the answer, and the notices that ride along
    callers.py      who is at the other end of a connection
    *_tools.py      the tools themselves; their arguments and words are in `arguments.py` and `words.py`
    server.py       all of it as one `MCPServer`

Loaded only by `taskyard mcp`: the SDK below it takes most of a second to import.
"""
