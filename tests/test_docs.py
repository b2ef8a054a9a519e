"""Documentation that leads somewhere: every link inside the repository has a target."""

from __future__ import annotations

import re
from pathlib import Path

from support.repo import ROOT, shown

_LINK = re.compile(r"\[[^\]]*\]\((?!https?:|mailto:)([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def anchors(page: Path) -> set[str]:
    """The names that headings can be reached by, as code hosts make them."""
    headings = _HEADING.findall(_CODE.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def leads_somewhere(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    return target.exists() and (not anchor or target.suffix != ".md" or anchor in anchors(target))


def test_every_link_inside_the_repository_leads_somewhere() -> None:
    broken = [
        f"{shown(page)}: {link}"
        for page in pages()
        for link in _LINK.findall(_CODE.sub("", page.read_text(encoding="utf-8")))
        if not leads_somewhere(page, link)
    ]
    assert broken == []


def test_a_link_to_a_missing_page_or_heading_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Who is trusted?\n", encoding="utf-8")

    found = [leads_somewhere(page, link) for link in ("page.md", "#who-is-trusted", "#nobody", "gone.md")]

    assert found == [True, True, False, False]


def test_a_decision_fits_on_one_page() -> None:
    long = [shown(page) for page in (ROOT / "docs" / "adr").glob("*.md") if len(page.read_text("utf-8").split()) > 500]

    assert long == []
