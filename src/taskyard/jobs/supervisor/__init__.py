"""
One small supervisor process per job, which runs no user code.

It creates the job's folder, holds its lock, starts the command, and sleeps until the kernel reports
an exit, a control message, output growth or a deadline. It terminates the process tree (SIGTERM,
grace, SIGKILL), enforces the output cap, and writes the exit record.
"""
