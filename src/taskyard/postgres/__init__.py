"""PostgreSQL as the store shared by several hosts: tasks, mail, teams, and jobs (`relay`).

No transaction is open while a caller computes: every decision is made on what was read, sent in one statement,
and refused by the server if what it depends on has changed. So a host whose connection is cut blocks no other.
"""
