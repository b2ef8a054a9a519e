"""
The page, and the API behind it: lists, tasks and jobs of one user in a browser, live.

    routes.py       every address there is, in one table
    values.py       what requests may bring, by kinds
    looking.py      lists, snapshots, one task, one job
    printed.py      what a job printed
    streams.py      what goes on: a list, an output, events of jobs (sse.py: how it is sent)
    channel.py      the changes of one list, worked out and encoded once for all who look at it
    lists.py        the lists somebody looks at
    event_bell.py   rings when something happens to a job
    acting.py       what can be done, where that is allowed
    pages.py        the page and its files (assets.py), health and metrics (metrics.py)
    described.py    the API described, for programs (openapi.py, schemas.py) and people
    app.py          what a request must show, and how it is answered (answers.py)
    site.py         what every route has at hand (threads.py)
    serving.py      all of it as one server, from its start to its end
"""
