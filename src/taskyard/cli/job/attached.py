"""
Watching a job from a terminal: its output as it comes, keys for it, one key that moves it to the background.

The command does not notice any of it: it runs under its keeper and writes to its file, watched or not.

    Ctrl+B (or another key)     we leave, the job goes on; its end will be told by a notice
    Ctrl+C, SIGTERM             the job is stopped, with proof; once more, without waiting for it
    the terminal goes away      as Ctrl+B; SIGHUP says so, or a write that fails
    a closed pipe               the job is stopped: nobody reads it any more
"""

from __future__ import annotations

import os
import select
import signal
import time

from taskyard.cli.hang_up import is_lost, mute_lost
from taskyard.cli.job.job_input import JobInput
from taskyard.disk.inotify import Inotify
from taskyard.errors import BackgroundDisabled, TaskyardError
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.keeper.others import send
from taskyard.runtime.waiting import keeper_pidfd
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.cli.job.keyboard import Keyboard
    from taskyard.cli.job.live_output import LiveOutput
    from taskyard.cli.job.signals import Signals
    from taskyard.runtime.jobs import Jobs
    from taskyard.runtime.model import Job

#: Without file events, output is looked for this often, in seconds.
_BLIND_LOOK = 0.1

#: A shell does not tell a running program that it is in the foreground again: so often we look, in seconds.
_FOREGROUND_LOOK = 0.5

#: How much longer than its grace a stop may take before we say that it did not succeed.
_BEYOND = 8.0


class Seen(NamedTuple):
    """How watching a job ended."""

    job: Job
    signal: int = 0  #: that made us leave
    moved: bool = False  #: a person sent it to the background


