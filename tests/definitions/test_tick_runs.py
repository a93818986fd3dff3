"""The runs that a tick enqueues: their payloads and keys, and definitions that cannot be decided."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import ModuleType

from rowcall.base.database import PgConnection, fetch_all, fetch_value
from rowcall.definitions import pause, resume, tick
from rowcall.job_types import Catalogue, JobType, catalogue
from rowcall.job_types.builtin import AnyPayload
from rowcall.queue import enqueue
from tests.definitions.keeping import OPERATOR, asleep_since, kept, move, next_of, occurred, runs_of
from tests.definitions.ticking import BOUND, ticked


def test_a_payload_that_names_the_time_is_that_times_and_its_key_the_business_facts(connection: PgConnection) -> None:
    row = kept(
        connection,
        job_type="cleanup_nightly",
        schedule="17 3 * * *",
        time_zone="Europe/Berlin",
        catch_up="all",
        payload={"day": "{date-1}"},
    )
    move(connection, row, datetime(2026, 3, 27, 12, tzinfo=UTC))
    fetch_all(connection, "UPDATE rowcall.job_definitions SET schedule = '17 3 28-30 3 *'")
    ticked(connection, bound=3)
    told = [(run["payload"]["day"], run["natural_key"]) for run in runs_of(connection, row)]
    assert told == [(f"2026-03-{day}", f"cleanup:2026-03-{day}") for day in (27, 28, 29)]


def test_a_fact_that_has_a_run_already_gets_no_second_one(connection: PgConnection) -> None:
    row = kept(connection, job_type="cleanup_nightly", schedule="* * * * *", payload={"day": "{date-1}"})
    nominal = asleep_since(connection, row, "1 minute")
    day = (nominal.astimezone(UTC).date() - timedelta(days=1)).isoformat()
    enqueue(connection, "cleanup_nightly", {"day": day})
    ticked(connection)
    [occurrence] = occurred(connection, row)
    assert (occurrence["outcome"], occurrence["run_id"]) == ("skipped", None)
    assert occurrence["reason"] == f"another run holds the natural key cleanup:{day}"
    assert fetch_value(connection, "SELECT count(*) FROM rowcall.job_runs") == 1


def test_a_payload_that_is_always_the_same_runs_each_time_whatever_its_natural_key(connection: PgConnection) -> None:
    row = kept(
        connection, job_type="cleanup_nightly", schedule="* * * * *", catch_up="all", payload={"day": "2026-03-28"}
    )
    asleep_since(connection, row, "3 minutes")
    ticked(connection)
    assert [run["natural_key"] for run in runs_of(connection, row)] == [None] * 3


def test_what_its_type_has_refused_for_15_minutes_is_missed_and_says_why(connection: PgConnection) -> None:
    row = kept(connection, job_type="cleanup_nightly", schedule="* * * * *", payload={"day": "2026-03-28"})
    fetch_all(connection, "UPDATE rowcall.job_definitions SET payload = '{\"day\": \"someday\"}', catch_up = 'all'")
    asleep_since(connection, row, "16 minutes")
    ticked(connection)
    occurrence = occurred(connection, row)[0]
    assert occurrence["outcome"] == "missed"
    assert "cleanup_nightly refuses the payload: payload: day: Not a valid date" in occurrence["reason"]


def test_a_definition_that_cannot_be_decided_is_told_of_and_holds_up_no_other(connection: PgConnection) -> None:
    broken, whole = kept(connection, "broken"), kept(connection, "whole")
    for row in (broken, whole):
        asleep_since(connection, row, "2 hours")
    fetch_all(connection, "UPDATE rowcall.job_definitions SET time_zone = 'Mars/Olympus' WHERE name = 'broken'")
    done = ticked(connection)
    assert [(one.name, one.revision) for one in done.broken] == [("broken", 1)]
    assert "Mars/Olympus" in done.broken[0].error
    assert (len(occurred(connection, broken)), len(occurred(connection, whole))) == (0, 2)


def test_a_definition_that_cannot_be_decided_can_be_mended(connection: PgConnection) -> None:
    row = kept(connection, "broken")
    asleep_since(connection, row, "2 hours")
    fetch_all(connection, "UPDATE rowcall.job_definitions SET time_zone = 'Mars/Olympus' WHERE name = 'broken'")
    pause(connection, "broken", catalogue(), OPERATOR)
    resume(connection, "broken", catalogue(), OPERATOR)
    mended = kept(connection, "broken")
    assert (mended["time_zone"], mended["revision"], mended["paused_at"]) == ("UTC", 2, None)
    assert ticked(connection).broken == []


def test_a_types_own_code_that_fails_holds_up_no_other_definition(connection: PgConnection) -> None:
    module = ModuleType("team")
    vars(module).update(
        failing=JobType("failing", schema=AnyPayload, key=lambda payload: payload["missing"]),
        working=JobType("working", schema=AnyPayload),
    )
    rows = [kept(connection, name, payload={"at": "{time}"}) for name in ("failing", "working")]
    fetch_all(connection, "UPDATE rowcall.job_definitions SET job_type = name")
    for row in rows:
        asleep_since(connection, row, "2 hours")
    done = tick(connection, "worker-1", Catalogue(module), BOUND)
    assert [one.error for one in done.broken] == ["job type 'failing': its key raised KeyError: 'missing'"]
    assert [len(occurred(connection, row)) for row in rows] == [0, 2]


def test_a_type_that_is_not_known_here_is_left_to_who_knows_it(connection: PgConnection) -> None:
    row = kept(connection)
    fetch_all(connection, "UPDATE rowcall.job_definitions SET job_type = 'of_a_newer_version'")
    first = asleep_since(connection, row, "2 hours")
    done = ticked(connection)
    assert (sum(done.decided.values()), done.broken) == (0, [])
    assert next_of(connection, row) == first
