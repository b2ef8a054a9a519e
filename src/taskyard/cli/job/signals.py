"""Signals as something to wait for: none of them interrupts what is being done, none is missed."""

from __future__ import annotations

import os
import signal

#: What concerns somebody who watches a job: to end, that the terminal is gone, has another size, or is wanted back.
_HEARD = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGWINCH,
    signal.SIGTSTP,
    signal.SIGCONT,
)


class Signals:
    """While it is open, these signals only make `fd` readable; afterwards everything is as it was."""

    def __init__(self) -> None:
        self.fd, self._theirs = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def __enter__(self) -> Signals:
        self._fd_before = signal.set_wakeup_fd(self._theirs, warn_on_full_buffer=False)
        self._before = {number: signal.signal(number, _noted) for number in _HEARD if not _is_ignored(number)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._fd_before)
        os.close(self.fd)
        os.close(self._theirs)

    def read(self) -> list[int]:
        """Those that came since last asked, in order."""
        try:
            return list(os.read(self.fd, 4096))
        except BlockingIOError:
            return []

    def suspend(self) -> None:
        """Stop this process, as Ctrl+Z asked, until somebody lets it go on."""
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, _noted)


def _is_ignored(number: int) -> bool:
    """Whether whoever started us wants it ignored, as `nohup` and shells without job control do."""
    return signal.getsignal(number) is signal.SIG_IGN


def _noted(*_: object) -> None:
    """The number is in the pipe already."""