class Attached:
    """One job, watched from here."""

    def __init__(
        self,
        jobs: Jobs,
        job: Job,
        *,
        signals: Signals,
        keyboard: Keyboard,
        live: LiveOutput,
        hint: str = "",
        reads: bool = False,
    ) -> None:
        """Watch `job`.

        Args:
            jobs: Where it is.
            job: As it was started.
            signals: Those that came, since before it was started.
            keyboard: Where keys and input come from.
            live: Where its output goes.
            hint: Which key moves it to the background, in words.
            reads: Whether it reads what comes from our standard input.
        """
        self._jobs, self._job = jobs, job
        self._folder = JobFolder(jobs.home, job.id)
        self._signals, self._keyboard, self._live = signals, keyboard, live
        self._hint, self._reads = hint, reads
        self._input = JobInput(jobs.home, job.id)
        self._look_at = 0.0
        self._input_is_over = False
        self._stops, self._signal, self._gives_up = 0, 0, float("inf")
        self._is_done = self._moved = False

    def watch(self) -> Seen:
        """Stay until the job is over, or we are to leave it."""
        try:
            with self._keyboard:
                self._stay()
        except BrokenPipeError:
            self._jobs.stop(self._job.id)
            raise
        except BaseException:
            self._to_background()
            raise
        finally:
            self._input.close()
            self._live.leave()
        return Seen(self._jobs.wait(self._job.id, timeout=0.0 if self._is_done else _BEYOND), self._signal, self._moved)

    def _stay(self) -> None:
        """Until it is over and shown; the terminal may go away meanwhile, which is heard or found."""
        while True:
            try:
                self._follow()
                while not self._is_done and self._live.show():
                    pass
                return
            except OSError:
                if not mute_lost():
                    raise
                self._hang_up()

    def _follow(self) -> None:
        """Until the keeper is gone, or we are."""
        poll = select.poll()
        poll.register(self._signals.fd, select.POLLIN)
        events = _events(self._folder)
        if events is not None:
            poll.register(events.fd, select.POLLIN)
        try:
            while not self._is_done and (keeper := keeper_pidfd(self._folder)) is not None:
                poll.register(keeper, select.POLLIN)
                try:
                    self._until_gone(poll, events, keeper)
                finally:
                    poll.unregister(keeper)
                    os.close(keeper)
        finally:
            if events is not None:
                events.close()

    def _until_gone(self, poll: select.poll, events: Inotify | None, keeper: int) -> None:
        while not self._is_done:
            more = self._live.show()
            self._live.tell_news()
            self._tell_status()
            self._listen(poll)
            pipe = self._input.listen(poll)
            patience = 0.0 if more else self._patience(blind=events is None)
            ready = {fd for fd, _ in poll.poll(patience * 1000)}
            if pipe is not None:
                poll.unregister(pipe)
            if events is not None and events.fd in ready:
                events.read()
            for number in self._signals.read():  # before any key: what came first, such as a new size, goes first
                self._heard(number)
            if 0 in ready and not self._is_done:
                self._typed(self._keyboard.read())
            elif pipe is None or pipe in ready:
                self._input.go_on()
            self._is_done = self._is_done or time.monotonic() > self._gives_up
            if keeper in ready:
                return

    def _listen(self, poll: select.poll) -> None:
        """Read standard input if it means something to us, and what was read before was taken."""
        reads = self._reads and not self._input.is_closed
        wanted = (self._keyboard.is_on or reads) and self._input.is_taken and not self._input_is_over
        if wanted:
            poll.register(0, select.POLLIN)
            return
        try:
            poll.unregister(0)
        except KeyError:
            pass  # it was not listened to

    def _patience(self, *, blind: bool) -> float:
        now = time.monotonic()
        moments = [self._gives_up, self._input.next_offer]
        moments.append(self._look_at if self._keyboard.is_elsewhere else self._live.next_drawing)
        if blind:
            moments.append(now + _BLIND_LOOK)
        return min(max(min(moments) - now, 0.0), 3600.0)

    def _tell_status(self) -> None:
        """Say how it stands, but not into what a shell shows after it put us into the background."""
        if self._keyboard.is_elsewhere and time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + _FOREGROUND_LOOK
            self._keyboard.take()
        if not self._keyboard.is_elsewhere:
            self._live.draw_status(*self._keys())

    def _keys(self) -> tuple[str, ...]:
        """Which keys do what, in words."""
        if self._stops:
            return ("stopping; Ctrl+C again does not wait",)
        return (self._hint, "Ctrl+C stops it") if self._keyboard.is_on else ()

    # -- input ---------------------------------------------------------------------------------

    def _typed(self, data: bytes) -> None:
        """Keys, or what comes through a pipe: ours, or the job's."""
        if not data:
            self._input_is_over = True
            if is_lost(0):
                self._hang_up()
                return
            if self._reads and self._keyboard.how != "raw":
                self._input.end()
            return
        before, leave = self._keyboard.split(data)
        if self._reads and before:
            how = "keys" if self._keyboard.how == "raw" else "lines" if self._keyboard.is_on else "poured"
            self._input.take(before, how=how)
        if leave and self._to_background(tell_person=True):
            self._moved = self._is_done = True

    # -- leaving -------------------------------------------------------------------------------

    def _heard(self, number: int) -> None:
        if number in (signal.SIGINT, signal.SIGTERM):
            self._stop(number)
        elif number == signal.SIGHUP:
            self._hang_up()
        elif number == signal.SIGWINCH and self._live.has_screen:
            self._resize()
        elif number == signal.SIGTSTP:
            self._live.leave()
            self._keyboard.give_back()
            self._signals.suspend()
            self._keyboard.take()
        elif number == signal.SIGCONT:
            self._keyboard.take()

    def _hang_up(self) -> None:
        """The terminal is gone, or whoever says so wants us to act like it; the kernel may say it, too."""
        mute_lost()
        if self._signal != signal.SIGHUP:
            self._signal = signal.SIGHUP
            if self._to_background():
                self._is_done = True
            else:
                self._stop(signal.SIGHUP)

    def _stop(self, number: int) -> None:
        """End the job; asked again, at once; asked a third time, leave it as it is."""
        self._signal = self._signal or number
        self._stops += 1
        by = "Ctrl+C" if number == signal.SIGINT else signal.Signals(number).name
        wish: dict[str, object] = {"do": "stop", "by": by}
        send(self._folder, wish if self._stops == 1 else {**wish, "grace": 0})
        self._gives_up = time.monotonic() + (self._job.grace if self._stops == 1 else 0.0) + _BEYOND
        self._is_done = self._stops > 2
        self._live.draw_soon()

    def _to_background(self, *, tell_person: bool = False) -> bool:
        """Let the job go on without us; False if it may not, or is over."""
        try:
            return self._jobs.to_background(self._job.id)
        except BackgroundDisabled as error:
            if tell_person:
                self._live.say(f"Error: {error}")
        except TaskyardError:
            pass  # it is over, or its keeper does not answer
        return False

    def _resize(self) -> None:
        from taskyard.cli.job.keyboard import window

        if (size := window()) is not None:
            send(self._folder, {"do": "size", "rows": size[0], "columns": size[1]})


def _events(folder: JobFolder) -> Inotify | None:
    """What tells of growth; None where there are no more of them, and somebody has to look."""
    try:
        events = Inotify()
    except OSError:
        return None
    try:
        events.add(folder.path)
    except OSError:
        events.close()
        return None
    return events
