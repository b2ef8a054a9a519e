"""
Common parts of our HTTP servers (MCP over HTTP, web UI, A2A).

`server` starts and stops them, `access` checks hosts, origins and tokens, `limits` bounds connections, requests
and responses.
"""
