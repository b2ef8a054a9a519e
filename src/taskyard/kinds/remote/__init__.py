"""
How an agent elsewhere is followed, in the process of its job.

    following     from the first word to the last: begin, poll, tell, end
    line          the connection to its place: lost, made again, shown
    sidecar       where it goes on after a death
    writing       what it said, appended once
    ending        ending it there, and seeing that it ended
"""
