"""Workers as processes: due runs are done, failed ones are tried again, and stopping loses nothing."""

from __future__ import annotations

import json
import os
import signal
from datetime import timedelta
from typing import Any

import pytest

from rowcall import queue
from rowcall.base import database
from rowcall.status import Status
from tests.support.processes import APPS, ROOT, insist, read_until, rowcall, start, wait_until
from tests.support.rows import row_of, run_in

PACK = "shop_pack"


@pytest.fixture
def shop(environment: dict[str, str], worker_url: str) -> dict[str, str]:
    """Return the environment of a worker of the shop, on a database for this test."""
    return {
        **environment,
        "DATABASE_URL": worker_url,
        "ROWCALL_APP": "shop",
        "PYTHONPATH": f"{APPS}:{ROOT}",
        "ROWCALL_POLL": "0.05",
    }


def ask(shop: dict[str, str], payload: dict[str, Any]) -> int:
    """Insert a run of the shop as enqueue would; the test process does not know the shop's types."""
    written = {
        "payload": f"'{json.dumps({'ends': 'well', **payload})}'",
        "attempts": "0",
        "lease_no": "0",
        "max_attempts": "2",
    }
    with database.transaction(shop["DATABASE_URL"]) as connection:
        row = run_in(connection, Status.QUEUED, job_type=f"'{PACK}'", queue="'packing'", **written)
    run_id: int = row["id"]
    return run_id


def ask_by_command(shop: dict[str, str], payload: dict[str, Any]) -> int:
    """Enqueue a run with the command, as the shop's operator would."""
    asked = rowcall(shop, "enqueue", PACK, json.dumps(payload), "--json")
    assert asked.returncode == 0, asked.stderr
    run_id: int = json.loads(asked.stdout)["run_id"]
    return run_id


def row(shop: dict[str, str], run_id: int) -> dict[str, Any]:
    with database.transaction(shop["DATABASE_URL"]) as connection:
        return row_of(connection, run_id)


def outcome(shop: dict[str, str], ends: str) -> dict[str, Any]:
    """Return the row of a run that ends like this, after one `worker once`."""
    run_id = ask(shop, {"order_id": 1, "ends": ends})
    worked = rowcall(shop, "worker", "once")
    assert worked.returncode == 0, worked.stderr
    return row(shop, run_id)


def test_once_does_what_is_due_says_so_and_goes(shop: dict[str, str]) -> None:
    run_id = ask_by_command(shop, {"order_id": 7})
    worked = rowcall(shop, "worker", "once")
    assert (worked.returncode, worked.stdout.startswith("claimed 1, succeeded 1, failed 0, dead 0 in ")) == (0, True)
    run = row(shop, run_id)
    assert (run["status"], run["result"], run["queue"]) == ("succeeded", {"packed": 7, "attempt": 1}, "packing")


def test_once_with_nothing_due_does_nothing(shop: dict[str, str]) -> None:
    assert rowcall(shop, "worker", "once").stdout.startswith("claimed 0, succeeded 0")


def test_once_drains_more_than_it_can_hold_at_a_time(shop: dict[str, str]) -> None:
    with database.transaction(shop["DATABASE_URL"]) as connection:
        queue.enqueue_many(connection, "noop", [{}] * 500)
    assert "claimed 500, succeeded 500" in rowcall(shop, "worker", "once", "--concurrency", "3").stdout


def test_once_claims_no_more_than_its_limit(shop: dict[str, str]) -> None:
    with database.transaction(shop["DATABASE_URL"]) as connection:
        queue.enqueue_many(connection, "noop", [{}] * 5)
    assert "claimed 3, succeeded 3" in rowcall(shop, "worker", "once", "--limit", "3").stdout


@pytest.mark.parametrize(
    "worker_url", [pytest.param("pooled", marks=pytest.mark.program("pgbouncer"))], indirect=True
)  # tests/queue/races does this without a pooler, three times
def test_ten_at_once_do_each_run_once(shop: dict[str, str]) -> None:
    with database.transaction(shop["DATABASE_URL"]) as connection:
        queue.enqueue_many(connection, "noop", [{"n": n} for n in range(300)])
    workers = [start(shop, "worker", "once") for _ in range(10)]
    for worker in workers:
        worker.communicate()
    with database.transaction(shop["DATABASE_URL"]) as connection:
        ended = database.fetch_all(
            connection, "SELECT status, attempts, lease_no, count(*) FROM rowcall.job_runs GROUP BY 1, 2, 3"
        )
    assert ended == [{"status": "succeeded", "attempts": 1, "lease_no": 1, "count": 300}]


