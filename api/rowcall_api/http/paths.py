"""Converters for parts of paths."""

from __future__ import annotations

from typing import Any

from werkzeug.routing import IntegerConverter, Map, PathConverter

from rowcall.base.database import LARGEST_ID


class RowId(IntegerConverter):
    """The id of a row, in its one valid form; anything else is not found, without a query."""

    regex = "[1-9][0-9]{0,18}"

    def __init__(self, url_map: Map, **bounds: Any) -> None:
        super().__init__(url_map, **{"min": 1, "max": LARGEST_ID, **bounds})


class Rest(PathConverter):
    """The rest of a path, even if it is empty or begins with a slash."""

    regex = ".*"
    part_isolating = False  # werkzeug would assume the opposite for a regex without a slash
