"""What members are called, and what they are asked for."""

from __future__ import annotations

import json
import os
from itertools import islice

import pytest

from taskyard.agents.lead.members import DEFAULT_NAMES, MemberSpec, check_names, free_names
from taskyard.errors import BadName
from taskyard.storage import process_registry


@pytest.mark.req("M-01")
def test_names_are_those_wanted_then_ours_and_nobody_living_has_them() -> None:
    home = os.environ["TASKYARD_HOME"]
    with process_registry.register(home, "ada"):
        found = list(islice(free_names(home, "crew", ["lead", "ben"], wanted=["zoe", "ben"]), 3))
    assert found == ["zoe", "cleo", "dan"]
    many = list(islice(free_names(home, "crew", []), 3 * len(DEFAULT_NAMES)))
    assert len(set(many)) == 3 * len(DEFAULT_NAMES)


def test_two_members_never_share_a_folder() -> None:
    assert check_names(["a", "b"]) == ("a", "b")
    with pytest.raises(BadName):
        check_names(["a b", "a-b"])


def test_a_wish_survives_a_file() -> None:
    wish = MemberSpec("crew", "Be kind.", "command", ("sh", "-c", "true"), None, True, "stopped", ("python",))
    assert MemberSpec.from_json(json.loads(json.dumps(wish._asdict()))) == wish
