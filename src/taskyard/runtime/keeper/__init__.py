"""
The keeper: one small process per job, which runs no one's code.

    __main__    from a request on a descriptor to a keeper, or to a server that forks them
    birth       the job's folder, its lock, its record: seen by nobody before a keeper holds it
    loop        sleeps until the kernel has news: an exit, a message, growth, a deadline
    ladder      TERM, a while, KILL, until the kernel says that nobody is left
    tree        who is below us, whatever they did to get away
    growth      the cap on the output, and how long it has been quiet
    kernel      the few calls that Python does not have
"""
