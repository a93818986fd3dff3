"""refresh_cache: compute a named value again, and store it."""

from __future__ import annotations

from typing import Any

from rowcall import Run
from rowcall_example.job_types import REFRESH_CACHE
from rowcall_example.queries.cache import refresh


@REFRESH_CACHE.handler
def refresh_cache(run: Run) -> None:
    """Compute and store the value, in the transaction that finishes the run."""
    result: dict[str, Any] = {}
    with run.transaction(result) as connection:
        entry = refresh(connection, run.payload["name"])
        result |= {"name": entry.name, "expires_at": entry.expires_at.isoformat()}
