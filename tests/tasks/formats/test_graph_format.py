"""Pictures of dependencies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.tasks.model import Task
from taskyard.tasks.transfer import export

HOSTILE = 'a"] --> x; \\" } <script> `b` #quot; %% \n end'


@pytest.mark.req("L-22")
def test_dot_draws_blockers_and_parts_and_quotes_what_is_hostile() -> None:
    parent = {"taskyard": {"parent": "1"}}
    text = export([Task("1", HOSTILE), Task("2", "B", blocked_by=("1",), metadata=parent)], "dot", list_name="r")
    assert text.splitlines()[0] == 'digraph "r" {'
    assert '  "1" -> "2";' in text
    assert '  "1" -> "2" [style=dotted, arrowhead=none];' in text
    label = text.splitlines()[3]
    assert label.startswith('  "1" [label="#1 a\\"] --> x; \\\\\\" } <script>')
    assert len(text.splitlines()) == 8


@pytest.mark.req("L-22")
@given(st.text(max_size=120).filter(lambda text: bool(text.strip())))
def test_no_subject_breaks_out_of_a_mermaid_label(subject: str) -> None:
    first, label, *rest = export([Task("1", subject), Task("2", "B", blocked_by=("1",))], "mermaid").split("\n")
    assert first == "flowchart LR"
    assert label.startswith('  t1["#35;1 ')
    assert label.endswith('"]:::pending')
    assert not set(label[6:-13]) & set('"`<>[]{}|\\&%\n')
    assert rest[1] == "  t1 --> t2"
