"""The templates of letters: HTML, in which every inserted value is escaped, and plain text without escaping."""

from __future__ import annotations

import functools
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from rowcall_example.documents import colours
from rowcall_example.documents.wording import ADDRESS, COMPANY, one_line


def rendered(name: str, **values: Any) -> tuple[str, str]:
    """Return a letter's text and HTML, from the two templates with this name."""
    text, html = (_environment().get_template(f"{name}.{form}").render(values) for form in ("txt", "html"))
    return text, html


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("rowcall_example.documents"),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals |= {"colours": colours, "company": COMPANY, "address": ADDRESS}
    environment.filters |= {"one_line": one_line, "width": _width}
    return environment


def _width(text: str, width: int) -> str:
    """Return text in a column of this width; right-aligned if the width is negative."""
    return text.ljust(width) if width > 0 else text.rjust(-width)
