"""
Agents that run elsewhere: where, by name, and how each place is spoken to.

A backend is one module with one class (`backend.RemoteBackend`). A package of somebody else's adds one by an entry
point of the group `taskyard.remotes`.
"""
