"""The archive table: pruned runs move there with everything that belonged to them, and readers go on to find them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from rowcall import queue
from rowcall.access.audit import Operator
from rowcall.base.database import PgConnection, Row, fetch_all, fetch_value
from rowcall.base.errors import ArchiveBusy, MonthNotArchived, NaturalKeyHeld, RunArchived, RunNotFound, RunPruned
from rowcall.queue.fragments import RUN_COLUMNS
from rowcall.queue.retention import archive, erase
from rowcall.queue.retention.walk import PruneOptions, prune_runs
from rowcall.queue.views.filters import Filter
from rowcall.queue.views.pages import Order
from rowcall.status import Status
from tests.support.housekeeping import TYPES, Rehearsal, ended, expire, left
from tests.support.rows import run_in
from tests.support.run_log import insert_lines

OPERATOR = Operator("tests")

ONE_DAY = timedelta(days=1)


def to_table(connection: PgConnection, **policy: Any) -> dict[str, int]:
    """Prune into the archive table, and return the counts."""
    checked = TYPES["prune_runs"].checked({"archive": "table", **policy})
    *_, last = prune_runs(checked, PruneOptions(Rehearsal(connection), to_table=True))
    return dict(last.counts)


def at(connection: PgConnection, moment: str, status: Status = Status.SUCCEEDED, **columns: str) -> int:
    """Insert a run that was created and ended at this moment; return its id."""
    times = dict.fromkeys(("created_at", "finished_at", "updated_at"), f"'{moment}'")
    run_id: int = run_in(connection, status, **times, **columns)["id"]
    return run_id


def answer(connection: PgConnection, run_id: int, *keys: str) -> None:
    """Remember that requests with these idempotency keys were answered with this run."""
    fetch_all(
        connection,
        "INSERT INTO rowcall.request_keys SELECT key, 'app', %(run_id)s, 'f' FROM unnest(%(keys)s::text[]) AS key",
        {"run_id": run_id, "keys": [*keys]},
    )


def listed(connection: PgConnection, order: Order = Order.DESC, limit: int = 50, **criteria: Any) -> list[int]:
    """Return the ids of all pages of a list."""
    page = queue.list_runs(connection, Filter(**criteria), limit, order=order)
    ids = [run["id"] for run in page.runs]
    while page.next is not None:
        page = queue.list_runs(connection, Filter(**criteria), limit, page.next, order=order)
        ids += [run["id"] for run in page.runs]
    return ids


def without(row: Row, *names: str) -> Row:
    """Return a row without these columns."""
    return {name: value for name, value in row.items() if name not in names}


def test_a_pruned_run_is_read_as_before_with_its_attempts_and_its_log(connection: PgConnection) -> None:
    run_id = ended(connection, Status.DEAD, "1 year", payload="'{\"amount\": 0.10}'", last_error="'E'")["id"]
    fetch_all(
        connection,
        f"INSERT INTO rowcall.job_attempts (run_id, lease_no, attempt, outcome, worker, forensics) VALUES"
        f""" ({run_id}, 2, 2, 'give up', 'b', NULL), ({run_id}, 1, 1, 'fail', 'a', '{{"rss": 1}}')""",
    )
    insert_lines(connection, run_id, [1, 2, 3])
    other = ended(connection, Status.DEAD, "1 year")["id"]
    fetch_all(
        connection,
        f"INSERT INTO rowcall.job_attempts (run_id, lease_no, attempt, outcome, worker)"
        f" VALUES ({other}, 1, 1, 'fail', 'other')",
    )
    insert_lines(connection, other, [1], "other ")
    run, attempts = queue.get_run(connection, run_id), queue.attempts_of(connection, run_id)
    log, missing = queue.log_end(connection, run_id, 2), queue.left_out(connection, run_id)
    pages = [queue.attempts_page(connection, run_id, beyond, 1) for beyond in (0, 1)]
    counts = to_table(connection)
    assert (counts["deleted"], counts["made_bare"], counts["archived"]) == (2, 0, 2)
    assert left(connection) == []
    assert queue.get_run(connection, run_id) == {**run, "archived": True}
    assert queue.attempts_of(connection, run_id) == attempts
    assert [queue.attempts_page(connection, run_id, beyond, 1) for beyond in (0, 1)] == pages
    assert queue.log_end(connection, run_id, 2) == log
    assert queue.log_page(connection, run_id, 0, 9) == (queue.log_end(connection, run_id, 9), False)
    assert queue.left_out(connection, run_id) == missing
    assert fetch_value(connection, f"SELECT payload::text FROM rowcall.archived_runs WHERE id = {run_id}") == (
        '{"amount": 0.10}'
    )


def test_a_run_with_a_key_stays_bare_and_is_read_and_listed_once_with_its_content(connection: PgConnection) -> None:
    run = ended(connection, Status.DEAD, "1 year", idempotency_key="'k'", payload="'{\"n\": 1}'")
    assert to_table(connection)["made_bare"] == 1
    assert left(connection) == [run["id"]]
    assert queue.get_run(connection, run["id"])["payload"] == {"n": 1}
    assert listed(connection) == [run["id"]]
    assert listed(connection, key="k") == [run["id"]]
    assert queue.count_runs(connection, Filter())["value"] == 1
    assert to_table(connection)["archived"] == 0
    assert expire(connection, keep_days=30) == 1
    assert listed(connection, key="k") == [run["id"]]
    assert queue.get_run(connection, run["id"])["payload"] == {"n": 1}


def test_an_archived_run_is_found_by_every_key_that_it_has_answered(connection: PgConnection) -> None:
    run_id = ended(connection, Status.SUCCEEDED, "1 year", idempotency_key="'first'")["id"]
    other = ended(connection, Status.SUCCEEDED, "1 year", idempotency_key="'other'")["id"]
    answer(connection, run_id, "first", "before")
    to_table(connection)
    answer(connection, run_id, "after")
    assert expire(connection, keep_days=30) == 2
    for key in ("first", "before", "after"):
        assert listed(connection, key=key) == [run_id], key
    assert listed(connection, key="other") == [other]
    kept = "SELECT further_keys FROM rowcall.archived_runs ORDER BY id"
    assert [row["further_keys"] for row in fetch_all(connection, kept)] == [["after", "before"], None]


def test_an_erased_run_that_was_never_archived_is_listed(connection: PgConnection) -> None:
    other = ended(connection, Status.SUCCEEDED, "1 year")["id"]
    run_id = ended(connection, Status.SUCCEEDED, "1 hour", idempotency_key="'k'")["id"]
    erase.erase(connection, [run_id], OPERATOR)
    assert to_table(connection)["archived"] == 1
    assert listed(connection) == [run_id, other]
    assert queue.get_run(connection, run_id)["archived"] is False


def test_lists_merge_live_and_archived_runs_in_every_order(connection: PgConnection) -> None:
    old = [at(connection, f"2024-{month:02}-0{day} 12:00+00") for month in (11, 12) for day in (1, 2)]
    dead = [at(connection, "2024-12-03 12:00+00", Status.DEAD, failed_at="'2024-12-03 12:00+00'") for _ in range(2)]
    new = [ended(connection, Status.SUCCEEDED, "1 hour")["id"] for _ in range(2)]
    failed = [ended(connection, Status.DEAD, "1 hour", failed_at="now()")["id"]]
    to_table(connection)
    assert left(connection) == [*new, *failed]
    for limit in (1, 2, 50):
        assert listed(connection, limit=limit) == [*old, *dead, *new, *failed][::-1]
        assert listed(connection, Order.ASC, limit) == [*old, *dead, *new, *failed]
        assert listed(connection, limit=limit, status=(Status.DEAD,)) == [*dead, *failed][::-1]
    after, before = datetime(2024, 12, 1, tzinfo=UTC), datetime(2024, 12, 3, tzinfo=UTC)
    assert listed(connection, created_after=after, created_before=before) == old[:1:-1]
    assert queue.count_runs(connection, Filter(created_after=after, created_before=before))["value"] == 2


def test_runs_lie_by_the_month_in_which_they_were_created_in_utc(connection: PgConnection) -> None:
    fetch_all(connection, "SET LOCAL TIME ZONE 'Asia/Kolkata'")
    for moment in ("2024-12-31 23:59+00", "2025-01-01 00:00+00", "2025-01-31 23:59+00", "2025-02-01 00:01+00"):
        at(connection, moment)
    to_table(connection, batch=2)
    fetch_all(connection, "ANALYZE rowcall.archived_runs")
    assert [(row["month"], row["runs"]) for row in archive.months(connection)] == [
        (date(2024, 12, 1), 1),
        (date(2025, 1, 1), 2),
        (date(2025, 2, 1), 1),
    ]


def test_what_cannot_be_pruned_is_not_archived(connection: PgConnection) -> None:
    young, live = ended(connection, Status.SUCCEEDED, "1 hour"), run_in(connection, Status.QUEUED)
    assert to_table(connection)["archived"] == 0
    assert left(connection) == [young["id"], live["id"]]
    assert archive.months(connection) == []


def test_an_archived_run_can_be_cloned_and_nothing_else(connection: PgConnection) -> None:
    run_id = ended(connection, Status.DEAD, "1 year", payload="'{\"n\": 1}'")["id"]
    to_table(connection)
    run = queue.get_run(connection, run_id)
    assert queue.allowed_events(run) == ()
    for change in (queue.retry, queue.cancel_any, queue.run_now):
        with pytest.raises(RunArchived, match=f"run {run_id} is dead \\(it is in the archive\\): .* is not allowed;"):
            change(connection, run_id, OPERATOR)
    clone = queue.clone(connection, run_id, OPERATOR)
    assert queue.get_run(connection, clone.run_id)["payload"] == {"n": 1}
    explained = queue.explain(connection, run_id, {}, 10)
    assert explained.message.endswith("; it is in the archive")
    assert explained.commands == (f"rowcall runs clone {run_id}",)


def test_a_bare_run_is_cloned_from_the_archive_and_a_retry_says_so(connection: PgConnection) -> None:
    run_id = ended(connection, Status.DEAD, "1 year", idempotency_key="'k'", payload="'{\"n\": 1}'")["id"]
    to_table(connection)
    with pytest.raises(RunArchived):
        queue.retry(connection, run_id, OPERATOR)
    clone = queue.clone(connection, run_id, OPERATOR)
    assert queue.get_run(connection, clone.run_id)["payload"] == {"n": 1}


def test_an_archived_run_that_holds_its_natural_key_is_not_cloned_and_the_error_says_why(
    connection: PgConnection,
) -> None:
    run_id = ended(connection, Status.SUCCEEDED, "1 year", natural_key="'order-1'", content_fingerprint="'f'")["id"]
    to_table(connection)
    with pytest.raises(NaturalKeyHeld, match=f"nothing while run {run_id} holds it"):
        queue.clone(connection, run_id, OPERATOR)


def test_erasing_empties_the_archive_too(connection: PgConnection) -> None:
    keyed = ended(connection, Status.DEAD, "1 year", idempotency_key="'k'", payload="'{\"user\": 7}'")["id"]
    plain = ended(connection, Status.DEAD, "1 year", last_error="'E'", payload="'{\"user\": 7}'")["id"]
    other = ended(connection, Status.DEAD, "1 year", payload="'{\"user\": 8}'")["id"]
    fetch_all(
        connection,
        f"INSERT INTO rowcall.job_attempts (run_id, lease_no, attempt, outcome, worker)"
        f" VALUES ({plain}, 1, 1, 'fail', 'a')",
    )
    insert_lines(connection, plain, [1])
    to_table(connection)
    found = erase.find(connection, Filter(payload={"user": 7}))
    assert sorted(found.finished) == [keyed, plain]
    assert erase.find_ids(connection, [keyed, plain]).finished == [keyed, plain]
    assert erase.erase(connection, found.finished, OPERATOR) == [keyed, plain]
    for run_id in (keyed, plain):
        run = queue.get_run(connection, run_id)
        assert (run["payload"], run["last_error"], queue.attempts_of(connection, run_id)) == ({}, None, [])
        assert queue.log_end(connection, run_id, 9) == []
        assert queue.was_erased(connection, run_id)
        with pytest.raises((RunArchived, RunPruned)):
            queue.retry(connection, run_id, OPERATOR)
        with pytest.raises(RunPruned, match="its payload was erased"):
            queue.clone(connection, run_id, OPERATOR)
    assert queue.get_run(connection, other)["payload"] == {"user": 8}


def test_months_are_dropped_when_they_ended_long_enough_ago(connection: PgConnection) -> None:
    a_year_ago = fetch_value(connection, "SELECT date_trunc('month', now() AT TIME ZONE 'UTC') - interval '1 year'")
    gone = [at(connection, moment) for moment in ("2019-02-03 12:00+00", f"{a_year_ago - ONE_DAY:%Y-%m-%d} 23:59+00")]
    kept = [at(connection, f"{a_year_ago:%Y-%m-%d} 00:00+00")]
    to_table(connection)
    assert listed(connection) == [*gone, *kept][::-1]
    counts = to_table(connection, keep_archive_months=12)
    assert counts["months_dropped"] == 2
    assert listed(connection) == kept
    with pytest.raises(RunNotFound):
        queue.get_run(connection, gone[0])


def test_a_month_is_dropped_only_with_as_many_runs_as_were_exported(connection: PgConnection) -> None:
    run_id = at(connection, "2020-05-06 12:00+00")
    to_table(connection)
    with pytest.raises(ArchiveBusy, match="it no longer has exactly the runs that were exported"):
        archive.drop_month(connection, date(2020, 5, 1), expected=0)
    assert listed(connection) == [run_id]
    assert archive.drop_month(connection, date(2020, 5, 1), expected=1) == 1
    with pytest.raises(MonthNotArchived, match="no runs of 2020-05"):
        archive.drop_month(connection, date(2020, 5, 1))


def test_a_run_that_is_in_the_archive_already_is_pruned_all_the_same(connection: PgConnection) -> None:
    run_id = at(connection, "2020-05-06 12:00+00")
    columns = RUN_COLUMNS.replace("held_key, ", "").replace("held_key,", "")
    fetch_all(connection, "CREATE TEMPORARY TABLE before ON COMMIT DROP AS SELECT * FROM rowcall.job_runs")
    to_table(connection)
    fetch_all(
        connection,
        f"INSERT INTO rowcall.job_runs ({columns}) OVERRIDING SYSTEM VALUE SELECT {columns} FROM before",
    )
    counts = to_table(connection)
    assert (counts["deleted"], counts["archived"]) == (1, 0)
    assert listed(connection) == [run_id]
