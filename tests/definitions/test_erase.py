"""Erasing definitions: removed ones lose their payloads at once; live and locked ones stay as they are."""

from __future__ import annotations

import json

from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all, fetch_value
from rowcall.definitions import erase
from rowcall.definitions.erase import Matching, erase_definition, find_definitions
from tests.definitions.keeping import kept

ADA, GRACE = {"user_id": 7}, {"user_id": 8}
OPERATOR = Operator("cli:ada", "request-1")


def definition(connection: PgConnection, name: str, payload: object, removed: bool = True) -> int:
    """Create a definition with this payload, and return its id."""
    kept(connection, name)
    sql = """
    UPDATE rowcall.job_definitions SET payload = %(payload)s::jsonb, removed_at = CASE WHEN %(removed)s THEN now() END,
        next_run_at = NULL
    WHERE name = %(name)s RETURNING id
    """
    definition_id: int = fetch_value(
        connection, sql, {"payload": json.dumps(payload), "removed": removed, "name": name}
    )
    return definition_id


def audited(connection: PgConnection, subject: str, subject_id: int, before: object, after: object) -> None:
    """Record a change of the payload."""
    sql = """
    INSERT INTO rowcall.audit_log (who, action, subject, subject_id, before, after)
    VALUES ('cli:me', 'change', %(subject)s, %(id)s, %(before)s::jsonb, %(after)s::jsonb)
    """
    states = {"before": json.dumps({"payload": before}), "after": json.dumps({"payload": after})}
    fetch_all(connection, sql, {"subject": subject, "id": subject_id, **states})


def payloads(connection: PgConnection) -> list[tuple[bool, bool]]:
    """Whether each row of a change still has its payload before the change, and after it."""
    sql = """
    SELECT before ? 'payload' AS before, after ? 'payload' AS after FROM rowcall.audit_log WHERE action = 'change'
    ORDER BY id
    """
    return [(row["before"], row["after"]) for row in fetch_all(connection, sql)]


def test_only_definitions_that_have_or_had_the_payload_are_found(connection: PgConnection) -> None:
    now, was, other = (
        definition(connection, name, payload) for name, payload in (("now", ADA), ("was", GRACE), ("other", GRACE))
    )
    audited(connection, "definition", was, ADA, GRACE)
    audited(connection, "run", other, ADA, ADA)
    found = find_definitions(connection, ADA)
    assert found == [Matching(now, "now", False, True), Matching(was, "was", False, False)]


def test_an_erased_definition_loses_all_payloads_and_others_only_those_that_match(connection: PgConnection) -> None:
    gone, other = definition(connection, "gone", ADA), definition(connection, "other", GRACE, removed=False)
    audited(connection, "definition", gone, GRACE, ADA)
    audited(connection, "definition", gone, {}, GRACE)
    audited(connection, "definition", other, ADA, GRACE)
    audited(connection, "definition", other, GRACE, ADA)
    audited(connection, "definition", other, GRACE, GRACE)
    audited(connection, "run", gone, ADA, ADA)
    for found in find_definitions(connection, ADA):
        assert list(erase_definition(connection, found, ADA, OPERATOR))[-1]
    kept, lost = (True, True), (False, False)
    assert payloads(connection) == [lost, lost, (False, True), (True, False), kept, kept]
    rows = fetch_all(connection, "SELECT name, payload FROM rowcall.job_definitions WHERE name IN ('gone', 'other')")
    assert {row["name"]: row["payload"] for row in rows} == {"gone": {}, "other": GRACE}
    [erasure] = fetch_all(connection, "SELECT * FROM rowcall.audit_log WHERE action = 'erase'")
    assert (erasure["who"], erasure["subject_id"], erasure["request_id"]) == ("cli:ada", gone, "request-1")


def test_the_audit_log_is_erased_in_batches_and_the_definition_last(connection: PgConnection) -> None:
    gone = definition(connection, "gone", ADA)
    for _ in range(erase.BATCH):  # beside the row of its creation
        audited(connection, "definition", gone, ADA, ADA)
    [found] = find_definitions(connection, ADA)
    steps = erase_definition(connection, found, ADA, OPERATOR)
    assert next(steps) is False
    assert payloads(connection).count((True, True)) == 1
    assert find_definitions(connection, ADA) == [found], "after a kill, it would be found again"
    assert list(steps) == [False, True]
    assert find_definitions(connection, ADA) == []


def test_a_definition_that_was_created_again_or_changed_meanwhile_is_not_erased(connection: PgConnection) -> None:
    again, changed = definition(connection, "again", ADA, removed=False), definition(connection, "changed", GRACE)
    for definition_id in (again, changed):
        assert list(erase_definition(connection, Matching(definition_id, "", False, True), ADA, OPERATOR))[-1] is False
    rows = fetch_all(connection, "SELECT payload FROM rowcall.job_definitions WHERE name IN ('again', 'changed')")
    assert {"user_id": 7} in [row["payload"] for row in rows]
    assert {"user_id": 8} in [row["payload"] for row in rows]


def test_a_locked_definition_is_skipped(fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        gone = definition(connection, "gone", ADA)
    with database.transaction(fresh_url) as holding, database.transaction(fresh_url) as connection:
        fetch_all(holding, "SELECT FROM rowcall.job_definitions WHERE id = %(id)s FOR UPDATE", {"id": gone})
        fetch_all(connection, "SET LOCAL lock_timeout = '1s'")
        [found] = find_definitions(connection, ADA)
        assert list(erase_definition(connection, found, ADA, OPERATOR))[-1] is False
