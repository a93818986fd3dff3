"""The audit log a page at a time.

An index finds the rows of one subject.  For all other filters, a page scans the primary key, skips rows that do not
match, and stops after SCANNED_MOST rows; then `next` continues after the last scanned one, as in the list of runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from rowcall.access.audit import SUBJECTS
from rowcall.base.database import Connection, Row, fetch_all
from rowcall.base.errors import FilterInvalid
from rowcall.base.errors.sentences import did_you_mean
from rowcall.base.timestamps import in_utc, unusable
from rowcall.queue.fragments import BY_INDEX
from rowcall.queue.views import cursors, pages
from rowcall.queue.views.lists import SCANNED_MOST
from rowcall.queue.views.pages import Order

# Read in the order of an index, without sorting, whatever the statistics say.
IN_ORDER = f"{BY_INDEX} SET LOCAL enable_sort = off; SET LOCAL enable_bitmapscan = off;"

# A row has the time at which its transaction began, so a row with a higher id may have an earlier time, by at most the
# length of a transaction.
LONGEST_TRANSACTION = "interval '1 day'"

MATCHES = """(%(who)s::text IS NULL OR %(who)s IN (who, split_part(who, ' (', 1)))
        AND (%(action)s::text IS NULL OR action IN (%(action)s, %(other_action)s))
        AND (%(subject)s::text IS NULL OR subject = %(subject)s)
        AND at >= %(after)s::timestamptz AND at < %(before)s::timestamptz"""


# Until 0.2, definitions had their own words for these actions.  Old rows keep them, and either word finds both.
FORMER = {"create": "created", "change": "changed", "adopt": "adopted"}
OTHER_WORDS = FORMER | {former: word for word, former in FORMER.items()}


# A definition keeps its name and its row, even if it is removed; the rows of erasing have no name of their own.
SUBJECT_NAME = """CASE subject
        WHEN 'definition' THEN (SELECT name FROM rowcall.job_definitions AS definition WHERE definition.id = subject_id)
        WHEN 'queue' THEN coalesce(after ->> 'name', before ->> 'name')
        WHEN 'view' THEN coalesce(after ->> 'name', before ->> 'name')
    END"""


def bisected(name: str, moment: str) -> str:
    """Return a CTE that finds the first id at or after a time: its largest `low`.

    It halves the range of ids in each step, and reads one row of the primary key, so that times need no index.
    """
    middle = "(low + high) / 2"
    return f"""{name}(low, high) AS (
    SELECT 1::bigint, (SELECT coalesce(max(id), 0) + 1 FROM rowcall.audit_log)
    UNION ALL
    SELECT CASE WHEN probe.at < {moment} THEN probe.id + 1 ELSE low END,
        CASE WHEN probe.at < {moment} THEN high ELSE {middle} END
    FROM {name} CROSS JOIN LATERAL (
        SELECT id, at FROM rowcall.audit_log WHERE id >= {middle} ORDER BY id LIMIT 1
    ) AS probe
    WHERE low < high
)"""


def page_sql(order: Order, entries: str, ends: str = "") -> str:
    """Return a query for a page of these entries beyond an id; if the page is short, also for where its scan ended."""
    by_id, beyond = f"id {order.way}", f"{entries} AND id {order.past} %(beyond_id)s"
    return f"""
