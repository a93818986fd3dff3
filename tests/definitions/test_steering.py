"""Definitions are paused, resumed, run now and removed, and the audit log says by whom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rowcall import queue
from rowcall.base.database import PgConnection, Row, fetch_all, fetch_value
from rowcall.base.errors import DefinitionNotFound, JobTypeUnknown, KeyConflict, RunInvalid
from rowcall.definitions import get_definition, list_definitions, occurrences_of, pause, remove, resume, run_now
from rowcall.job_types import Catalogue
from tests.definitions.making import (
    CATALOGUE,
    OPERATOR,
    audited,
    decided,
    is_later_than_now,
    kept,
    last_audit,
    overdue,
    row_of,
)
from tests.support.rows import row_of as run_of

NIGHTLY: dict[str, Any] = {"job_type": "cleanup_nightly", "schedule": "17 3 * * *", "payload": {"day": "{date-1}"}}


def runs(connection: PgConnection) -> list[Row]:
    return fetch_all(connection, "SELECT * FROM rowcall.job_runs ORDER BY id")


def is_paused_for(connection: PgConnection, interval: str) -> None:
    """Back-date its pause by this interval."""
    fetch_all(connection, f"UPDATE rowcall.job_definitions SET paused_at = now() - interval '{interval}'")


# Pause and resume


def test_a_pause_is_written_down_with_who_and_what(connection: PgConnection) -> None:
    kept(connection)
    paused = pause(connection, "yearly", CATALOGUE, OPERATOR)
    assert paused["paused_at"] is not None
    assert paused["revision"] == 1
    audit = last_audit(connection)
    assert (audit["who"], audit["action"], audit["subject"], audit["request_id"]) == (
        *("test", "pause", "definition", "request-1"),
    )
    assert (audit["subject_id"], audit["before"]) == (paused["id"], {"name": "yearly", "paused_at": None})
    assert audit["after"] == {"name": "yearly", "paused_at": paused["paused_at"].isoformat()}


def test_a_pause_again_keeps_since_when(connection: PgConnection) -> None:
    kept(connection)
    pause(connection, "yearly", CATALOGUE, OPERATOR)
    is_paused_for(connection, "1 day")
    since = row_of(connection)["paused_at"]
    assert pause(connection, "yearly", CATALOGUE, OPERATOR)["paused_at"] == since


def test_what_had_come_before_the_pause_is_decided_as_if_there_were_none(connection: PgConnection) -> None:
    kept(connection)
    overdue(connection)
    pause(connection, "yearly", CATALOGUE, OPERATOR)
    assert decided(connection) == [("missed", 1), ("missed", 1), ("enqueued", 1)]


@pytest.mark.parametrize("catch_up", ["latest", "all"])
def test_a_pause_can_skip_what_had_come_before_it(connection: PgConnection, catch_up: str) -> None:
    kept(connection, catch_up=catch_up)
    overdue(connection)
    paused = pause(connection, "yearly", CATALOGUE, OPERATOR, skip_due=True)
    assert decided(connection) == [("skipped", 1)] * 3
    assert {one["reason"] for one in occurrences_of(connection, paused["id"], 10)} == {"paused"}
    resume(connection, "yearly", CATALOGUE, OPERATOR)
    assert runs(connection) == []


def test_what_came_during_the_pause_is_skipped_and_not_run_afterwards(connection: PgConnection) -> None:
    kept(connection, catch_up="all")
    pause(connection, "yearly", CATALOGUE, OPERATOR)
    is_paused_for(connection, "5 years")
    overdue(connection)
    resumed = resume(connection, "yearly", CATALOGUE, OPERATOR)
    assert decided(connection) == [("skipped", 1)] * 3
    assert {one["reason"] for one in occurrences_of(connection, resumed["id"], 10)} == {"paused"}
    assert (resumed["paused_at"], runs(connection)) == (None, [])
    assert is_later_than_now(connection, resumed["next_run_at"])
    audit = last_audit(connection)
    assert (audit["action"], audit["after"]["paused_at"]) == ("resume", None)
    assert audit["before"]["paused_at"] is not None


def test_what_nobody_could_decide_during_the_pause_is_not_run_afterwards_either(connection: PgConnection) -> None:
    kept(connection, catch_up="all")
    pause(connection, "yearly", CATALOGUE, OPERATOR)
    overdue(connection)
    knows_no_type = Catalogue()
    resumed = resume(connection, "yearly", knows_no_type, OPERATOR)
    assert decided(connection) == []
    assert is_later_than_now(connection, resumed["next_run_at"])


def test_resuming_what_is_not_paused_leaves_when_it_is_due(connection: PgConnection) -> None:
    due = kept(connection)["next_run_at"]
    assert resume(connection, "yearly", CATALOGUE, OPERATOR)["next_run_at"] == due
    overdue(connection)
    due = row_of(connection)["next_run_at"]
    assert resume(connection, "yearly", Catalogue(), OPERATOR)["next_run_at"] == due


def test_what_has_no_schedule_can_be_paused_too(connection: PgConnection) -> None:
    kept(connection, "hand", schedule=None)
    pause(connection, "hand", CATALOGUE, OPERATOR)
    assert resume(connection, "hand", CATALOGUE, OPERATOR)["next_run_at"] is None


# Remove


def test_a_removed_definition_is_found_no_more_and_what_came_of_it_stays(connection: PgConnection) -> None:
    definition = kept(connection)
    overdue(connection)
    pause(connection, "yearly", CATALOGUE, OPERATOR)
    removed = remove(connection, "yearly", OPERATOR)
    assert (removed["next_run_at"], removed["paused_at"]) == (None, None)
    assert list_definitions(connection) == []
    assert len(occurrences_of(connection, definition["id"], 10)) == 3
    [run] = runs(connection)
    assert (run["definition_id"], run["status"]) == (definition["id"], "queued")
    audit = last_audit(connection)
    assert (audit["who"], audit["action"], audit["before"]["schedule"]) == ("test", "remove", "@yearly")


# Run now


def test_a_run_by_hand_belongs_to_its_definition_and_has_its_options(connection: PgConnection) -> None:
    definition = kept(connection, payload={"a": 1}, queue="yearly", priority=-3, max_attempts=2)
    outcome = run_now(connection, "yearly", CATALOGUE, OPERATOR)
    run = run_of(connection, outcome.run_id)
    assert not outcome.replayed
    assert (run["definition_id"], run["job_type"], run["payload"]) == (definition["id"], "noop", {"a": 1})
    assert (run["queue"], run["priority"], run["max_attempts"]) == ("yearly", -3, 2)
    assert (run["created_by"], run["scheduled_for"], run["status"]) == ("test", None, "queued")
    assert row_of(connection)["next_run_at"] == definition["next_run_at"]
    assert decided(connection) == []
    audit = last_audit(connection)
    assert (audit["who"], audit["action"], audit["subject_id"]) == ("test", "run now", definition["id"])
    assert audit["after"] == {"run_id": outcome.run_id, "replayed": False}


def test_a_payload_without_the_time_makes_another_run_each_time(connection: PgConnection) -> None:
    # The type has a natural key, which would allow only one run.
    kept(connection, "fixed", **{**NIGHTLY, "payload": {"day": "2026-01-01"}})
    first, second = (run_now(connection, "fixed", CATALOGUE, OPERATOR) for _ in range(2))
    assert first.run_id != second.run_id
    assert {run["natural_key"] for run in runs(connection)} == {None}


def test_a_payload_with_the_time_is_done_once_for_that_time(connection: PgConnection) -> None:
    kept(connection, "nightly", **NIGHTLY)
    first, second = (run_now(connection, "nightly", CATALOGUE, OPERATOR) for _ in range(2))
    [run] = runs(connection)
    assert (first.run_id, first.replayed, second.run_id, second.replayed) == (run["id"], False, run["id"], True)
    yesterday = fetch_value(connection, "SELECT ((now() AT TIME ZONE 'UTC')::date - 1)::text")
    assert (run["payload"], run["natural_key"]) == ({"day": yesterday}, f"cleanup:{yesterday}")
    assert last_audit(connection)["after"] == {"run_id": run["id"], "replayed": True}


def test_a_request_for_what_a_definition_has_asked_for_finds_its_run(connection: PgConnection) -> None:
    kept(connection, "nightly", **NIGHTLY)
    made = run_now(connection, "nightly", CATALOGUE, OPERATOR)
    payload = run_of(connection, made.run_id)["payload"]
    again = queue.enqueue(connection, "cleanup_nightly", payload)
    assert (again.run_id, again.replayed) == (made.run_id, True)


def test_a_run_that_somebody_has_asked_for_already_is_the_one_however_it_was_asked_for(
    connection: PgConnection,
) -> None:
    yesterday = fetch_value(connection, "SELECT ((now() AT TIME ZONE 'UTC')::date - 1)::text")
    asked = queue.enqueue(connection, "cleanup_nightly", {"day": yesterday}, priority=9)
    kept(connection, "nightly", **NIGHTLY)
    outcome = run_now(connection, "nightly", CATALOGUE, OPERATOR)
    assert (outcome.run_id, outcome.replayed) == (asked.run_id, True)
    # The run was enqueued without the definition.
    assert run_of(connection, asked.run_id)["definition_id"] is None


def test_a_request_with_a_key_that_gets_the_run_of_its_fact_keeps_its_key(connection: PgConnection) -> None:
    kept(connection, "nightly", **NIGHTLY)
    yesterday = fetch_value(connection, "SELECT ((now() AT TIME ZONE 'UTC')::date - 1)::text")
    asked = queue.enqueue(connection, "cleanup_nightly", {"day": yesterday}, priority=9)
    for _ in range(2):
        outcome = run_now(connection, "nightly", CATALOGUE, OPERATOR, "t")
        assert (outcome.run_id, outcome.replayed) == (asked.run_id, True)
    # As if its natural key were that of another time.
    fetch_all(connection, "UPDATE rowcall.job_runs SET natural_key = 'cleanup:1999-12-31'")
    assert run_now(connection, "nightly", CATALOGUE, OPERATOR, "t").run_id == asked.run_id
    with pytest.raises(KeyConflict, match=f"'t' belongs to run {asked.run_id}"):
        queue.enqueue(connection, "noop", {}, key="t", key_owner=OPERATOR.key_owner)


def test_the_time_is_that_of_the_definitions_zone(connection: PgConnection) -> None:
    for name, zone in (("east", "Pacific/Kiritimati"), ("west", "Pacific/Pago_Pago")):
        kept(connection, name, payload={"day": "{date}"}, time_zone=zone)
        run_now(connection, name, CATALOGUE, OPERATOR)
    # The zones are 25 hours apart.
    east, west = (run["payload"]["day"] for run in runs(connection))
    assert east > west


def test_what_is_paused_or_has_no_schedule_can_be_run_by_hand(connection: PgConnection) -> None:
    kept(connection, "hand", schedule=None)
    kept(connection)
    pause(connection, "yearly", CATALOGUE, OPERATOR)
    for name in ("hand", "yearly"):
        assert not run_now(connection, name, CATALOGUE, OPERATOR).replayed


def test_what_can_not_be_run_any_more_says_why(connection: PgConnection) -> None:
    kept(connection, "nightly", **NIGHTLY)
    with pytest.raises(JobTypeUnknown, match="there is no job type 'cleanup_nightly'"):
        run_now(connection, "nightly", Catalogue(), OPERATOR)
    # As if its type had accepted such a payload when the definition was stored.
    fetch_all(connection, """UPDATE rowcall.job_definitions SET payload = '{"night": "{date}"}'""")
    with pytest.raises(RunInvalid, match="payload: day: Missing data for required field"):
        run_now(connection, "nightly", CATALOGUE, OPERATOR)
    assert audited(connection) == [("create", "nightly")]


# Unknown names

STEERING: list[Callable[[PgConnection, str], Any]] = [
    get_definition,
    lambda connection, name: pause(connection, name, CATALOGUE, OPERATOR),
    lambda connection, name: resume(connection, name, CATALOGUE, OPERATOR),
    lambda connection, name: remove(connection, name, OPERATOR),
    lambda connection, name: run_now(connection, name, CATALOGUE, OPERATOR),
]


@pytest.mark.parametrize("steer", STEERING, ids=["show", "pause", "resume", "remove", "run now"])
def test_an_unknown_name_is_told_with_where_the_known_ones_are(
    connection: PgConnection, steer: Callable[[PgConnection, str], Any]
) -> None:
    kept(connection, "gone")
    remove(connection, "gone", OPERATOR)
    before = audited(connection)
    for name in ("none", "gone", "Gone", "", "a\0b", "\udcff", "x" * 10_000):
        with pytest.raises(DefinitionNotFound) as refused:
            steer(connection, name)
        assert str(refused.value) == (
            f"there is no definition {name[:100]!r}; `rowcall definitions list` shows all definitions"
        )
    assert (audited(connection), runs(connection)) == (before, [])