def test_a_failure_is_tried_again_until_the_attempts_are_used_up_and_both_are_kept(shop: dict[str, str]) -> None:
    run = outcome(shop, "badly")
    assert (run["status"], run["attempts"], run["error_type"]) == ("dead", 2, "ValueError")
    with database.transaction(shop["DATABASE_URL"]) as connection:
        kept = queue.attempts_of(connection, run["id"])
    assert [(attempt["attempt"], attempt["outcome"]) for attempt in kept] == [(1, "fail"), (2, "give up")]


def test_the_log_of_all_attempts_is_kept_with_the_run(shop: dict[str, str]) -> None:
    run = outcome(shop, "with a log")
    assert (run["status"], run["attempts"]) == ("succeeded", 2)
    with database.transaction(shop["DATABASE_URL"]) as connection:
        log = queue.log_end(connection, run["id"], 10)
    assert [(line["lease_no"], line["text"]) for line in log] == [(n, f"attempt {n} of order 1") for n in (1, 2)]


def test_what_is_kept_of_an_error_holds_no_password(shop: dict[str, str]) -> None:
    run = outcome(shop, "badly")
    assert run["last_error"] == "order 1: postgresql://me:***@db/shop did not answer"
    assert "Traceback" in run["last_stack"]
    assert "hush" not in run["last_stack"]


def test_an_error_that_trying_again_cannot_help_ends_it_at_once(shop: dict[str, str]) -> None:
    run = outcome(shop, "for good")
    assert (run["status"], run["attempts"], run["last_error"]) == ("dead", 1, "no such order")


def test_a_handler_may_say_when_to_try_again(shop: dict[str, str]) -> None:
    run = outcome(shop, "later")
    assert run["status"] == "failed"
    assert (run["run_at"] - run["failed_at"]).total_seconds() == 3600


def test_a_handler_may_ask_to_wait_without_losing_an_attempt(shop: dict[str, str]) -> None:
    run = outcome(shop, "not yet")
    assert (run["status"], run["attempts"]) == ("queued", 0)
    assert run["run_at"] > run["updated_at"] + timedelta(days=299)


def test_a_handler_that_exits_fails_its_run_and_not_the_worker(shop: dict[str, str]) -> None:
    run = outcome(shop, "exit")
    assert (run["status"], run["error_type"]) == ("dead", "SystemExit")


def test_a_result_that_cannot_be_stored_ends_that_run_alone(shop: dict[str, str]) -> None:
    other = ask(shop, {"order_id": 2})
    run = outcome(shop, "unstorable")
    assert run["status"] == "dead"
    assert "null character" in run["last_error"]
    assert row(shop, other)["status"] == "succeeded"


def test_a_run_left_behind_by_a_dead_worker_is_taken_over(shop: dict[str, str]) -> None:
    with database.transaction(shop["DATABASE_URL"]) as connection:
        left = run_in(connection, Status.RUNNING, locked_until="now() - interval '1 second'")
    assert "claimed 1, succeeded 1" in rowcall(shop, "worker", "once").stdout
    run = row(shop, left["id"])
    assert (run["status"], run["attempts"], run["lease_no"]) == ("succeeded", 3, 4)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_worker_that_stays_stops_when_told_and_gives_back_what_it_could_not_finish(
    shop: dict[str, str], number: signal.Signals
) -> None:
    run_id = ask(shop, {"order_id": 1, "ends": "never"})
    worker = start(shop, "worker", "run", "--grace", "0.1")
    wait_until(lambda: row(shop, run_id)["progress"], "the handler has started")
    worker.send_signal(number)
    said, _ = worker.communicate()
    assert worker.returncode == 0, said
    run = row(shop, run_id)
    assert (run["status"], run["attempts"], run["locked_by"]) == ("queued", 1, None)
    assert "run released" in said


def test_a_second_signal_ends_it_at_once(shop: dict[str, str]) -> None:
    run_id = ask(shop, {"order_id": 1, "ends": "never"})
    worker = start(shop, "worker", "run", "--grace", "3600")
    wait_until(lambda: row(shop, run_id)["progress"], "the handler has started")
    worker.terminate()
    read_until(worker, "worker stopping")
    insist(worker)
    worker.communicate()
    assert worker.returncode == 128 + signal.SIGTERM


def test_a_worker_that_stays_does_what_comes_later(shop: dict[str, str]) -> None:
    worker = start(shop, "worker", "run")
    run_id = ask_by_command(shop, {"order_id": 3})
    wait_until(lambda: row(shop, run_id)["status"] == "succeeded", "the run succeeds")
    worker.terminate()
    worker.communicate()
    assert worker.returncode == 0


