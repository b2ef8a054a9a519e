"""
What our HTTP servers have in common: `mcp_server.http`, `web` and `a2a_server`.

    address.py      where one listens; beyond this machine only if told so
    hosts.py        under which names it may be asked, and from pages of which origin
    token.py        a secret in a file that only its owner can read
    bearer.py       the same secret, as a request brings it
    exchanges.py    requests that are being answered, which may be ended early and then still are answers
    connections.py  deadlines and places for connections
    bounds.py       limits on requests and responses
    server.py       the start-up of all of them, to the end by a signal
"""
