"""
The terminal view: tasks, background jobs and one thing in detail, live.

It shows what `taskyard.live` says and computes no order, words or colours of its own. The thread that draws never
reads or writes a file: looking further and acting is done by others, which tell it what came of it.
"""
