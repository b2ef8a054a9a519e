"""
PostgreSQL, for what several machines share; no domain words here.

    address      which database, and how it is named to people: without its password
    connection   one connection, set up so that nothing on it waits without end
    pool         statements and short transactions for the threads of a process, tried again while the server is away
    listening    one connection that hears of others' changes
    schema       numbered migrations; who may use which

No transaction is open while a caller thinks: whatever is decided here is decided on what was read, sent in one
statement, and refused by the server if what it rests on has changed. So a machine whose link is cut keeps nobody
waiting.
"""
