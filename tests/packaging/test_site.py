"""The pages as a site: `make docs` builds it, and it can be read without a server or a network."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.support.processes import LIMIT_SECONDS, ROOT


class Links(HTMLParser):
    """The ids of a page, what it loads, and where it links to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.loads: set[str] = set()
        self.links: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect one tag."""
        values = {name: value or "" for name, value in attrs}
        self.ids.add(values.get("id", ""))
        if tag == "a":
            self.links.add(values.get("href", ""))
        else:
            self.loads |= {values[name] for name in ("src", "href") if name in values}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Links]:
    return {path: Links(path.read_text()) for path in site.rglob("*.html") if path.name != "404.html"}


def test_every_page_of_the_repository_is_on_the_site(site: Path, pages: dict[Path, Links]) -> None:
    for path in (ROOT / "docs").rglob("*.md"):
        assert site / path.relative_to(ROOT / "docs").with_suffix(".html") in pages
    front = pages[site / "index.html"]
    for path in pages.keys() - {site / "search.html", site / "index.html"}:
        assert path.relative_to(site).as_posix() in front.links, "the menu leads to every page"


def test_no_page_loads_anything_from_another_host(pages: dict[Path, Links]) -> None:
    assert {address for page in pages.values() for address in page.loads if re.match("(https?:)?//", address)} == set()


def test_the_pictures_are_shown_and_come_from_no_other_host(site: Path, pages: dict[Path, Links]) -> None:
    pictures = sorted((ROOT / "docs" / "images").glob("*.svg"))
    shown = {(path.parent / address).resolve() for path, page in pages.items() for address in page.loads}
    assert len(pictures) == 2
    for picture in pictures:
        assert site / "images" / picture.name in shown
        text = picture.read_text()
        assert re.findall(r"(?:src|href|url)\s*[=:(]\s*[\"'(]?\s*(?:https?:)?//", text) == []
        assert "@font-face" not in text


def test_every_link_within_the_site_leads_somewhere(pages: dict[Path, Links]) -> None:
    followed = 0
    for path, page in pages.items():
        for link in page.links:
            name, _, anchor = link.partition("#")
            if not re.match("https?:", link) and link:
                target = (path.parent / name).resolve() if name else path
                assert target.exists(), f"{path.name}: {link}"
                assert not anchor or anchor in pages[target].ids, f"{path.name}: {link}"
                followed += 1
    assert followed > 500
