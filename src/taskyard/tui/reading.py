"""The app's ears: snapshots as they come, outputs as they grow, and everything that takes time in other threads."""

from __future__ import annotations

import contextlib
from typing import TypeVar

from textual.app import App
from textual.message import Message

from taskyard.clock import elapsed, now_ms
from taskyard.errors import TaskyardError
from taskyard.harmless import safe
from taskyard.live.output import Reader
from taskyard.tui.detail import CONTEXT, DetailPane
from taskyard.tui.feed import known_of
from taskyard.tui.output_view import OutputView
from taskyard.tui.rows import next_age_change
from taskyard.tui.screens import DetailScreen, MainScreen, YardScreen
from taskyard.tui.tail import News, Tail
from taskyard.view.glyphs import Style

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from textual.timer import Timer

    from taskyard.live.output import Window
    from taskyard.tui.feed import Feed, Subject
    from taskyard.view.snapshot import Snapshot

Result = TypeVar("Result")

#: Seconds between two drawings of new snapshots, and between two steps of the spinner.
_DRAW_EVERY = 0.1
SPIN_EVERY = 0.25

#: Seconds a selection must rest before its output is read: who runs down a list wants none of them.
_REST = 0.05

#: Lines read at once by one who scrolls back.
_MORE_LINES = 1_000


class NewSnapshot(Message):
    """There is a newer one; of several that wait, one is enough."""

    def can_replace(self, message: Message) -> bool:
        """Those before it need not be looked at."""
        return isinstance(message, NewSnapshot)


class Told(Message):
    """Something was read of an output."""

    def __init__(self, pane: DetailPane, news: News) -> None:
        super().__init__()
        self.pane, self.news = pane, news


