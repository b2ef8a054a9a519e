"""
What screens look at: snapshots of lists and jobs (`taskyard.view`), kept up to date by one thread.

    job_feed.py     every job of this user, and what each printed last
    list_feed.py    one list: its tasks, when they were done, its team
    showing.py      both as snapshots, by one thread
    watched.py      one list that somebody watches, for whoever listens
    output.py       what a job printed, in windows that fit a screen
"""
