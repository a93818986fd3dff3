"""Converters for the ids in paths."""

from __future__ import annotations

from typing import Any

from werkzeug.routing import IntegerConverter, Map

from rowcall.base.database import LARGEST_ID


class RowId(IntegerConverter):
    """The id of a row in canonical form; any other text is a 404 without a database query."""

    regex = "[1-9][0-9]{0,18}"

    def __init__(self, url_map: Map, **bounds: Any) -> None:
        super().__init__(url_map, **{"min": 1, "max": LARGEST_ID, **bounds})
