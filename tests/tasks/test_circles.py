"""Circles of waiting tasks."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.errors import Cycle
from taskyard.tasks.graph import refuse_cycles

graphs = st.dictionaries(st.sampled_from("abcdef"), st.lists(st.sampled_from("abcdefg"), max_size=4, unique=True))


def reaches_itself(graph: dict[str, list[str]], start: str) -> bool:
    seen: set[str] = set()
    todo = list(graph.get(start, ()))
    while todo:
        node = todo.pop()
        if node not in seen:
            seen.add(node)
            todo += graph.get(node, ())
    return start in seen


def circle_in(graph: dict[str, list[str]], through: set[str] | None = None) -> tuple[str, ...] | None:
    try:
        refuse_cycles(graph, through=through)
    except Cycle as refusal:
        return refusal.path
    return None


@pytest.mark.req("L-06", "L-22")
@given(graphs, st.none() | st.sets(st.sampled_from("abcdef")))
def test_a_circle_is_found_exactly_if_there_is_one_and_its_path_is_real(
    graph: dict[str, list[str]], through: set[str] | None
) -> None:
    path = circle_in(graph, through)
    wanted = set(graph) if through is None else through
    assert (path is not None) == any(reaches_itself(graph, node) for node in wanted)
    if path is not None:
        assert path[0] == path[-1]
        assert all(after in graph[node] for node, after in pairwise(path))
        assert through is None or through & set(path)


@pytest.mark.req("L-06", "L-22")
def test_a_chain_of_fifty_thousand_is_no_circle_until_its_end_meets_its_beginning() -> None:
    chain = {str(number): [str(number + 1)] for number in range(50_000)}
    assert circle_in(chain) is None
    path = circle_in({**chain, "50000": ["0"]})
    assert path is not None
    assert len(path) == 50_002
