"""All pages of docs/reference/."""

from __future__ import annotations

from tests.reference import command_line, http, log_events, metrics, tables


def pages(url: str) -> dict[str, str]:
    """Return name -> text; the API describes itself on a database with the current schema."""
    return {
        "command-line.md": command_line.page(),
        "http.md": http.page(url),
        "metrics.md": metrics.page(),
        "log-events.md": log_events.page(),
        "tables.md": tables.page(),
    }
