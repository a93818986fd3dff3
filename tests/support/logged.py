"""What is logged, as lines to look at."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rowcall.base import logs


class _Lines(io.StringIO):
    """A stream that reads each line as soon as it is written."""

    def __init__(self, lines: list[dict[str, Any]]) -> None:
        super().__init__()
        self._lines = lines

    def write(self, text: str) -> int:
        self._lines.append(json.loads(text))
        return len(text)


@contextmanager
def logged() -> Iterator[list[dict[str, Any]]]:
    """The lines that this process logs within the block."""
    before = logs.log()
    lines: list[dict[str, Any]] = []
    logs.use(logs.Log(_Lines(lines), "debug", "json"))
    try:
        yield lines
    finally:
        logs.use(before)
