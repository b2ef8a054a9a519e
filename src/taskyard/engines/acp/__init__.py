"""
Agents that speak the Agent Client Protocol, over their stdin and stdout: the engine `acp`.

    engine.py        the engine: loads nothing until an agent is run
    session.py       one run of an agent: hello, a session, turns, the end
    updates.py       what the agent tells in the middle of a turn
    permission.py    what it asks for, and which of its options an answer means
    wire.py          messages over the program's stdin and stdout, bounded
"""
