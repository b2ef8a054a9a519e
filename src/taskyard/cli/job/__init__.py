"""Background jobs on the command line; each verb is a command of its own: `taskyard run`, `ps`, `wait`, `stop`, …"""
