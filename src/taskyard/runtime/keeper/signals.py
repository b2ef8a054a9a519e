"""
Which signals a keeper hears, and `signal` as the interpreter itself has it: numbers.

Python's module makes an enum of every number and a number of every enum, a dozen calls for each: much of what a
keeper does in its first millisecond. Type checkers see the original.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as signal
else:
    import _signal as signal

#: Keepers outlive terminals and those who press keys in them.
DEAF = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE, signal.SIGTTOU, signal.SIGTTIN, signal.SIGTSTP)

#: What a keeper listens to: a child's end, growth of the output, a wish to end.
HEARD = (signal.SIGCHLD, signal.SIGIO, signal.SIGTERM)

#: All that can be handled or ignored.
ALL = sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})
