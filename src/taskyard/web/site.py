"""What every route has at hand: the yard, what is kept in view, who listens, what was counted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from taskyard.app import Yard
from taskyard.live.showing import Live
from taskyard.runtime.notice import PERSON
from taskyard.web.assets import Asset
from taskyard.web.channel import Numbers
from taskyard.web.event_bell import EventBell
from taskyard.web.lists import Lists
from taskyard.web.metrics import Metrics
from taskyard.web.threads import Threads

#: Streams at once: each is a connection that stays open.
MOST_STREAMS = 400


class Options(NamedTuple):
    """How a page is served."""

    allow_actions: bool = False
    everywhere: bool = False  #: jobs of every project, not only of the one it was started in
    heartbeat: float = 15.0  #: seconds after which a silent stream says that it is there
    patience: float = 60.0  #: seconds a listener may take to read what it was sent


class Site:
    """One server's page and its API."""

    def __init__(self, yard: Yard, assets: dict[str, Asset], options: Options) -> None:
        """In a running event loop."""
        loop = asyncio.get_running_loop()

        def wake(what: Callable[[], None]) -> None:
            try:
                loop.call_soon_threadsafe(what)
            except RuntimeError:
                pass  # the loop is closed: nobody listens any more

        self.yard = yard
        self.options = options
        self.assets = assets
        self.numbers = Numbers()
        self.threads = Threads(yard)
        self.live = Live(yard, everywhere=options.everywhere)
        self.lists = Lists(yard, self.live, self.numbers, self.threads, wake)
        self.metrics = Metrics()
        self.events = EventBell(yard, wake)

    @property
    def person(self) -> str:
        """In whose name this server acts."""
        return self.yard.agent or PERSON

    @property
    def is_full(self) -> bool:
        """Whether nobody else can listen."""
        return self.metrics.streams >= MOST_STREAMS

    def close(self) -> None:
        """Look at nothing any more."""
        self.events.close()
        self.lists.close()
        self.live.close()
