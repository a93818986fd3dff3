"""Operations of 10,000 runs: real workers are killed at any moment, and each run changes exactly once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rowcall.base import database
from rowcall.queue import operations
from rowcall.queue.operations import Action
from tests.support.gate import Gate, gate
from tests.support.operations import OPERATOR, start
from tests.support.processes import rowcall, running, wait_until
from tests.support.processes import start as begin
from tests.support.shop import Shop, kill

RUNS = 10_000

DEAD = """
INSERT INTO rowcall.job_runs (job_type, status, attempts, lease_no, created_at, finished_at, failed_at)
SELECT 'noop', 'dead', 1, 1, moment, moment, moment
FROM generate_series(1, %(runs)s) AS number, LATERAL (SELECT now() - number * interval '1 second') AS at(moment)
"""

# How often the audit log has a retry of each run, and what became of it.
OUTCOME = """
SELECT status, attempts, lease_no, retries, count(*) AS runs FROM (
    SELECT status, attempts, lease_no, (
        SELECT count(*) FROM rowcall.audit_log WHERE subject = 'run' AND subject_id = run.id AND action = 'retry'
    ) AS retries
    FROM rowcall.job_runs AS run WHERE job_type = 'noop'
) AS counted GROUP BY 1, 2, 3, 4
"""

EACH_RETRIED_ONCE = [{"status": "queued", "attempts": 0, "lease_no": 1, "retries": 1, "runs": RUNS}]

WORKER = ("worker", "once", "--queues", "maintenance")

# Writes to job_runs, counted from a worker's first: the claim, then two for each batch.
WRITES = (1, 2, 3, 4, 5, 6)


@pytest.fixture
def shop(environment: dict[str, str], fresh_url: str) -> Shop:
    made = Shop(environment, fresh_url)
    made.sql(DEAD, runs=RUNS)
    return made


@pytest.fixture
def barred(shop: Shop) -> Iterator[Gate]:
    """Yield the gate in the shop's database."""
    with gate(shop.url) as barred:
        yield barred


def retry_all(shop: Shop) -> int:
    """Start an operation on all dead runs."""
    with database.transaction(shop.url) as connection:
        return start(connection, Action.RETRY, status=("dead",))


def state(shop: Shop, operation_id: int) -> tuple[str, int, int]:
    with database.transaction(shop.url) as connection:
        row = operations.get_operation(connection, operation_id)
    return row["status"], row["changed"], row["refused"]


@pytest.mark.parametrize("carried_out", [True, False], ids=["carried out", "undone"])
def test_whichever_of_its_writes_a_worker_is_killed_at_no_run_is_lost_or_changed_twice(
    shop: Shop, barred: Gate, carried_out: bool
) -> None:
    operation_id = retry_all(shop)
    for number in WRITES:
        barred.hold_write(number)
        worker = begin(shop.environment, *WORKER)
        barred.wait()
        kill(worker)
        if carried_out:
            barred.open()
        else:
            barred.turn_away()
        shop.wait_for_the_server()
        shop.expire_leases()
        status, changed, refused = state(shop, operation_id)
        assert (status, refused, changed < RUNS) == ("running", 0, True)
        assert shop.count("queued") - changed in (0, 1), (
            "what is counted is changed; the one is the operation's own run"
        )
    assert changed > 0, "workers were killed in the middle"
    assert rowcall(shop.environment, *WORKER).returncode == 0
    assert state(shop, operation_id) == ("finished", RUNS, 0)
    assert shop.sql(OUTCOME) == EACH_RETRIED_ONCE


def test_a_worker_refuses_the_runs_that_are_locked_or_whose_key_is_held_and_changes_the_others(shop: Shop) -> None:
    shop.sql("UPDATE rowcall.job_runs SET natural_key = 'a', unique_mode = 'until_failed' WHERE id <= 2")
    with database.transaction(shop.url) as other:
        database.fetch_all(other, "SELECT FROM rowcall.job_runs WHERE id = 3 FOR UPDATE")
        operation_id = retry_all(shop)
        assert "succeeded 1, failed 0" in rowcall(shop.environment, *WORKER).stdout
    assert state(shop, operation_id) == ("finished", RUNS - 2, 2)
    refused = shop.sql("SELECT run_id, reason FROM rowcall.operation_refusals ORDER BY run_id")
    assert [row["run_id"] for row in refused] == [2, 3]


def test_a_command_and_workers_that_work_on_it_together_change_each_run_once(shop: Shop) -> None:
    with (
        running(shop.environment, "worker", "run", "--queues", "maintenance"),
        running(shop.environment, "worker", "run", "--queues", "maintenance"),
    ):
        shop.wait_for_workers(2)
        retried = rowcall(shop.environment, "runs", "retry", "--status", "dead")
    assert (retried.returncode, retried.stdout) == (0, "operation 1 is finished: 10,000 matched, 10,000 changed\n")
    assert shop.sql(OUTCOME) == EACH_RETRIED_ONCE


def test_a_stop_is_seen_before_the_next_batch_and_a_worker_that_is_killed_there_starts_nothing_again(
    shop: Shop, barred: Gate
) -> None:
    operation_id = retry_all(shop)
    barred.hold_change("NEW.changed >= 1000 AND NEW.status = 'running'", "operations")
    worker = begin(shop.environment, *WORKER)
    barred.wait()
    kill(worker)
    barred.turn_away()
    with database.transaction(shop.url) as connection:
        operations.stop(connection, operation_id, OPERATOR)
    shop.wait_for_the_server()
    shop.expire_leases()
    stopped = state(shop, operation_id)
    assert stopped == ("stopped", 500, 0)
    assert rowcall(shop.environment, *WORKER).returncode == 0
    assert state(shop, operation_id) == stopped
    assert shop.count("queued") == 500
    with database.transaction(shop.url) as connection:
        operations.continue_operation(connection, operation_id, OPERATOR)
    with running(shop.environment, "worker", "run", "--queues", "maintenance"):
        wait_until(lambda: state(shop, operation_id)[0] == "finished", "the operation is finished")
    assert shop.sql(OUTCOME) == EACH_RETRIED_ONCE