WITH RECURSIVE {ends}page AS MATERIALIZED (
    SELECT scanned.* FROM (
        SELECT * FROM rowcall.audit_log WHERE {beyond} ORDER BY {by_id} LIMIT %(most)s
    ) AS scanned
    WHERE {MATCHES}
    ORDER BY {by_id} LIMIT %(limit)s + 1
), bound AS (
    SELECT id FROM rowcall.audit_log WHERE {beyond} AND (SELECT count(*) FROM page) <= %(limit)s
    ORDER BY {by_id} OFFSET %(most)s - 1 LIMIT 1
), shown AS (
    SELECT id, at, who, action, subject, subject_id, {SUBJECT_NAME} AS subject_name, before, after, request_id
    FROM page
), measured AS ({pages.measured(by_id)}
)
SELECT measured.*, bound.id AS bound_id
FROM (VALUES (1)) AS always LEFT JOIN bound ON true LEFT JOIN measured ON place <= %(limit)s AND {pages.FITS}
ORDER BY measured.{by_id}
"""


# Scans the primary key between the first ids of both times.
FROM_TIME = bisected("oldest", f"%(after)s::timestamptz - {LONGEST_TRANSACTION}")
TO_TIME = bisected("newest", f"%(before)s::timestamptz + {LONGEST_TRANSACTION}")
BETWEEN = "id < (SELECT max(low) FROM newest) AND id >= (SELECT max(low) FROM oldest)"
OF_ALL = {order: page_sql(order, BETWEEN, f"{FROM_TIME}, {TO_TIME}, ") for order in Order}

# The index audit_log_subject.
OF_SUBJECT = {order: page_sql(order, "subject = %(subject)s AND subject_id = %(subject_id)s") for order in Order}


@dataclass(frozen=True)
class AuditFilter:
    """Criteria for rows of the audit log; None matches every row.  `after` is included, and `before` is not."""

    who: str | None = None
    action: str | None = None
    subject: str | None = None
    subject_id: int | None = None
    after: datetime | None = None
    before: datetime | None = None

    def __post_init__(self) -> None:
        wrong = {name: why for name in ("after", "before") if (why := _wrong_with(getattr(self, name)))}
        if self.subject is not None and self.subject not in SUBJECTS:
            question = did_you_mean(self.subject, SUBJECTS)
            wrong["subject"] = "; ".join(filter(None, (f"must be one of {', '.join(SUBJECTS)}", question)))
        if self.subject_id is not None and self.subject is None:
            wrong["subject_id"] = "needs a subject, such as run, because each kind of subject has ids of its own"
        if wrong:
            raise FilterInvalid(wrong)

    @property
    def text(self) -> str:
        """Return a text that is the same for equal filters."""
        return json.dumps(asdict(self), sort_keys=True, default=lambda moment: str(in_utc(moment)))

    def parameters(self) -> Mapping[str, Any]:
        """Return the parameters of MATCHES."""
        times = {"after": in_utc(self.after) or "-infinity", "before": in_utc(self.before) or "infinity"}
        return {**vars(self), "other_action": OTHER_WORDS.get(self.action or ""), **times}


@dataclass(frozen=True)
class AuditPage:
    """Some rows of the audit log, and the cursor of the next page; None if there are no more."""

    rows: list[Row]
    next: str | None


def list_audit(
    connection: Connection,
    criteria: AuditFilter,
    limit: int = 50,
    cursor: str | None = None,
    most: int = SCANNED_MOST,
    page_bytes: int = pages.PAGE_BYTES,
    order: Order = Order.DESC,
) -> AuditPage:
    """Return the newest or the oldest rows that match.  A page may be short, or empty, and still have a next one."""
    scope = order.scope(f"audit {criteria.text}")
    beyond_id = order.beginning if cursor is None else cursors.read(scope, cursor)[0]
    asked = {"beyond_id": beyond_id, "limit": limit, "most": most, "page_bytes": page_bytes}
    if criteria.subject_id is None:
        found = fetch_all(connection, IN_ORDER + OF_ALL[order], {**criteria.parameters(), **asked})
    else:
        found = fetch_all(connection, IN_ORDER + OF_SUBJECT[order], {**criteria.parameters(), **asked})
    rows, more = pages.read([row for row in found if row["id"] is not None], frozenset({"bound_id"}))
    last = rows[-1]["id"] if more else found[0]["bound_id"]
    return AuditPage(rows, None if last is None else cursors.written(scope, last, 0))


def _wrong_with(moment: datetime | None) -> str | None:
    return None if moment is None else unusable(moment)
