"""
The list, mail and teams in PostgreSQL, shared by any number of machines.

    store    the verbs
    mirror   what of the list is known here, and since when
    view     a list to plan on, which remembers what was looked at
    holding  who holds what, and who of them is gone
    rows     tasks and leases as rows
    post     mail
    readers  in whose hands it is
    teams    the records of teams, and who of their members is believed to live
"""
