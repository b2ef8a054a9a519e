"""What a monitor does in its own process: hear a source, keep all of it, tell of it at a bounded pace."""
