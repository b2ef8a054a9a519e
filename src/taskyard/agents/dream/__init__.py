"""Memory consolidation ("dreams"): tidy an agent's memory folder from its past sessions.

`schedule` decides whether a dream is due, `sources` finds past sessions, `run` lets an engine work on a
staged copy, and `staging` swaps the result in and can undo it. The job kind is `taskyard.agents.dream.kind`.
"""
