"""The requirements page and the tests say the same."""

from __future__ import annotations

import pytest

from support.reach import surfaces
from support.repo import ROOT, TESTS, python_files, shown
from support.requirements import Promise, Proof, faults, promises, proofs

PAGE = ROOT / "docs" / "reference" / "requirements.md"

#: How many promises each group makes; one that vanishes from the end of a table leaves no gap.
GROUPS = {"L": 22, "B": 14, "O": 9, "N": 8, "K": 8, "T": 5, "H": 2, "M": 4, "C": 2, "U": 5, "X": 2, "Q": 14}


def test_every_delivered_requirement_is_proved_and_every_proof_names_a_requirement() -> None:
    page = promises(PAGE.read_text(encoding="utf-8"))
    tests = [
        proof
        for path in python_files(TESTS)
        if path.name.startswith("test_")
        for proof in proofs(path.read_text(encoding="utf-8"), shown(path))
    ]

    assert faults(page, tests, is_public=reaches_a_surface) == []


def reaches_a_surface(test: str) -> bool:
    module, _, name = test.partition("::")
    return bool(surfaces(ROOT / module, name))


def test_the_page_lists_every_requirement() -> None:
    listed = [promise.id for promise in promises(PAGE.read_text(encoding="utf-8"))]

    assert listed == [f"{group}-{number:02}" for group, count in GROUPS.items() for number in range(1, count + 1)]


@pytest.mark.parametrize(
    ("page", "tests", "fault"),
    [
        ([Promise("L-01", "delivered")], [], "L-01 is delivered, but no test names it"),
        ([Promise("L-01", "planned")], [Proof("t", ("L-09",))], "t names L-09, which is not on the page"),
        (
            [Promise("L-01", "delivered")],
            [Proof("internal", ("L-01",))],
            "L-01 is delivered, but no test reaches it from the CLI, MCP, a screen or `import taskyard`",
        ),
        ([Promise("L-02", "planned")], [], "group L does not count up from 1 without a gap: [2]"),
        ([Promise("L-01", "soon")], [], "L-01 is 'soon', neither delivered nor planned"),
    ],
)
def test_a_disagreement_is_named(page: list[Promise], tests: list[Proof], fault: str) -> None:
    assert faults(page, tests, is_public=lambda test: test != "internal") == [fault]


def test_a_test_that_claims_to_prove_four_things_is_refused() -> None:
    ids = ("L-01", "L-02", "L-03", "L-04")

    assert faults([Promise(name, "planned") for name in ids], [Proof("t", ids)], is_public=lambda _: True) == [
        "t names 4 requirements; at most 3 a test"
    ]


def test_marks_are_read_from_functions_classes_and_modules() -> None:
    source = """
pytestmark = [pytest.mark.serial, pytest.mark.req("L-01")]

@pytest.mark.req("L-02", "L-01")
def test_a(): ...

@pytest.mark.req("M-02")
class TestB:
    @pytest.mark.parametrize("x", [1])
    @pytest.mark.req("M-03")
    async def test_c(self, x): ...

def helper(): ...
"""

    assert proofs(source, "m") == [
        Proof("m::test_a", ("L-01", "L-02")),
        Proof("m::TestB::test_c", ("L-01", "M-02", "M-03")),
    ]
