"""API keys: a page of all of them, which are still valid, and whether job types and queues in their limits exist."""

from __future__ import annotations

from collections.abc import Collection

from rowcall.access.api_keys import SHOWN
from rowcall.access.caller import Limits
from rowcall.base.database import Connection, Row, fetch_all
from rowcall.base.errors import ApiKeyInvalid
from rowcall.job_types.catalogue import Catalogue
from rowcall.queue.queues import has_queue
from rowcall.queue.views import cursors, pages
from rowcall.queue.views.pages import Order

# In the order of the primary key.
KEYS = {
    order: f"""
WITH shown AS ({SHOWN} WHERE id {order.past} %(beyond_id)s ORDER BY id {order.way} LIMIT %(limit)s + 1
), measured AS ({pages.measured(f"id {order.way}")}
)
SELECT * FROM measured WHERE place <= %(limit)s AND {pages.FITS} ORDER BY id {order.way}
"""
    for order in Order
}

STILL_VALID = """
SELECT id FROM rowcall.api_keys
WHERE id = ANY(%(key_ids)s::bigint[]) AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())
"""


def keys_page(
    connection: Connection,
    limit: int = 50,
    cursor: str | None = None,
    page_bytes: int = pages.PAGE_BYTES,
    order: Order = Order.DESC,
) -> tuple[list[Row], str | None]:
    """Return a page of all keys that were ever created, without their secrets, and the next page's cursor."""
    scope = order.scope("keys")
    beyond_id = order.beginning if cursor is None else cursors.read(scope, cursor)[0]
    values = {"beyond_id": beyond_id, "limit": limit, "page_bytes": page_bytes}
    items, more = pages.read(fetch_all(connection, KEYS[order], values))
    return items, cursors.written(scope, items[-1]["id"], 0) if more else None


def still_valid(connection: Connection, key_ids: Collection[int]) -> frozenset[int]:
    """Return those of these keys that are neither revoked nor expired."""
    return frozenset(row["id"] for row in fetch_all(connection, STILL_VALID, {"key_ids": [*key_ids]}))


def check_known(connection: Connection, limits: Limits, known: Catalogue) -> None:
    """Refuse job types and queues that do not exist, because such a key could do nothing."""
    for job_type in limits.job_types or ():
        known[job_type]  # JobTypeUnknown
    for queue in limits.queues or ():
        if queue not in known.queues and not has_queue(connection, queue):
            remedy = "`rowcall queues list` shows all; `rowcall queues resume` creates one"
            raise ApiKeyInvalid("queues", f"there is no queue {queue[:100]!r}: {remedy}")
