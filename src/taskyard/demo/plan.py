"""A release in twelve tasks; each is a small piece of real work."""

from __future__ import annotations

import time

from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Step(NamedTuple):
    """One task of the plan."""

    subject: str
    active_form: str
    after: tuple[int, ...]  #: the steps it waits for, counted from 1
    work: str  #: a key of `WORK`
    seconds: float
    first_try: str = ""  #: how its first job goes wrong: it "hangs" or "fails"


PLAN = (
    Step("Freeze the version", "Freezing the version", (), "hash", 0.3),
    Step("Write the changelog", "Writing the changelog", (1,), "pack", 0.4),
    Step("Compile the sources", "Compiling the sources", (1,), "compile", 0.6),
    Step("Check the types", "Checking the types", (1,), "parse", 0.5),
    Step("Build the documentation", "Building the documentation", (2,), "pack", 0.5),
    Step("Run the unit tests", "Running the unit tests", (3,), "primes", 0.5),
    Step("Run the integration tests", "Running the integration tests", (3,), "primes", 0.4, "hangs"),
    Step("Build the wheel", "Building the wheel", (3, 4), "pack", 0.4),
    Step("Measure the speed", "Measuring the speed", (6,), "primes", 0.3, "fails"),
    Step("Sign the wheel", "Signing the wheel", (6, 7, 8), "hash", 0.2),
    Step("Publish the release", "Publishing the release", (5, 9, 10), "hash", 0.3),
    Step("Announce it", "Announcing it", (11,), "pack", 0.2),
)

#: Seconds between two words about how far it is.
_SAY_EVERY = 0.15


def work(kind: str, seconds: float, *, said: Callable[[str], None]) -> str:
    """Do real work of a kind for about so long; what it came to, in words. `said` gets the same on the way."""
    piece, words = WORK[kind]
    began = time.monotonic()
    count, turn, next_word = 0, 0, began + _SAY_EVERY
    while not turn or time.monotonic() < began + seconds:
        count += piece(turn)
        turn += 1
        if time.monotonic() > next_word:
            next_word += _SAY_EVERY
            said(words.format(count=f"{count:,}"))
    return words.format(count=f"{count:,}")


def _compile(turn: int) -> int:
    for source in _sources(turn):
        compile(source, "<demo>", "exec", dont_inherit=True)
    return 1


def _parse(turn: int) -> int:
    import ast

    return sum(1 for source in _sources(turn) for _ in ast.walk(ast.parse(source)))


def _sources(turn: int) -> Sequence[str]:
    """The text of one of our own modules, another one each turn."""
    import os

    folder = os.path.dirname(os.path.dirname(__file__))
    names = sorted(name for name in os.listdir(folder) if name.endswith(".py"))
    with open(os.path.join(folder, names[turn % len(names)]), encoding="utf-8") as file:
        return [file.read()]


def _primes(turn: int) -> int:
    start = turn * 50 + 2
    return sum(
        all(number % divisor for divisor in range(2, int(number**0.5) + 1)) for number in range(start, start + 50)
    )


def _hash(turn: int) -> int:
    import hashlib

    hashlib.sha256(str(turn).encode() * 100_000).hexdigest()
    return 1


def _pack(turn: int) -> int:
    import zlib

    text = "\n".join(_sources(turn)).encode()
    return len(text) - len(zlib.compress(text, 9))


#: Each kind of work: one piece of it, which answers how much it did, and words for the sum.
WORK: dict[str, tuple[Callable[[int], int], str]] = {
    "compile": (_compile, "compiled {count} modules"),
    "parse": (_parse, "looked at {count} nodes of syntax"),
    "primes": (_primes, "found {count} primes"),
    "hash": (_hash, "hashed {count} blocks"),
    "pack": (_pack, "saved {count} bytes"),
}
