"""
The jobs of several machines, seen and steered through one database.

    host         who we are to the others: a home on a machine
    summon       see that the relay of this home runs
    life         the relay itself: one process for a home, alive while something of it is to be told
    watching     what happened to the jobs of this home
    forwarding   records, events and notices, from this home into the database
    carrying     what others ask of the jobs of this home, carried out
    asking       asking another home's relay for something
    records      jobs of every home, as the database has them
    shared_*     jobs, notices and events for callers: this home's as ever, the others' through the database
    door         which of them a caller gets, by the setting `store`

Files on a job's own machine are the truth about it, and its keeper knows nothing of databases. The relay can be killed
at any moment: everything it does is found half done by the next, and done.
"""
