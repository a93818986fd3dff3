"""A hook of mkdocs: pages that are elsewhere in the repository, links to them, and the colours of code."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pygments.formatters import HtmlFormatter

ROOT = Path(__file__).parents[1]

# Page of the site -> file in the repository.
PAGES = {
    "index.md": "README.md",
    "example.md": "example/README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
}
LINK = re.compile(r"\[([^]]*)\]\(([\w./-]+)(#[^)]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages, and a style sheet."""
    for page, path in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / path).read_text()))
    # The theme keeps each cell on one line, which hides wide columns.
    wrap = ".wy-table-responsive table td, .wy-table-responsive table th { white-space: normal }\n"
    style = wrap + HtmlFormatter(style="friendly").get_style_defs(".codehilite")
    files.append(File.generated(config, "site.css", content=style))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links lead to the site's pages."""
    source = page.file.src_uri
    folder = (ROOT / PAGES.get(source, f"docs/{source}")).parent
    pages = {path: name for name, path in PAGES.items()}

    def linked(match: re.Match[str]) -> str:
        text, path, anchor = match.groups()
        target = (folder / path).resolve().relative_to(ROOT).as_posix()
        found = pages.get(target, target.removeprefix("docs/"))
        if files.get_file_from_path(found) is None:
            return text  # a file that is not a page, such as the license
        return f"[{text}]({'../' * source.count('/')}{found}{anchor or ''})"

    return LINK.sub(linked, markdown)
