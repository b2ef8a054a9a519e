"""
The MCP server for many clients at once, over streamable HTTP, on what all servers share (`taskyard.serving`).

    token.py        the secret that every request must bring, and where it is from
    gate.py         what a request must show before the protocol sees it
    callers.py      who is at the other end, for as long as it keeps asking
    claims.py       what they hold: renewed while they ask, given back when they are gone
    serving.py      all of it as one server, from its start to its end
"""