class Reading(App[str]):
    """What is shown, kept up to date."""

    def __init__(self, feed: Feed, *, style: Style | None = None, now: Callable[[], int] = now_ms, task_rows: int = 10):
        super().__init__(ansi_color=True)  # told at once: it decides how NO_COLOR is respected
        self.feed = feed
        self.style = style if style is not None else Style(colour=True)
        self.now = now
        self.main = MainScreen(style=self.style, now=now, task_rows=task_rows)
        self.drawings = 0  #: snapshots that were drawn
        self._tails: dict[DetailPane, Tail] = {}
        self._resting: dict[DetailPane, Timer] = {}
        self._told: tuple[str, ...] = ()
        self._drawn_at = -1.0
        self._later: Timer | None = None
        self._ticker: Timer | None = None
        self._silence: Callable[[], None] | None = None

    # -- snapshots ---------------------------------------------------------------------------

    def begin(self) -> None:
        """Listen, and show what there is."""
        self._silence = self.feed.listen(self._heard)
        self.show_newest()

    def _heard(self, _: Snapshot) -> None:
        self.post_message(NewSnapshot())

    def end(self) -> None:
        """Listen no longer."""
        if self._silence is not None:
            self._silence()
        for tail in self._tails.values():
            tail.close()

    def on_new_snapshot(self) -> None:
        """At most ten times a second."""
        rest = self._drawn_at + _DRAW_EVERY - elapsed()
        if rest <= 0:
            self.show_newest()
        elif self._later is None:
            self._later = self.set_timer(rest, self.show_newest)

    def show_newest(self) -> None:
        """Draw what changed."""
        self._later, self._drawn_at = None, elapsed()
        self.drawings += 1
        snapshot = self.feed.snapshot
        for problem in snapshot.problems:
            if problem not in self._told:
                self.notify(safe(problem), severity="warning", markup=False, timeout=8)
        self._told = snapshot.problems
        for screen in self.yard_screens():
            screen.show(snapshot)
        self.after_change()

    def after_change(self) -> None:
        """The footer, and the next moment at which time alone changes something."""
        if self.screen_stack:  # else it is being closed
            self.tell_footer()
        self.plan_tick()

    def tell_footer(self) -> None:
        """What the footer says; the app knows the keys."""
        raise NotImplementedError

    def yard_screens(self) -> Iterator[YardScreen]:
        """Those that are there, from the bottom."""
        for screen in self.screen_stack:
            if isinstance(screen, YardScreen):
                yield screen

    @property
    def front(self) -> YardScreen:
        """The one that is seen, or would be without what lies over it."""
        return next(reversed(list(self.yard_screens())), self.main)

    # -- time --------------------------------------------------------------------------------

    def plan_tick(self) -> None:
        """One timer: for the spinner, or for the next moment at which something reads differently."""
        if self._ticker is not None:
            self._ticker.stop()
        if not self.screen_stack:
            return
        if isinstance(self.screen, MainScreen) and self.screen.spins:
            self._ticker = self.set_timer(SPIN_EVERY, self._spin)
            return
        now = self.now()
        waits = [60_000 - now % 60_000, next_age_change(self.main.moments(), now) or 60_000]
        if isinstance(self.screen, DetailScreen):
            waits.append(1_000 if self.screen.detail.tab == 1 else 60_000)
        self._ticker = self.set_timer(min(waits) / 1000 + 0.005, self._tick)

    def _spin(self) -> None:
        self.main.turn_spinner()
        if self.main.turns % round(1 / SPIN_EVERY) == 0:
            self._tick()
        else:
            self.plan_tick()

    def _tick(self) -> None:
        for screen in self.yard_screens():
            screen.tick()
        self.after_change()

    # -- other threads -----------------------------------------------------------------------

    def in_thread(self, work: Callable[[], Result], then: Callable[[Result], None], *, group: str = "") -> None:
        """Have something done that may take a while; `then` gets what came of it. A group has one at a time."""

        def run() -> None:
            try:
                found = work()
            except TaskyardError as error:
                self._from_thread(self.say_error, str(error))
            except OSError as error:
                self._from_thread(self.say_error, error.strerror or str(error))
            else:
                self._from_thread(then, found)

        self.run_worker(run, thread=True, group=group or "acts", exclusive=bool(group), exit_on_error=False)

    def _from_thread(self, do: Callable[[Result], None], what: Result) -> None:
        with contextlib.suppress(RuntimeError):  # the view is closed: nobody wants to know
            self.call_from_thread(do, what)

    def say(self, text: str) -> None:
        """Something went well."""
        self.notify(safe(text, lines=True), markup=False, timeout=4)

    def say_error(self, text: str) -> None:
        """Something did not, in the words of the command line."""
        self.notify(f"Error: {safe(text, lines=True)}", severity="error", markup=False, timeout=8)

    # -- outputs -----------------------------------------------------------------------------

    def on_detail_pane_reads(self, event: DetailPane.Reads) -> None:
        """A pane shows something else, or wants to know more of it."""
        pane = event.pane
        if event.subject is not None:
            subject: Subject = event.subject
            self.in_thread(
                lambda: known_of(self.feed, subject, self.now()),
                lambda known: pane.learn(subject, known),
                group=f"known {pane.screen.id}",
            )
        if event.output is not None:
            if (tail := self._tails.pop(pane, None)) is not None:
                tail.close()
            if (resting := self._resting.pop(pane, None)) is not None:
                resting.stop()
            if event.output:
                job = event.output
                self._resting[pane] = self.set_timer(_REST, lambda: self._read_on(pane, job))

    def _read_on(self, pane: DetailPane, job: str) -> None:
        if (tail := self._tails.pop(pane, None)) is not None:
            tail.close()
        if pane.is_attached:
            self._tails[pane] = Tail(self.feed.yard.home, job, lambda news: self.post_message(Told(pane, news)))

    def on_told(self, event: Told) -> None:
        """Lines came."""
        if event.pane.is_attached:
            event.pane.hear(event.news)

    def on_output_view_wanted(self, event: OutputView.Wanted) -> None:
        """Lines that are not in hand."""
        pane = self.front.detail
        view, job = pane.output, pane.job
        if job is None:
            return
        if event.what == "tail":
            self._read_on(pane, job.id)
            return
        reader, kept = Reader(self.feed.yard.home, job.id), view.kept
        wishes: dict[str, tuple[Callable[[], Window], Callable[[Window], None]]] = {
            "before": (lambda: reader.before(kept.start, _MORE_LINES), view.put_before),
            "after": (lambda: reader.after(kept.end), view.add_after),
            "head": (lambda: reader.after(0), lambda window: view.begin(window, top=window.start)),
        }
        work, then = wishes[event.what]
        self.in_thread(work, lambda window: then(window) if self._is_shown(pane, job.id) else None, group="output")

    @staticmethod
    def _is_shown(pane: DetailPane, job_id: str) -> bool:
        """Whether what was read is still wanted."""
        return pane.is_attached and pane.job is not None and pane.job.id == job_id

    def find_in_output(self, text: str, backwards: bool) -> None:
        """The next line with `text` in it, in the file and not only among the lines in hand."""
        pane = self.front.detail
        view, job = pane.output, pane.job
        if job is None or not text:
            return
        reader = Reader(self.feed.yard.home, job.id)
        is_first = view.found_at is None or view.found != text
        start = self._start_of_search(view, backwards, is_first=is_first)
        view.found = text

        def look() -> tuple[int, Window] | None:
            found = reader.find(text, start, backwards=backwards)
            if found is None and is_first:
                found = reader.find(text, start, backwards=not backwards)
            if found is None:
                return None
            before = reader.before(found, CONTEXT).start if found else 0
            return found, reader.after(before)

        def show(found: tuple[int, Window] | None) -> None:
            if not self._is_shown(pane, job.id) or view.found != text:
                return  # something else is wanted by now
            if found is None:
                where = " in this output" if is_first else " above" if backwards else " below"
                self.notify(f"No {'' if is_first else 'more '}{safe(text)!r}{where}.", markup=False)
                view.refresh()
                return
            view.begin(found[1], top=found[0])

        self.in_thread(look, show, group="output")

    def _start_of_search(self, view: OutputView, backwards: bool, *, is_first: bool) -> int:
        """From what is seen, or from the line after the last match, or before it."""
        lines = view.kept.lines
        if is_first or view.found_at is None:
            return lines[view.first_seen()].offset if lines else 0
        if backwards:
            return view.found_at
        after = view.kept.place_of(view.found_at) + 1
        return lines[after].offset if after < len(lines) else view.kept.end