@pytest.mark.parametrize(
    "worker_url", ["direct"], indirect=True
)  # a pooler replaces a lost connection before the worker notices
def test_a_worker_outlives_its_connection_and_finishes_what_it_did_meanwhile(shop: dict[str, str]) -> None:
    worker = start(shop, "worker", "run")
    first = ask(shop, {"order_id": 1})
    wait_until(lambda: row(shop, first)["status"] == "succeeded", "the first run succeeds")
    with database.transaction(shop["DATABASE_URL"]) as connection:
        database.fetch_all(
            connection,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name LIKE 'rowcall worker%'",
        )
    second = ask(shop, {"order_id": 2})
    wait_until(lambda: row(shop, second)["status"] == "succeeded", "the second run succeeds")
    worker.terminate()
    said, _ = worker.communicate()
    assert said.count('"database lost"') == 1
    assert said.count('"database back"') == 1


def test_a_worker_of_an_older_release_leaves_new_types_alone(shop: dict[str, str]) -> None:
    run_id = ask(shop, {"order_id": 1})
    without_app = {name: value for name, value in shop.items() if name != "ROWCALL_APP"}
    assert "claimed 0" in rowcall(without_app, "worker", "once").stdout
    assert row(shop, run_id)["status"] == "queued"


def test_a_worker_does_not_start_on_another_schema(shop: dict[str, str]) -> None:
    assert rowcall(shop, "migrate", "--to", "base", "--yes").returncode == 0
    refused = rowcall(shop, "worker", "once")
    assert refused.returncode == 1
    assert refused.stderr.strip().endswith("run `rowcall migrate`")


def test_a_worker_that_was_told_its_types_takes_no_others(shop: dict[str, str]) -> None:
    run_id = ask(shop, {"order_id": 1})
    assert "claimed 0" in rowcall(shop, "worker", "once", "--types", "noop,shop_clock").stdout
    assert row(shop, run_id)["status"] == "queued"
    for option in ("--types", "--queues"):
        assert f"{option} names nothing: leave it out" in rowcall(shop, "worker", "once", option, " , ").stderr
    refused = rowcall(shop, "worker", "once", "--types", "nop")
    assert (refused.returncode, "there is no job type 'nop'" in refused.stderr) == (1, True)


def test_a_worker_that_was_told_its_queues_serves_no_others(shop: dict[str, str]) -> None:
    run_id = ask(shop, {"order_id": 1})
    assert "claimed 0" in rowcall(shop, "worker", "once", "--queues", "mail").stdout
    assert "claimed 1" in rowcall(shop, "worker", "once", "--queues", "mail,packing").stdout
    assert row(shop, run_id)["status"] == "succeeded"


def test_several_processes_work_as_one_and_end_as_one(shop: dict[str, str]) -> None:
    worker = start(shop, "worker", "run", "--processes", "2")
    try:
        with database.transaction(shop["DATABASE_URL"]) as connection:
            serving = "SELECT count(*) FROM rowcall.workers WHERE stopped_at IS NULL"
            connection.autocommit = True
            wait_until(lambda: database.fetch_value(connection, serving) == 2, "two workers serve")
        run_id = ask(shop, {"order_id": 1})
        wait_until(lambda: row(shop, run_id)["status"] == "succeeded", "the run succeeds")
    finally:
        worker.terminate()
        said, _ = worker.communicate()
    assert worker.returncode == 0, said
    with database.transaction(shop["DATABASE_URL"]) as connection:
        assert database.fetch_value(connection, serving) == 0


def test_when_one_of_several_processes_dies_all_end_with_an_error(shop: dict[str, str]) -> None:
    worker = start(shop, "worker", "run", "--processes", "2")
    alive = "SELECT pid FROM rowcall.workers WHERE stopped_at IS NULL"
    with database.transaction(shop["DATABASE_URL"]) as connection:
        connection.autocommit = True
        wait_until(lambda: len(database.fetch_all(connection, alive)) == 2, "two workers serve")
        victim = database.fetch_value(connection, alive)
    os.kill(victim, signal.SIGKILL)
    said, _ = worker.communicate()
    assert worker.returncode == 1, said
    assert "a worker process was killed by signal 9" in said


def test_a_worker_whose_tables_change_under_it_ends_with_an_error_instead_of_standing_still(
    shop: dict[str, str],
) -> None:
    worker = start(shop, "worker", "run", "--grace", "0")
    with database.transaction(shop["DATABASE_URL"]) as connection:
        connection.autocommit = True
        wait_until(
            lambda: database.fetch_value(connection, "SELECT count(*) FROM rowcall.workers"), "the worker serves"
        )
        database.fetch_all(connection, "ALTER TABLE rowcall.job_runs RENAME COLUMN lease_no TO lease_number")
    said, _ = worker.communicate()
    assert worker.returncode == 1
    assert "lease_no does not exist" in said
