"""
Teams at work: a plan is read; members are started, followed, replaced, shut down; a team is removed whatever its state.

    plan_file   what is to be done, from a file
    tmux        windows of a terminal multiplexer, opened without a shell
    hiring      members as jobs, in windows of tmux, or inside this process
    leading     the lead's round: who did what, who died, who asks, what is left
    removal     a team's end by force
"""
