"""Values as people type them."""

from __future__ import annotations

import pytest

from taskyard.cli import parser
from taskyard.errors import UsageError

pytestmark = pytest.mark.req("T-05")


@pytest.mark.parametrize(
    ("text", "expected"), [("90", 90), ("90s", 90), ("30m", 1800), ("1h30m", 5400), ("1.5h", 5400), ("2D", 172_800)]
)
def test_a_duration_is_read_in_seconds(text: str, expected: float) -> None:
    assert parser.seconds(text) == expected


@pytest.mark.parametrize("text", ["", "0", "-5", "m", "1h30", "5x", "1..2s", "1e9", "9999999d", "٣m"])
def test_what_is_no_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match="30m"):
        parser.seconds(text)


def test_ids_may_have_a_number_sign_and_commas() -> None:
    assert parser.id_list("1,#2, 3") == ["1", "2", "3"]
    assert parser.task_id("#7") == "7"


@pytest.mark.parametrize("text", ["", ",", "x", "1,x", "01", "##1", "-1"])
def test_what_is_no_id_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parser.id_list(text)


def test_a_pair_is_json_where_it_can_be() -> None:
    assert parser.metadata_pair("a=1") == ("a", 1)
    assert parser.metadata_pair('a={"b": [null]}') == ("a", {"b": [None]})
    assert parser.metadata_pair("a=b=c") == ("a", "b=c")
    assert parser.metadata_pair("a=null") == ("a", None)
    with pytest.raises(UsageError):
        parser.metadata_pair("a")


def test_an_external_reference_keeps_its_address_whole() -> None:
    assert parser.external_ref("github:42") == {"system": "github", "id": "42"}
    assert parser.external_ref("jira:A-1:https://x.org/A-1")["url"] == "https://x.org/A-1"
    with pytest.raises(UsageError):
        parser.external_ref("github")
