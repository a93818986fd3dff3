"""The table refuses rows that the status machine does not allow, whoever writes them."""

from __future__ import annotations

import psycopg2
import pytest

from rowcall.base.database import Connection, fetch_all
from rowcall.status import FINAL, Status
from tests.support.rows import run_in

NOW = "now()"


def test_every_status_of_the_machine_can_stand_in_the_table_and_no_other(connection: Connection) -> None:
    for status in Status:
        run_in(connection, status)
    with pytest.raises(psycopg2.errors.CheckViolation, match="job_runs_status_known"):
        fetch_all(connection, "INSERT INTO rowcall.job_runs (job_type, status) VALUES ('noop', 'paused')")


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.RUNNING])
@pytest.mark.parametrize(
    "lease", [{"locked_by": "'w'"}, {"locked_until": NOW}, {"locked_by": "'w'", "locked_until": NOW}]
)
def test_no_lease_without_running(connection: Connection, status: Status, lease: dict[str, str]) -> None:
    with pytest.raises(psycopg2.errors.CheckViolation, match="job_runs_lease_iff_running"):
        run_in(connection, status, **lease)


@pytest.mark.parametrize("missing", ["locked_by", "locked_until"])
def test_no_running_without_a_whole_lease(connection: Connection, missing: str) -> None:
    with pytest.raises(psycopg2.errors.CheckViolation, match="job_runs_lease_iff_running"):
        run_in(connection, Status.RUNNING, **{missing: "NULL"})


@pytest.mark.parametrize("status", Status)
def test_an_end_is_dated_and_only_an_end(connection: Connection, status: Status) -> None:
    wrong = "NULL" if status in FINAL else NOW
    with pytest.raises(psycopg2.errors.CheckViolation, match="job_runs_finished_iff_final"):
        run_in(connection, status, finished_at=wrong)


@pytest.mark.parametrize("attempts", ["-1", "6"])
def test_attempts_stay_within_their_bounds(connection: Connection, attempts: str) -> None:
    with pytest.raises(psycopg2.errors.CheckViolation, match="job_runs_attempts_bounded"):
        run_in(connection, Status.QUEUED, attempts=attempts)


LARGE = """to_jsonb(repeat('x', 65535))"""


@pytest.mark.parametrize(
    "columns",
    [
        {"result": LARGE},
        {"result": "jsonb_build_array(1e300::numeric ^ 300)"},
        {"progress": f"jsonb_build_object('saved', {LARGE})"},
    ],
    ids=["result", "a number that is long as text", "saved"],
)
def test_what_is_kept_of_a_run_is_small(connection: Connection, columns: dict[str, str]) -> None:
    with pytest.raises(psycopg2.errors.CheckViolation, match="job_runs_(result|saved)_bounded"):
        run_in(connection, Status.QUEUED, **columns)


def test_what_is_kept_of_a_run_may_be_as_large_as_the_limit(connection: Connection) -> None:
    largest = "to_jsonb(repeat('x', 65534))"
    run_in(connection, Status.QUEUED, result=largest, progress=f"jsonb_build_object('share', 1, 'saved', {largest})")
