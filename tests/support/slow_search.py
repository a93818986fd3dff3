"""A search in payloads that takes seconds: PostgreSQL compares each list of the filter with each list of a payload."""

from __future__ import annotations

from rowcall.base.database import Connection, fetch_all
from rowcall.base.jsonb import stored
from rowcall.queue.views.filters import SOUGHT_MOST

FILL = """
INSERT INTO rowcall.job_runs (job_type, payload)
SELECT 'noop', jsonb_build_object('a', jsonb_agg(%(other)s::jsonb) || jsonb_build_array(%(fits)s::jsonb))
FROM generate_series(1, 1500), generate_series(1, 60) AS run GROUP BY run
"""


def nested(depth: int, value: object) -> object:
    """Return the value in as many lists."""
    for _ in range(depth):
        value = [value]
    return value


# The comparison of two values cannot be interrupted.  This is the longest one possible: the one list that matches is
# the last.
SLOW = {"a": [nested(18, 7)] * SOUGHT_MOST}


def fill(connection: Connection) -> None:
    """Insert runs with payloads nearly as large as allowed, which SLOW matches."""
    fetch_all(connection, FILL, {"other": stored(nested(18, 1)), "fits": stored(nested(18, 7))})
