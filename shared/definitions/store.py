"""Definitions in their table: kept, changed, paused, removed.  Every change leaves a row in audit_log.

A change locks the definition's row, decides the nominal times that came before it under the rules that held then, and
starts a new revision from now.  What was enqueued already stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from shared.audit import Admin, record
from shared.database import Connection, Row, fetch_all, fetch_one
from shared.definitions.content import Content, told
from shared.definitions.tick import clock, settle
from shared.errors import DefinitionNotFound
from shared.job_types import Catalogue
from shared.queue.enqueue import Enqueued, enqueue_prepared
from shared.stored_json import stored

GET = "SELECT * FROM job_definitions WHERE name = %(name)s AND removed_at IS NULL"

LIST = "SELECT * FROM job_definitions WHERE removed_at IS NULL ORDER BY name"

# Removed ones too: a definition that comes back goes on with its revisions.
LOCK = "SELECT * FROM job_definitions WHERE name = %(name)s FOR UPDATE"

# Two that make the same name at once: one does, the other then finds it.
MAKE = """
INSERT INTO job_definitions (name, job_type, removed_at, revision) VALUES (%(name)s, %(job_type)s, now(), 0)
ON CONFLICT (name) DO NOTHING
"""

CHANGE = """
UPDATE job_definitions
SET job_type = %(job_type)s, payload = %(payload)s::jsonb, schedule = %(schedule)s, time_zone = %(time_zone)s,
    catch_up = %(catch_up)s, max_lateness = %(max_lateness)s, overlap = %(overlap)s, jitter = %(jitter)s,
    missing_time = %(missing_time)s, repeated_time = %(repeated_time)s, queue = %(queue)s, priority = %(priority)s,
    max_attempts = %(max_attempts)s, managed_by = %(managed_by)s, next_run_at = %(next_run_at)s,
    revision = revision + 1, removed_at = NULL, updated_at = now()
WHERE id = %(definition_id)s
RETURNING *
"""

ADOPT = "UPDATE job_definitions SET managed_by = %(managed_by)s WHERE id = %(definition_id)s RETURNING *"

PAUSE = """
UPDATE job_definitions SET paused_at = coalesce(paused_at, now()), updated_at = now()
WHERE id = %(definition_id)s RETURNING *
"""

RESUME = "UPDATE job_definitions SET paused_at = NULL, updated_at = now() WHERE id = %(definition_id)s RETURNING *"

REMOVE = """
UPDATE job_definitions SET removed_at = now(), next_run_at = NULL, paused_at = NULL, updated_at = now()
WHERE id = %(definition_id)s RETURNING *
"""

BELONGS = "UPDATE job_runs SET definition_id = %(definition_id)s WHERE id = %(run_id)s"

# schedule_occurrences' primary key, backwards.
OCCURRENCES = """
SELECT nominal_at, outcome, reason, run_id, revision, created_at FROM schedule_occurrences
WHERE definition_id = %(definition_id)s ORDER BY nominal_at DESC LIMIT %(limit)s
"""


class Change(StrEnum):
    """What `put` did."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"


@dataclass(frozen=True)
class Put:
    """A definition as it is now; `before` is the content it had, None where there was none."""

    row: Row
    change: Change
    before: Content | None


def put(
    connection: Connection, name: str, content: Content, catalogue: Catalogue, managed_by: str, admin: Admin
) -> Put:
    """See that this definition exists with this content; equal content changes nothing."""
    fetch_all(connection, MAKE, {"name": name, "job_type": content.job_type})
    row = _locked(connection, name, removed_too=True)
    before = None if row["removed_at"] else Content.of(row)
    known = {"definition_id": row["id"], "managed_by": managed_by}
    if before == content:
        if row["managed_by"] != managed_by:
            row = _changed(connection, ADOPT, known)
        return Put(row, Change.UNCHANGED, before)
    if before is not None:
        settle(connection, row, catalogue)
    times = content.times()
    next_run_at = times.next_after(clock(connection)) if times else None
    values = {**vars(content), "payload": stored(content.payload), "next_run_at": next_run_at, **known}
    row = _changed(connection, CHANGE, values)
    change = Change.CREATED if before is None else Change.CHANGED
    _record(connection, admin, change, row, before)
    return Put(row, change, before)


def get_definition(connection: Connection, name: str) -> Row:
    """The definition of this name, or DefinitionNotFound."""
    row = fetch_one(connection, GET, {"name": name})
    if row is None:
        raise DefinitionNotFound(name)
    return row


def list_definitions(connection: Connection) -> list[Row]:
    """All definitions, by name."""
    return fetch_all(connection, LIST)


def occurrences_of(connection: Connection, definition_id: int, limit: int) -> list[Row]:
    """The latest nominal times of a definition and what became of each."""
    return fetch_all(connection, OCCURRENCES, {"definition_id": definition_id, "limit": limit})


def pause(connection: Connection, name: str, catalogue: Catalogue, admin: Admin) -> Row:
    """Enqueue nothing more; the nominal times that come are written down as skipped."""
    return _switched(connection, name, "pause", PAUSE, catalogue, admin)


def resume(connection: Connection, name: str, catalogue: Catalogue, admin: Admin) -> Row:
    """Enqueue again, from now."""
    return _switched(connection, name, "resume", RESUME, catalogue, admin)


def remove(connection: Connection, name: str, admin: Admin) -> Row:
    """Let it exist no more; its runs stay, those that wait too."""
    row = _locked(connection, name)
    removed = _changed(connection, REMOVE, {"definition_id": row["id"]})
    _record(connection, admin, "remove", removed, Content.of(row))
    return removed


def run_now(connection: Connection, name: str, catalogue: Catalogue, admin: Admin) -> Enqueued:
    """Enqueue one run beside the schedule, as if now were a nominal time.

    A payload that names the time keeps its key: what was done for this day already is not done a second time.
    """
    row = _locked(connection, name)
    content = Content.of(row)
    kind = catalogue[content.job_type]
    options = {**content.options(kind), "run_at": None, "created_by": admin.who}
    outcome = enqueue_prepared(connection, [content.prepared(kind, clock(connection))], options)[0]
    if not outcome.replayed:
        fetch_all(connection, BELONGS, {"definition_id": row["id"], "run_id": outcome.run_id})
    record(connection, admin.who, "run now", "definition", row["id"], None, vars(outcome), admin.request_id)
    return outcome


def _switched(connection: Connection, name: str, action: str, sql: str, catalogue: Catalogue, admin: Admin) -> Row:
    row = _locked(connection, name)
    settle(connection, row, catalogue)
    changed = _changed(connection, sql, {"definition_id": row["id"]})
    before, after = ({"name": name, "paused_at": one["paused_at"]} for one in (row, changed))
    record(connection, admin.who, action, "definition", row["id"], before, after, admin.request_id)
    return changed


def _locked(connection: Connection, name: str, removed_too: bool = False) -> Row:
    row = fetch_one(connection, LOCK, {"name": name})
    if row is None or (row["removed_at"] and not removed_too):
        raise DefinitionNotFound(name)
    return row


def _changed(connection: Connection, sql: str, values: dict[str, Any]) -> Row:
    row = fetch_one(connection, sql, values)
    assert row is not None, "its row is locked"
    return row


def _record(connection: Connection, admin: Admin, action: str, row: Row, before: Content | None) -> None:
    after = {"name": row["name"], "revision": row["revision"], **told(Content.of(row))}
    known = None if before is None else told(before)
    record(connection, admin.who, action, "definition", row["id"], known, after, admin.request_id)
