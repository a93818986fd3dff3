"""Make definitions for tests, and read what is stored about them."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from rowcall.access.audit import Operator
from rowcall.base.database import Connection, Row, fetch_all, fetch_one, fetch_value
from rowcall.definitions import checked, put
from rowcall.job_types import Catalogue, Definition, JobType, load_catalogue

CATALOGUE = load_catalogue("rowcall_example")
OPERATOR = Operator("test", "request-1")

# One time a year: whenever a test runs, this year's time and those of all earlier years have come.
YEARLY = {"job_type": "noop", "schedule": "@yearly"}


def code(*declared: Definition | JobType) -> Catalogue:
    """Return the catalogue of an app that declares these and no other definitions, with the built-in types."""
    module = ModuleType("shop.job_types")
    vars(module).update({f"DECLARED_{number}": one for number, one in enumerate((*CATALOGUE.values(), *declared))})
    return Catalogue(module)


def kept(connection: Connection, name: str = "yearly", managed_by: str = "api", **fields: Any) -> Row:
    """Store a definition with `put`, yearly by default."""
    content = checked(name, {**YEARLY, **fields}, CATALOGUE)
    return put(connection, name, content, CATALOGUE, managed_by, OPERATOR).row


def overdue(connection: Connection, name: str = "yearly") -> None:
    """Make this year's time, and those of the two years before, undecided."""
    fetch_all(
        connection,
        "UPDATE rowcall.job_definitions SET next_run_at = date_trunc('year', now(), 'UTC') - interval '2 years'"
        " WHERE name = %(name)s",
        {"name": name},
    )


def row_of(connection: Connection, name: str = "yearly") -> Row:
    """Return the definition's row, even if it is removed."""
    row = fetch_one(connection, "SELECT * FROM rowcall.job_definitions WHERE name = %(name)s", {"name": name})
    assert row is not None
    return row


def audited(connection: Connection) -> list[tuple[str, str]]:
    """Return the audited actions and their definitions, the first one first."""
    rows = fetch_all(connection, "SELECT * FROM rowcall.audit_log WHERE subject = 'definition' ORDER BY id")
    names = {row["id"]: row["name"] for row in fetch_all(connection, "SELECT id, name FROM rowcall.job_definitions")}
    return [(row["action"], names[row["subject_id"]]) for row in rows]


def last_audit(connection: Connection) -> Row:
    """Return the last row of the audit log."""
    row = fetch_one(connection, "SELECT * FROM rowcall.audit_log ORDER BY id DESC LIMIT 1")
    assert row is not None
    return row


def decided(connection: Connection, name: str = "yearly") -> list[tuple[str, int]]:
    """Return outcome and revision of each of its occurrences, the first one first."""
    rows = fetch_all(
        connection,
        "SELECT outcome, revision FROM rowcall.schedule_occurrences WHERE definition_id = %(id)s ORDER BY nominal_at",
        row_of(connection, name),
    )
    return [(row["outcome"], row["revision"]) for row in rows]


def is_later_than_now(connection: Connection, moment: object) -> bool:
    """Whether it is later than now by the database's clock."""
    later: bool = fetch_value(connection, "SELECT %(moment)s > clock_timestamp()", {"moment": moment})
    return later
