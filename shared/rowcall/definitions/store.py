"""Creates, changes, pauses and removes definitions.  Every change adds a row to audit_log.

An edit, a pause or a resume locks the definition's row and processes the nominal times up to now by the old rules, so
it loses no time that workers have not processed yet.  An edit also starts a new revision.  No change affects existing
runs.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from rowcall.access.audit import Operator, record
from rowcall.base.database import Connection, Row, fetch_all, fetch_one, fetch_value
from rowcall.base.errors import DefinitionNotFound, ScheduleInvalid
from rowcall.base.jsonb import stored
from rowcall.definitions.check import NAME, as_sent
from rowcall.definitions.content import COLUMNS, Content
from rowcall.definitions.tick import clock, settle
from rowcall.definitions.version import UNCONDITIONAL, Precondition
from rowcall.job_types import Catalogue

GET = "SELECT * FROM rowcall.job_definitions WHERE name = %(name)s AND removed_at IS NULL"

LIST = "SELECT * FROM rowcall.job_definitions WHERE removed_at IS NULL ORDER BY name"

# The listed definitions cannot change until the caller's transaction ends.
LIST_LOCKED = f"{LIST} FOR UPDATE"

# Includes removed definitions: if one is created again, its revisions continue.
LOCK = "SELECT * FROM rowcall.job_definitions WHERE name = %(name)s FOR UPDATE"

# If two transactions create the same name at once, one inserts it and the other finds it.
CREATE = """
INSERT INTO rowcall.job_definitions (name, job_type, removed_at, revision) VALUES (%(name)s, %(job_type)s, now(), 0)
ON CONFLICT (name) DO NOTHING
"""

# A change of the content begins a new revision, and restores a removed definition.
CHANGE = f"""
UPDATE rowcall.job_definitions
SET
    {COLUMNS},
    managed_by = %(managed_by)s, next_run_at = %(next_run_at)s, revision = revision + 1, removed_at = NULL,
    updated_at = now()
WHERE id = %(definition_id)s
RETURNING *
"""

# PostgreSQL compares the payloads: in Python, 1 equals true, and 1e400 differs from the same number in digits.
SAME_PAYLOAD = "SELECT payload = %(payload)s::jsonb FROM rowcall.job_definitions WHERE id = %(definition_id)s"

ADOPT = "UPDATE rowcall.job_definitions SET managed_by = %(managed_by)s WHERE id = %(definition_id)s RETURNING *"

PAUSE = """
UPDATE rowcall.job_definitions SET paused_at = coalesce(paused_at, now()), updated_at = now()
WHERE id = %(definition_id)s RETURNING *
"""

# Continues from now: nominal times during the pause do not run, even if they are still unprocessed.
RESUME = """
UPDATE rowcall.job_definitions
SET next_run_at = CASE WHEN paused_at IS NULL THEN next_run_at ELSE %(next_run_at)s END,
    paused_at = NULL, updated_at = now()
WHERE id = %(definition_id)s RETURNING *
"""

REMOVE = """
UPDATE rowcall.job_definitions SET removed_at = now(), next_run_at = NULL, paused_at = NULL, updated_at = now()
WHERE id = %(definition_id)s RETURNING *
"""


class Change(StrEnum):
    """The change that `put` made."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    ADOPTED = "adopted"  # unchanged, but with another manager
    FOREIGN = "foreign"  # not changed, because a file or the API has taken it over from the code


# What the audit log calls the changes that it records.
ACTIONS = {Change.CREATED: "create", Change.CHANGED: "change", Change.ADOPTED: "adopt"}


@dataclass(frozen=True)
class Put:
    """A definition after the change; `before` is its old content, None if it is new."""

    row: Row
    change: Change
    before: Content | None


def put(
    connection: Connection,
    name: str,
    content: Content,
    catalogue: Catalogue,
    managed_by: str,
    operator: Operator,
    condition: Precondition = UNCONDITIONAL,
) -> Put:
    """Create or change this definition; equal content does not begin a new revision."""
    fetch_all(connection, CREATE, {"name": name, "job_type": content.job_type})
    row = locked_definition(connection, name, condition, removed_too=True)
    before = None if row["removed_at"] else Content.of(row)
    if before is None:
        return _put(connection, row, content, managed_by, operator, None, clock(connection))
    if managed_by == "code" and row["managed_by"] != "code":
        return Put(row, Change.FOREIGN, before)
    if _same(connection, row, before, content):
        return _adopted(connection, row, before, managed_by, operator)
    now = clock(connection)
    settle(connection, row, catalogue, now)
    return _put(connection, row, content, managed_by, operator, before, now)


def _put(
    connection: Connection,
    row: Row,
    content: Content,
    managed_by: str,
    operator: Operator,
    before: Content | None,
    now: datetime,
) -> Put:
    """Begin a new revision; the nominal times up to now have been processed under the old one."""
    values = {
        **vars(content),
        "payload": stored(content.payload),
        "next_run_at": content.next_after(now),
        "definition_id": row["id"],
        "managed_by": managed_by,
    }
    row = _changed(connection, CHANGE, values)
    change = Change.CREATED if before is None else Change.CHANGED
    _record(connection, operator, ACTIONS[change], row, before)
    return Put(row, change, before)


