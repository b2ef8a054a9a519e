"""The terminal view: tasks, background jobs and one item in detail, live.

It shows the snapshots of `taskyard.ui.live` and decides no order, wording or colours of its own. The drawing thread
never reads or writes a file: other threads load details and act, and report the result to it.
"""
