"""The interface of every engine, on one screen: a brief in, news on the way, a last word."""

from __future__ import annotations

from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from typing import Protocol

    class Watcher(Protocol):
        """Whom an engine tells of its work, and asks."""

        def record(self, line: Mapping[str, object]) -> None:
            """A line of the transcript: what was said or done, as data."""
            ...

        def used_tool(self, name: str, given: Mapping[str, object]) -> None:
            """A tool was used."""
            ...

        def used_tokens(self, usage: Mapping[str, object]) -> None:
            """What one answer of the model took: input_tokens, output_tokens, cache_… ; what is no number counts 0.

            A program that tells only what several requests took together reports that as spent_tokens.
            """
            ...

        def costs(self, usd: float) -> None:
            """What all of it has cost so far."""
            ...

        def limited(self, seconds: float, why: str) -> None:
            """Whoever serves the model has too much to do: the next try is so many seconds away."""
            ...

        async def ask(self, question: str) -> str | None:
            """Have somebody answer; None if nobody can any more."""
            ...

        def messages(self) -> AsyncIterator[str]:
            """What is sent to the agent while it works."""
            ...

    class Engine(Protocol):
        """Something that works on a prompt."""

        def check(self, brief: Brief) -> None:
            """Refuse what it could not work on.

            Raises:
                UsageError: says what is missing.
            """
            ...

        async def work(self, brief: Brief, watcher: Watcher) -> Said:
            """Work on it to the end. Being stopped arrives as cancellation."""
            ...


#: What an agent may do without asking, from least to most:
#: ask    read files; every edit and every command needs permission
#: edit   edit files in its folder too; every command needs permission
#: work   edit files in its folder and run commands; what goes beyond needs permission
#: all    everything, outside its folder too, and without the agent program's sandbox
#: Where the engine cannot ask anyone, what needs permission is refused and named in `Said.refused`.
PERMISSIONS = ("ask", "edit", "work", "all")


class Brief(NamedTuple):
    """What an agent is to do, and with what."""

    prompt: str
    cwd: str
    env: Mapping[str, str]
    model: str | None = None
    command: tuple[str, ...] = ()  #: of engines that are programs
    session: str | None = None  #: the conversation to go on with, by the name its engine gave it
    own_tools: bool = True  #: whether an engine that can shall offer it the tools of Taskyard itself
    permissions: str = ""  #: one of PERMISSIONS; "" = the engine's default, `work` where it cannot ask anyone
    reads: tuple[str, ...] = ()  #: folders beside its own that it may read in every mode
    guard: tuple[str, ...] = ()  #: put before the program's command line: a process that ends all that it started


class RateLimit(NamedTuple):
    """The provider refused a request: a quota, a rate limit or overload. Not a failure of the work."""

    provider: str  #: as people know it: anthropic, openai, google; or the program's name
    reason: str  #: what the provider or the program said, one line
    until_ms: int | None = None  #: when it lifts (epoch ms), if the provider said so; else the caller backs off

    @property
    def failure(self) -> str:
        """Why a turn that is not taken again for it failed."""
        words = f"rate-limited by {self.provider or 'its provider'}"
        return self.reason if self.reason.startswith(words) else f"{words}: {self.reason}"


class Said(NamedTuple):
    """The outcome of one turn: its final answer, or why there is none.

    A turn counts as completed only if `is_complete`: the agent ended it normally, nothing it needed was
    refused, and it reports no failure.
    """

    text: str = ""
    error: str = ""
    is_retryable: bool = False  #: a retry may succeed: a cut stream, a server error
    rate_limit: RateLimit | None = None  #: resume the same conversation once it lifts; costs no attempt
    refused: tuple[str, ...] = ()  #: names of tools that were refused for want of permission
    is_session_lost: bool = False  #: the program does not know the conversation that it was to continue

    @property
    def is_complete(self) -> bool:
        """Whether this turn did what it was asked for, as far as the engine can tell."""
        return not self.error and self.rate_limit is None and not self.refused

    @property
    def failure(self) -> str:
        """Why this turn does not count as completed, in one sentence; empty if it does."""
        if self.error:
            return self.error
        if self.rate_limit is not None:
            return self.rate_limit.failure
        return f"refused for want of permission: {', '.join(self.refused)}" if self.refused else ""
