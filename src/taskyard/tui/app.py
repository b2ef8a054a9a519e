"""`taskyard tui`: everything together, with its keys, its palette and its farewell."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import replace

from textual import on
from textual.app import SystemCommand
from textual.binding import Binding
from textual.driver import Driver
from textual.theme import BUILTIN_THEMES

from taskyard.clock import now_ms
from taskyard.config import Settings
from taskyard.tui import acts
from taskyard.tui.acting import Acting
from taskyard.tui.foreground import Foreground
from taskyard.tui.frame import footer
from taskyard.tui.help import HelpScreen
from taskyard.tui.keys import KEYS, said
from taskyard.tui.screens import WIDE, DetailScreen, MainScreen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from textual import events
    from textual.screen import Screen

    from taskyard.tui.feed import Feed, Subject
    from taskyard.view.glyphs import Style

#: Colours by the names of the person's own terminal: right on dark and on light ones.
_THEME = replace(BUILTIN_THEMES["ansi-dark"], name="taskyard", accent="ansi_blue")

#: Signals that ask for the view's end: somebody stops it, or the terminal is closed.
_ENDING = (signal.SIGTERM, signal.SIGHUP)

#: What still works while a line is being typed.
_WHILE_TYPING = ("step_back", "quit")


class YardApp(Acting):
    """The terminal view."""

    TITLE = "taskyard"
    ENABLE_COMMAND_PALETTE = True
    BINDINGS = [  # noqa: RUF012  (Textual's own shape)
        Binding(row.keys or "ctrl+b", row.action, row.about, show=False, id=row.id, priority=row.id == "palette")
        for row in KEYS
    ]
    CSS = """
    Screen { background: ansi_default; color: ansi_default; }
    Toast { background: ansi_default; border: solid ansi_blue; padding: 0 1; width: auto; max-width: 60; }
    Toast.-error { border: solid ansi_red; }
    SearchIcon { display: none; }
    #footer, #header { height: 1; }
    """

    def __init__(
        self,
        feed: Feed,
        *,
        settings: Settings | None = None,
        style: Style | None = None,
        now: Callable[[], int] = now_ms,
        keymap: Mapping[str, str] | None = None,
        me: str | None = None,
    ) -> None:
        settings = settings if settings is not None else Settings()
        super().__init__(feed, style=style, now=now, task_rows=settings.task_rows)
        self.me = me
        self.foreground = Foreground(settings.background_key)
        self.keymap = {**(keymap or {}), "to_background": self.foreground.binding}
        self.register_theme(_THEME)
        self.theme = "taskyard"
        self.set_keymap(self.keymap)

    def get_default_screen(self) -> Screen[None]:
        """Everything at once."""
        return self.main

    def on_mount(self) -> None:
        """Show what there is, and listen; also to those who want the view to end."""
        self.begin()
        if not self.is_headless:
            for number in _ENDING:
                asyncio.get_running_loop().add_signal_handler(number, self._end_by, number)

    @on(Driver.SignalResume)
    def draw_again(self) -> None:
        """The terminal was another's meanwhile."""
        self.refresh(layout=True)

    def on_unmount(self) -> None:
        """Listen no longer."""
        self.end()

    def show_newest(self) -> None:
        """Draw what changed."""
        self.foreground.look(self.feed.snapshot)
        super().show_newest()

    def on_resize(self, event: events.Resize) -> None:
        """With room beside the lists, the detail goes back there; without, it comes over them if one is in it."""
        detail, is_wide = self.main.detail, event.size.width >= WIDE
        if is_wide and isinstance(self.screen, DetailScreen):
            subject = self.screen.detail.subject
            self.pop_screen()
            detail.open(subject)
        is_inside = self.screen is self.main and detail.body.has_focus
        self.call_after_refresh(self._resized, detail.subject if is_inside and not is_wide else None)

    def _resized(self, subject: Subject | None) -> None:
        if subject is not None:
            self.open_detail(subject)
        self.main.follow_selection()
        self.after_change()

    def on_descendant_blur(self) -> None:
        """What had the focus may be hidden now, for want of room or of rows: keys go to a list then."""
        self.call_after_refresh(self._keep_focus)

    def _keep_focus(self) -> None:
        if self.is_running and self.screen is self.main and self.main.focused is None:
            rows = self.main.list_of(self.main.active)
            self.go_to(rows if rows.display else self.main.tasks)

    # -- keys --------------------------------------------------------------------------------

    def tell_footer(self) -> None:
        """The pill, what is worth knowing, and the keys that work now."""
        front = self.front
        asks = next(iter(self.main.jobs.asks.values()), "") if not isinstance(front, MainScreen) else ""
        place = "typing" if front.detail.answer.line.has_focus else self.place
        extra = asks or self.foreground.hint
        line = footer(front.snapshot.pill, place, self.keymap, front.size.width, kind=self._kind(), extra=extra)
        front.footer_line.say(line)

    def _kind(self) -> str:
        subject = self.front.detail.subject
        return subject.kind if subject is not None else ""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While a line is being typed, keys are for it."""
        if self.is_typing() and action in {row.action.partition("(")[0] for row in KEYS}:
            return action in _WHILE_TYPING
        if action == "to_background":
            return self.foreground.job is not None and self.foreground.key is not None
        return True

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Everything that can be done here, with its key."""
        for row in KEYS:
            if row.id in ("palette", "up", "down", "left", "right"):
                continue
            keys = said(self.keymap.get(row.id, row.keys))
            yield SystemCommand(f"{row.full} ({keys})", row.about, self._doing(row.action))

    def _doing(self, action: str) -> Callable[[], None]:
        def do() -> None:
            self.call_later(self.run_action, action)

        return do

    def action_help(self) -> None:
        """The keys that work here."""
        self.push_screen(HelpScreen(self.place, self.keymap, self._kind()))

    # -- leaving -----------------------------------------------------------------------------

    async def action_quit(self) -> None:
        """Leave: a job in the foreground goes to the background, and everything goes on."""
        job = self.foreground.job
        if job is None:
            self.exit(self.farewell())
            return
        self.in_thread(
            lambda: acts.to_background_if_alive(self.feed.yard.jobs, job),
            lambda text: self.exit(self.farewell(text)),
        )

    def _end_by(self, number: int) -> None:
        """A signal: the terminal is left as it was found. A second one ends it at once."""
        for one in _ENDING:
            asyncio.get_running_loop().remove_signal_handler(one)
        self.exit(return_code=128 + number)  # a foreground job is in the background as soon as nobody watches it

    def farewell(self, first: str = "") -> str:
        """What is said to one who leaves."""
        running = [job for job in self.main.snapshot.jobs if not job.is_over]
        if not running:
            return first
        many = f"{len(running)} jobs keep running" if len(running) > 1 else f"{running[0].id} keeps running"
        return f"{first} {many}. See `taskyard ps`, or `taskyard tui` again.".strip()