def _same(connection: Connection, row: Row, before: Content, after: Content) -> bool:
    """Return whether the definition already has this content."""
    if dataclasses.replace(before, payload=after.payload) != after:
        return False
    parameters = {"definition_id": row["id"], "payload": stored(after.payload)}
    return bool(fetch_value(connection, SAME_PAYLOAD, parameters))


def _adopted(connection: Connection, row: Row, content: Content, managed_by: str, operator: Operator) -> Put:
    if row["managed_by"] == managed_by:
        return Put(row, Change.UNCHANGED, content)
    adopted = _changed(connection, ADOPT, {"definition_id": row["id"], "managed_by": managed_by})
    before, after = ({"name": one["name"], "managed_by": one["managed_by"]} for one in (row, adopted))
    record(
        connection, operator.who, ACTIONS[Change.ADOPTED], "definition", row["id"], before, after, operator.request_id
    )
    return Put(adopted, Change.ADOPTED, content)


def get_definition(connection: Connection, name: str) -> Row:
    """Return the definition with this name, or raise DefinitionNotFound."""
    row = _found(connection, GET, name)
    if row is None:
        raise DefinitionNotFound(name, _names(connection))
    return row


def _names(connection: Connection) -> list[str]:
    return [row["name"] for row in list_definitions(connection)]


def list_definitions(connection: Connection, locked: bool = False) -> list[Row]:
    """Return all definitions, sorted by name; `locked` locks them until the transaction ends."""
    return fetch_all(connection, LIST_LOCKED if locked else LIST)


def pause(
    connection: Connection,
    name: str,
    catalogue: Catalogue,
    operator: Operator,
    condition: Precondition = UNCONDITIONAL,
    skip_due: bool = False,
) -> Row:
    """Stop enqueuing; later nominal times are recorded as skipped, and with `skip_due`, due ones are too."""
    row = locked_definition(connection, name, condition)
    return _switched(connection, row, "pause", PAUSE, catalogue, operator, skip_due)


def resume(
    connection: Connection,
    name: str,
    catalogue: Catalogue,
    operator: Operator,
    condition: Precondition = UNCONDITIONAL,
) -> Row:
    """Resume enqueuing, from now on."""
    return _switched(connection, locked_definition(connection, name, condition), "resume", RESUME, catalogue, operator)


def remove(connection: Connection, name: str, operator: Operator, condition: Precondition = UNCONDITIONAL) -> Row:
    """Remove a definition; its runs stay, including those that are waiting."""
    row = locked_definition(connection, name, condition)
    removed = _changed(connection, REMOVE, {"definition_id": row["id"]})
    _record(connection, operator, "remove", removed, Content.of(row))
    return removed


def _switched(
    connection: Connection,
    row: Row,
    action: str,
    sql: str,
    catalogue: Catalogue,
    operator: Operator,
    skip_due: bool = False,
) -> Row:
    now = clock(connection)
    settle(connection, {**row, "paused_at": now} if skip_due else row, catalogue, now)
    changed = _changed(connection, sql, {"definition_id": row["id"], "next_run_at": _next(row, now)})
    before, after = ({"name": row["name"], "paused_at": one["paused_at"]} for one in (row, changed))
    if before != after:  # otherwise it was paused, or active, already
        record(connection, operator.who, action, "definition", row["id"], before, after, operator.request_id)
    return changed


def _next(row: Row, now: datetime) -> datetime | None:
    """Return the next nominal time; a broken schedule keeps the old one until an operator fixes it."""
    try:
        return Content.of(row).next_after(now)
    except ScheduleInvalid:
        unchanged: datetime | None = row["next_run_at"]
        return unchanged


def locked_definition(
    connection: Connection, name: str, condition: Precondition = UNCONDITIONAL, removed_too: bool = False
) -> Row:
    """Lock this definition and return it; raise DefinitionNotFound, or what the condition raises."""
    row = _found(connection, LOCK, name)
    if row is None or (row["removed_at"] and not removed_too):
        raise DefinitionNotFound(name, _names(connection))
    condition.check(row)
    return row


def _found(connection: Connection, sql: str, name: str) -> Row | None:
    """Return the row with this name; do not send an invalid name, which PostgreSQL might refuse as text."""
    return fetch_one(connection, sql, {"name": name}) if NAME.fullmatch(name) else None


def _changed(connection: Connection, sql: str, values: dict[str, Any]) -> Row:
    row = fetch_one(connection, sql, values)
    assert row is not None, "its row is locked"
    return row


def _record(connection: Connection, operator: Operator, action: str, row: Row, before: Content | None) -> None:
    after = {"name": row["name"], "revision": row["revision"], **as_sent(Content.of(row))}
    old = None if before is None else as_sent(before)
    record(connection, operator.who, action, "definition", row["id"], old, after, operator.request_id)
