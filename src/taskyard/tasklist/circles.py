"""Tasks that would wait for each other for ever: found in time linear to their number, however many there are."""

from __future__ import annotations

from taskyard.errors import Cycle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence


def refuse_circles(waits: Mapping[str, Sequence[str]], *, through: Container[str] | None = None) -> None:
    """Refuse a circle in who waits for whom; with `through`, only one with a member of it.

    Raises:
        Cycle: there is one; its path begins and ends with the same task.
    """
    core = _core(waits)
    if through is None:
        if core:
            raise Cycle(_any_circle(core))
        return
    for node in core:
        if node in through and (path := _way_back(node, core)):
            raise Cycle(path)


def cut_circles(parents: Mapping[str, str]) -> dict[str, str]:
    """Of each circle in who is part of whom, the first given and its parent: without those there is none."""
    place = {node: number for number, node in enumerate(parents)}
    cut: dict[str, str] = {}
    walked: dict[str, str] = {}  # by node: from where the walk began that came by
    for start in parents:
        node = start
        while node in parents and node not in walked:
            walked[node] = start
            node = parents[node]
        if node in parents and walked[node] == start:
            circle = [node]
            while (after := parents[circle[-1]]) != node:
                circle.append(after)
            first = min(circle, key=place.__getitem__)
            cut[first] = parents[first]
    return cut


def _core(waits: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """What is left after taking away, again and again, everyone who waits for nobody left.

    Each who is left waits for another who is left: a circle, or somebody on the way to one.
    """
    left = {node: [after for after in afters if after in waits] for node, afters in waits.items()}
    waiting: dict[str, list[str]] = {}
    for node, afters in left.items():
        for after in afters:
            waiting.setdefault(after, []).append(node)
    count = {node: len(afters) for node, afters in left.items()}
    free = [node for node, number in count.items() if not number]
    while free:
        gone = free.pop()
        del left[gone]
        for node in waiting.get(gone, ()):
            count[node] -= 1
            if not count[node]:
                free.append(node)
    return {node: [after for after in afters if after in left] for node, afters in left.items()}


def _any_circle(core: Mapping[str, Sequence[str]]) -> list[str]:
    """Walk on until we come to where we have been."""
    node = next(iter(core))
    place: dict[str, int] = {}
    path: list[str] = []
    while node not in place:
        place[node] = len(path)
        path.append(node)
        node = core[node][0]
    return [*path[place[node] :], node]


def _way_back(start: str, core: Mapping[str, Sequence[str]]) -> list[str] | None:
    """The shortest path from `start` to itself."""
    came_from: dict[str, str] = {}
    here = [start]
    while here:
        following: list[str] = []
        for node in here:
            for after in core[node]:
                if after == start:
                    return _path(start, node, came_from)
                if after not in came_from:
                    came_from[after] = node
                    following.append(after)
        here = following
    return None


def _path(start: str, last: str, came_from: Mapping[str, str]) -> list[str]:
    path = [start, last] if last != start else [start]
    while path[-1] != start:
        path.append(came_from[path[-1]])
    if len(path) == 1:
        path.append(start)
    return path[::-1]
