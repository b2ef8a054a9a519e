"""Jobs of several hosts, read and controlled through one database.

Each home has one relay process that uploads its jobs, events and notices and carries out requests from other
hosts. Clients read other hosts' jobs from the database and send requests to their relays.

The files on a job's own host are authoritative, and its supervisor does not use the database. The relay can be
killed at any moment: the next one finds and completes everything left half done.
"""
