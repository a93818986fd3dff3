"""Searches in payloads: no index supports them and each may take seconds, so a caller may have only a few at a time."""

from __future__ import annotations

from rowcall.base.database import Connection, fetch_all
from rowcall.base.errors import TooManySearches
from rowcall.queue.views.filters import Filter

AT_ONCE = 2

# Takes the first free slot of a key until the transaction ends, so the limit covers all servers together.
TAKE_SLOT = f"""
SELECT slot FROM generate_series(1, {AT_ONCE}) AS slot
WHERE pg_try_advisory_xact_lock(hashtextextended('rowcall.search/' || %(key_id)s || '/' || slot, 0)) LIMIT 1
"""


def limit_searches(connection: Connection, criteria: Filter, key_id: int) -> None:
    """Raise TooManySearches if this is a search in payloads and the API key has too many others in progress."""
    if criteria.payload is not None and not fetch_all(connection, TAKE_SLOT, {"key_id": key_id}):
        raise TooManySearches(AT_ONCE)
