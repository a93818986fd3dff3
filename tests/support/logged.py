"""Collect log lines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rowcall.base import logs
from rowcall.testing.log import Lines


@contextmanager
def logged(level: str = "debug") -> Iterator[list[dict[str, Any]]]:
    """Yield the list of lines that this process logs within the block."""
    before = logs.log()
    lines: list[dict[str, Any]] = []
    logs.use(logs.Log(Lines(lines), level, "json"))
    try:
        yield lines
    finally:
        logs.use(before)
