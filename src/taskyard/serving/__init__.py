"""
What servers of ours over HTTP have in common: the tools for models (`mcp_server.http`) and the page (`web`).

    address.py      where one listens; beyond this machine only if told so
    hosts.py        under which names it may be asked, and from pages of which origin
    token.py        a secret in a file that only its owner can read
    bearer.py       the same secret, as a request brings it
    exchanges.py    requests that are being answered, which may be ended early and then still are answers
    connections.py  whoever holds one must use it
    server.py       one server, from its start to its end by a signal
"""
