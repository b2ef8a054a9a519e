"""MCP servers as monitors hear them, by the official client; loaded by those alone who ask for one."""
