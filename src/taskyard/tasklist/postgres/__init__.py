"""
The list in PostgreSQL, shared by any number of machines.

    store    the verbs
    mirror   what of the list is known here, and since when
    view     a list to plan on, which remembers what was looked at
    rows     tasks and leases as rows
"""
