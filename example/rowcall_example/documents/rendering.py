"""The templates of letters: HTML with everything escaped that is put into it, and plain text with nothing escaped."""

from __future__ import annotations

import functools
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from rowcall_example.documents import colours
from rowcall_example.documents.wording import one_line


def rendered(name: str, **values: Any) -> tuple[str, str]:
    """A letter's text and HTML, from the two templates of this name."""
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
    environment.globals["colours"] = colours
    environment.filters |= {"one_line": one_line, "width": _width}
    return environment


def _width(text: str, width: int) -> str:
    """Text in a column of this width; below zero: at its right side."""
    return text.ljust(width) if width > 0 else text.rjust(-width)
