"""Team leadership: read a plan, start, monitor, replace and shut down members, remove a team."""
