"""The web page and its API: lists, tasks and jobs of one user in a browser, live.

`routes` is the table of all addresses; `app` checks requests and dispatches them; `site` is the shared state; `channel`
and `streams` send changes; `server` runs it all.
"""
