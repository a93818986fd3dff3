"""Captured log lines, for tests."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any


class Lines(StringIO):
    """A stream that parses each JSON line and appends it to a list."""

    def __init__(self, lines: list[dict[str, Any]]) -> None:
        super().__init__()
        self._lines = lines

    def write(self, text: str) -> int:
        self._lines.append(json.loads(text))
        return len(text)
