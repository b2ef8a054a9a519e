"""
Our own agents for others, over A2A (Agent2Agent): a message is a background job, a task is how that job stands.

    skills.py       what others may have done here: named by the person who serves, never by who asks
    card.py         what the world is told of them
    tokens.py       who may ask: a caller is a name, and a secret in a file
    gate.py         what a request must show before the protocol sees it
    origin.py       where a job is from: kept in its own record, so that tasks survive this server
    book.py         which jobs are tasks, by their records
    letters.py      what was sent to a task after its beginning, each message once
    inbox.py        messages taken in: jobs begun, agents answered
    states.py       how a job stands, in the words of the protocol; pure
    transcript.py   what an agent said and did, as parts
    tasks.py        all of that as the protocol's tasks
    streams.py      a task as it goes on
    handler.py      the protocol's verbs
    serving.py      all of it as one server, from its start to its end

Nothing is kept in memory that is not on disk: a task is its job, and lives as long as that is kept.
"""
