"""
Claude Code as an engine.

    engine.py        the engines `claude` and `claude-stream`: start the program, read its stream, end it
    stream.py        what its lines say: progress, usage, the outcome of a turn
    usage.py         tokens and cost, counted once per message
    limits.py        which errors are rate limits, when they lift, and which can be retried
    permission.py    permission requests as questions, and answers as decisions
    arguments.py     its command line: permission mode, our MCP server
"""
