"""Erase: delete the payloads of removed definitions, and those in the audit log, when a person requests it.

The payload of a live definition is needed for its next run, so such a definition is reported but not changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rowcall.access.audit import Operator
from rowcall.base.database import Connection, fetch_all
from rowcall.base.jsonb import stored

# How many rows of the audit log one transaction erases.
BATCH = 500

# The row of a removed definition stays, and the audit log has the payloads before and after each change.
FIND = """
SELECT id, name, removed_at IS NULL AS live, payload @> %(payload)s::jsonb AS matches
FROM rowcall.job_definitions AS definition
WHERE payload @> %(payload)s::jsonb OR EXISTS (
    SELECT FROM rowcall.audit_log WHERE subject = 'definition' AND subject_id = definition.id
        AND (before -> 'payload' @> %(payload)s::jsonb OR after -> 'payload' @> %(payload)s::jsonb)
)
ORDER BY id
"""

# All payloads of an erased definition, or the earlier payloads of another definition that match.  A row may have one
# that matches and one that does not, which may be another person's.
UNAUDITED = """
UPDATE rowcall.audit_log
SET before = CASE WHEN %(whole)s OR before -> 'payload' @> %(payload)s::jsonb THEN before - 'payload' ELSE before END,
    after = CASE WHEN %(whole)s OR after -> 'payload' @> %(payload)s::jsonb THEN after - 'payload' ELSE after END
WHERE id = ANY(ARRAY(
    SELECT id FROM rowcall.audit_log
    WHERE subject = 'definition' AND subject_id = %(definition_id)s AND (before ? 'payload' OR after ? 'payload')
        AND (%(whole)s OR before -> 'payload' @> %(payload)s::jsonb OR after -> 'payload' @> %(payload)s::jsonb)
    ORDER BY id LIMIT %(batch)s FOR UPDATE
))
RETURNING id
"""

# A definition that has been created again meanwhile, or that another transaction has locked, is not erased.
ERASE = """
WITH removed AS MATERIALIZED (
    SELECT id FROM rowcall.job_definitions
    WHERE id = %(definition_id)s AND removed_at IS NOT NULL AND payload @> %(payload)s::jsonb
    FOR UPDATE SKIP LOCKED
), erased AS (
    UPDATE rowcall.job_definitions SET payload = '{}', updated_at = now() WHERE id = ANY(ARRAY(SELECT id FROM removed))
    RETURNING id
), audited AS (
    INSERT INTO rowcall.audit_log (who, action, subject, subject_id, request_id)
    SELECT %(who)s, 'erase', 'definition', id, %(request_id)s FROM removed
)
SELECT id FROM erased
"""


@dataclass(frozen=True)
class Matching:
    """A definition whose payload matches, now or before a change."""

    id: int
    name: str
    live: bool
    matches: bool

    @property
    def stays(self) -> bool:
        """Whether it must be changed or removed before it can be erased."""
        return self.live and self.matches


def find_definitions(connection: Connection, payload: Mapping[str, Any]) -> list[Matching]:
    """Return the definitions, including removed ones, whose current or earlier payload contains this object."""
    return [Matching(**row) for row in fetch_all(connection, FIND, {"payload": stored(payload)})]


def erase_definition(
    connection: Connection, found: Matching, payload: Mapping[str, Any], operator: Operator
) -> Iterator[bool]:
    """Erase a definition's payloads step by step, and yield after each; the caller commits.

    The definition's own payload is last: if the process is killed before that, the definition is found again.  The last
    step yields whether everything is erased.
    """
    values = {"definition_id": found.id, "payload": stored(payload), "whole": found.matches, "batch": BATCH}
    while fetch_all(connection, UNAUDITED, values):
        yield False
    if not found.matches:
        yield True
        return
    by = {"who": operator.who, "request_id": operator.request_id}
    yield bool(fetch_all(connection, ERASE, {**values, **by}))
