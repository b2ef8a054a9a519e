"""
An agent of our own on any model: the engine `model`, by pydantic-ai.

    engine.py       the engine: loads nothing until an agent is run
    providers.py    which model is meant, and what its provider needs
    loop.py         one run: requests, answers, tools, until it has its answer
    patience.py     how long to wait for a provider that has too much to do
    finishing.py    whether an answer is whole
    tools.py        Read, Edit and Write, and the tools of our own MCP server
    files.py        reading and changing files in one folder
"""
