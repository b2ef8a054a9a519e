"""
Whether two tasks work on the same files, judged by their `paths` alone.

A path names a file, a folder with all below it, or a glob (`*` and `?` within a name, `**` across folders).
Nothing is looked up on disk, so in doubt the answer is yes: one warning too many costs less than two
agents in one file. A relative and an absolute path never overlap.
"""

from __future__ import annotations

import posixpath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def paths_overlap(ours: Iterable[str], theirs: Iterable[str]) -> tuple[str, ...]:
    """What both sides share, each by its narrower name, in our order.

    >>> paths_overlap(["src", "docs/a.md"], ["src/api/*.py", "docs/b.md"])
    ('src/api/*.py',)
    """
    others = list(theirs)
    shared: dict[str, None] = {}
    for path in ours:
        for other in others:
            if _overlap(path, other):
                shared[_narrower(path, other)] = None
    return tuple(shared)


def _overlap(path: str, other: str) -> bool:
    mine, its = _segments(path), _segments(other)
    if (mine[:1] == [""]) != (its[:1] == [""]):
        return False  # one absolute, one relative
    if not _is_glob(path) and not _is_glob(other):
        short = min(len(mine), len(its))
        return mine[:short] == its[:short]
    return _globs_overlap(mine, its)


def _segments(path: str) -> list[str]:
    plain = posixpath.normpath(path.strip())
    absolute = [""] if plain.startswith("/") else []
    return absolute + [part for part in plain.split("/") if part and part != "."]


def _is_glob(text: str) -> bool:
    return "*" in text or "?" in text or "[" in text


def _globs_overlap(mine: list[str], its: list[str]) -> bool:
    """Walk both at once over every pair of positions that can be reached; `**` may stay or step on."""
    seen: set[tuple[int, int]] = set()
    todo = [(0, 0)]
    while todo:
        here = todo.pop()
        if here in seen:
            continue
        seen.add(here)
        i, j = here
        if i == len(mine) or j == len(its):
            if _contains(mine[i:], its) and _contains(its[j:], mine):
                return True
            continue
        if mine[i] == "**":
            todo += [(i + 1, j), (i, j + 1)]
        elif its[j] == "**":
            todo += [(i, j + 1), (i + 1, j)]
        elif _names_meet(mine[i], its[j]):
            todo.append((i + 1, j + 1))
    return False


def _contains(rest: list[str], used_up: list[str]) -> bool:
    """Whether what is left of one path lies below the other, which has been used up.

    `**/x.py` would meet any path at all if that were a folder; a last name with a dot in it is taken for a file.
    """
    if not rest or rest[0] != "**" or set(rest) == {"**"}:
        return True
    return not used_up or "." not in used_up[-1][1:]


def _names_meet(mine: str, its: str) -> bool:
    """Whether one name can match both patterns."""
    if not _is_glob(mine) or not _is_glob(its):
        if mine == its:
            return True
        from fnmatch import fnmatchcase

        return fnmatchcase(mine, its) if _is_glob(its) else fnmatchcase(its, mine)
    # Two patterns that both hold a `*` meet when their fixed beginnings and endings agree. For `?` and `[…]`
    # that is generous, which is the right side to err on.
    return _agree(_fixed(mine), _fixed(its)) and _agree(_fixed(mine[::-1]), _fixed(its[::-1]))


def _fixed(pattern: str) -> str:
    for at, char in enumerate(pattern):
        if char in "*?[]":
            return pattern[:at]
    return pattern


def _agree(one: str, two: str) -> bool:
    return one.startswith(two) or two.startswith(one)


def _narrower(path: str, other: str) -> str:
    if _is_glob(path) != _is_glob(other):
        # A folder is wider than a glob below it; a file is narrower than any glob.
        plain, glob = (other, path) if _is_glob(path) else (path, other)
        return glob if len(_segments(plain)) < len(_segments(glob)) and "**" not in glob else plain
    return path if len(_segments(path)) >= len(_segments(other)) else other
