"""The pages for people: their links work, and they use the glossary's words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.processes import ROOT

PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "example" / "README.md"]
GLOSSARY = (ROOT / "CONTRIBUTING.md").read_text().partition("\n## Glossary\n")[2].partition("\n## ")[0]
REJECTED = [
    word for row in re.findall(r"^\| (?!word|-).*\| ([^|]+) \|$", GLOSSARY, re.MULTILINE) for word in row.split(", ")
]


def prose(page: Path) -> str:
    """Return the page without its code, on one line."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return " ".join(re.sub("`[^`]*`", "`", text.replace(GLOSSARY, "")).split())


def anchors(page: Path) -> set[str]:
    """Return the page's headings, as GitHub's links name them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for target in re.findall(r"\]\(((?!https?:)[\w./#-]+)\)", page.read_text()):
        path, _, anchor = target.partition("#")
        linked = page.parent / path if path else page
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_uses_a_word_that_the_glossary_rejects(page: Path) -> None:
    assert len(REJECTED) > 20
    assert [word for word in REJECTED if re.search(rf"\b{word}\b", prose(page), re.IGNORECASE)] == []
