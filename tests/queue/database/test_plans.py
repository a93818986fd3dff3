"""The plan of each frequent statement with 100,000 finished and 100,000 live runs: it finds its rows by an index."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from rowcall.base import database
from rowcall.base.database import PgConnection
from rowcall.queue.cancel import ASK_TO_CANCEL, CANCEL, FORCE_CANCEL
from rowcall.queue.claims.claim import CLAIM, FINISH_AND_CLAIM, FINISH_AND_CLAIM_AHEAD, NO_RESULTS
from rowcall.queue.claims.claim_limited import CLAIM_LIMITED
from rowcall.queue.claims.request import ClaimRequest, with_lanes
from rowcall.queue.claims.sweep import FIRST_PLACE, OPEN_MOST, SWEEP
from rowcall.queue.clone import CHANGEABLE, CLONE
from rowcall.queue.finish import CANCELLED, FAIL, GIVE_UP, RELEASE, SNOOZE, SUCCEED, UNCLAIM, Done, done_parameters
from rowcall.queue.fragments import BY_INDEX
from rowcall.queue.keys.holders import FIND_HOLDERS, Keys
from rowcall.queue.keys.insert import ENQUEUE_MANY, sent_keys
from rowcall.queue.lease import EXPIRE, HEARTBEAT, OWNED, SAVE, Lease, parameters_of
from rowcall.queue.operate import RESCHEDULE, RETRY, RUN_NOW
from rowcall.queue.operations.actions import Action, change_many
from rowcall.queue.queues import LIST_QUEUES, make_queues
from rowcall.queue.views.explain import BEFORE_IT, RUN_AND_QUEUE
from rowcall.queue.views.filters import Filter
from rowcall.queue.views.inspect import ATTEMPTS_PAGE, GET_RUN, STATES
from rowcall.queue.views.live_workers import SERVING
from rowcall.queue.views.pages import Order
from rowcall.queue.views.stats import LONGEST_DUE, QUEUE, QUEUES
from rowcall.queue.workers import ABANDONED, UNSERVED
from tests.support.plans import looked_at, plan

MANY = 100_000
BATCH = 500
WORKER = "planned"

# A large queue's backlog beside a small queue; finished runs are older than live ones, as in production.
FILL = f"""
INSERT INTO rowcall.job_runs (job_type, status, finished_at, attempts, lease_no, idempotency_key, queue)
SELECT 'noop', 'succeeded', now(), 1, 1, 'old:' || number, 'large' FROM generate_series(1, {MANY}) AS number;
INSERT INTO rowcall.job_runs (job_type, queue, idempotency_key, natural_key)
SELECT 'noop', 'large', 'live:' || number, 'live:' || number FROM generate_series(1, {MANY}) AS number;
INSERT INTO rowcall.job_runs (job_type, queue) SELECT 'noop', 'small' FROM generate_series(1, 10);
INSERT INTO rowcall.job_runs (job_type, queue, status, locked_by, locked_until, attempts, lease_no)
SELECT 'noop', 'large', 'running', '{WORKER}', now() + interval '1 hour', 1, 1 FROM generate_series(1, {BATCH})
"""


@pytest.fixture(scope="module")
def filled(module_url: str) -> Iterator[PgConnection]:
    """Yield a connection to the filled database, in autocommit like a worker's."""
    connection = database.connect(module_url)
    connection.autocommit = True
    database.fetch_all(connection, FILL)
    database.fetch_all(connection, "VACUUM (ANALYZE) rowcall.job_runs")
    yield connection
    connection.close()


@pytest.fixture
def running(filled: PgConnection) -> list[int]:
    """Return the runs under the planned worker's leases."""
    rows = database.fetch_all(
        filled, "SELECT id FROM rowcall.job_runs WHERE locked_by = %(worker)s", {"worker": WORKER}
    )
    return [row["id"] for row in rows]


def request(queues: list[str] | None = None) -> ClaimRequest:
    return ClaimRequest({"noop": 60.0}, BATCH, queues)


def claiming(connection: PgConnection, queues: list[str] | None = None) -> dict[str, Any]:
    return with_lanes(connection, request(queues)).parameters(WORKER)


def test_a_claim_looks_at_what_it_takes_and_at_what_runs_before_it(filled: PgConnection) -> None:
    nodes = plan(filled, BY_INDEX + CLAIM, claiming(filled))
    assert looked_at(nodes) <= 4 * BATCH
    assert "job_runs_live" in {node.get("Index Name") for node in nodes}


def test_a_claim_ahead_looks_at_little_more_than_it_takes_also_where_only_slow_runs_wait(filled: PgConnection) -> None:
    for quick_types, claimed in ((["noop"], BATCH), ([], 0)):
        ahead = replace(with_lanes(filled, request()), limit=0, ahead=BATCH, quick_types=quick_types).parameters(WORKER)
        nodes = plan(filled, BY_INDEX + FINISH_AND_CLAIM_AHEAD, {**NO_RESULTS, **ahead})
        assert max(node["Actual Rows"] for node in nodes if node["Node Type"] == "ModifyTable") == claimed
        assert looked_at(nodes) <= 10 * BATCH


def test_a_worker_of_a_small_queue_does_not_walk_through_a_large_one(filled: PgConnection) -> None:
    assert looked_at(plan(filled, BY_INDEX + CLAIM, claiming(filled, ["small"]))) <= 50


def test_a_claim_under_a_limit_looks_at_no_more_than_there_is_room_for(filled: PgConnection) -> None:
    make_queues(filled, ["large"])
    limited = replace(with_lanes(filled, request()), declared={"large": 40}).parameters(WORKER)
    nodes = plan(filled, BY_INDEX + CLAIM_LIMITED, limited)
    # Running runs that were not claimed under the limit come before the first waiting one.
    assert looked_at(nodes) <= BATCH + 200
    assert max(node["Actual Rows"] for node in nodes if node["Node Type"] == "LockRows") == 40


def test_looking_at_queues_and_for_what_nobody_serves_counts_a_thousand_of_each_at_most(filled: PgConnection) -> None:
    known = {"declared": "{}", "silence": 0, "waited": 0}
    for sql in (LIST_QUEUES, UNSERVED, ABANDONED):
        assert looked_at(plan(filled, BY_INDEX + sql, known)) <= 2 * (1000 + BATCH) + 100


def test_explaining_a_run_at_the_end_of_a_long_line_counts_a_thousand_at_most(filled: PgConnection) -> None:
    [last] = database.fetch_all(
        filled,
        "SELECT id, queue, priority, run_at FROM rowcall.job_runs WHERE idempotency_key = %(key)s",
        {"key": f"live:{MANY}"},
    )
    assert looked_at(plan(filled, BY_INDEX + BEFORE_IT, last)) <= 1000 + BATCH
    serving = {"queue": "large", "job_type": "noop", "heartbeat": 40.0, "silence": 150.0}
    assert looked_at(plan(filled, BY_INDEX + SERVING, serving)) <= 1000
    assert looked_at(plan(filled, RUN_AND_QUEUE, {"run_id": last["id"], "declared": "{}"})) == 1


def test_looking_at_the_runs_that_requests_wait_for_reads_only_these(filled: PgConnection, running: list[int]) -> None:
    assert looked_at(plan(filled, BY_INDEX + STATES, {"run_ids": running})) == BATCH


def test_the_figures_of_all_queues_look_at_some_thousand_runs_of_each_lane(filled: PgConnection) -> None:
    nodes = plan(filled, BY_INDEX + QUEUES, {"known": ["none"], "declared": "{}"})
    assert looked_at(nodes) <= 2 * (1000 + 2000 + 1000 + BATCH)


def test_the_figures_of_one_queue_look_at_no_other_queue(filled: PgConnection) -> None:
    asked = {"queue": "small", "known": ["none"], "declared": "{}"}
    assert looked_at(plan(filled, BY_INDEX + QUEUE, asked)) <= 3 * 10 + 2
    assert looked_at(plan(filled, BY_INDEX + LONGEST_DUE, {"queue": "small"})) <= 3 * 10 + 2


def test_a_claim_with_nothing_due_looks_at_next_to_nothing(filled: PgConnection) -> None:
    assert looked_at(plan(filled, BY_INDEX + CLAIM, claiming(filled, ["none"]))) <= 50


def test_finishing_and_claiming_together_cost_no_more_than_apart(filled: PgConnection, running: list[int]) -> None:
    done = done_parameters([Done(Lease(WORKER, run_id, 1), None) for run_id in running])
    assert looked_at(plan(filled, BY_INDEX + FINISH_AND_CLAIM, {**claiming(filled), **done})) <= 5 * BATCH


def test_success_heartbeat_and_unclaim_reach_their_rows_by_id(filled: PgConnection, running: list[int]) -> None:
    done = done_parameters([Done(Lease(WORKER, run_id, 1), "{}") for run_id in running])
    same = parameters_of({Lease(WORKER, run_id, 1): "60" for run_id in running})
    for sql, parameters in ((SUCCEED, done), (HEARTBEAT, same), (OWNED, same), (UNCLAIM, same)):
        nodes = plan(filled, BY_INDEX + sql, parameters)
        assert looked_at(nodes) <= 2 * BATCH
        assert nodes[0]["Actual Rows"] == BATCH


def test_changing_many_reaches_them_by_their_ids(filled: PgConnection, running: list[int]) -> None:
    known = {**Filter(queue="large").parameters(), "run_ids": running, "who": "a test", "request_id": None}
    nodes = plan(filled, change_many(Action.CANCEL.value[1]), known)
    assert looked_at(nodes) <= 2 * BATCH
    assert nodes[0]["Actual Rows"] == BATCH


def test_a_claim_that_meets_expired_leases_looks_at_them_and_no_further(filled: PgConnection) -> None:
    before = "UPDATE rowcall.job_runs SET locked_until = now() - interval '1 second' WHERE locked_by = %(worker)s"
    nodes = plan(filled, BY_INDEX + CLAIM, claiming(filled, ["large"]), before)
    assert BATCH <= looked_at(nodes) <= 5 * BATCH


PAUSING = """
INSERT INTO rowcall.queues (name, paused_at) VALUES ('large', now())
ON CONFLICT (name) DO UPDATE SET paused_at = now()"""
DEEP = "SELECT run_at AS after_run_at, id AS after_id FROM rowcall.job_runs WHERE idempotency_key = %(key)s"


def test_a_sweep_of_a_paused_queue_looks_at_so_many_of_its_runs_wherever_it_goes_on(filled: PgConnection) -> None:
    first = database.fetch_all(filled, DEEP, {"key": f"live:{MANY // 2}"})[0]
    for place in (FIRST_PLACE, {**first, "after_queue": "large", "after_priority": 0}):
        nodes = plan(filled, BY_INDEX + SWEEP, {**claiming(filled), **place, "most": 1000}, PAUSING)
        assert 1000 <= looked_at(nodes) <= 1050


def test_a_sweep_of_an_open_queue_looks_at_its_head_only(filled: PgConnection) -> None:
    assert (
        looked_at(plan(filled, BY_INDEX + SWEEP, {**claiming(filled), **FIRST_PLACE, "most": MANY})) <= OPEN_MOST + 50
    )


ASKED = "UPDATE rowcall.job_runs SET cancel_requested_at = now() WHERE id = %(run_id)s"
RUN_OUT = "UPDATE rowcall.job_runs SET locked_until = now() - interval '1 second' WHERE id = %(run_id)s"
WAITS = "UPDATE rowcall.job_runs SET status = 'queued', locked_by = NULL, locked_until = NULL WHERE id = %(run_id)s"
ENDED = f"{WAITS}; UPDATE rowcall.job_runs SET status = 'dead', finished_at = now() WHERE id = %(run_id)s"

# Statements about one run, and the SQL that prepares a running run for each of them.
TO_ONE_RUN = {
    "look": (GET_RUN, ""),
    "save": (SAVE, ""),
    "fail": (FAIL, ""),
    "give up": (GIVE_UP, ""),
    "release": (RELEASE, ""),
    "snooze": (SNOOZE, ""),
    "cancelled": (CANCELLED, ASKED),
    "expire": (EXPIRE, RUN_OUT),
    "ask to cancel": (ASK_TO_CANCEL, ""),
    "force cancel": (FORCE_CANCEL, ""),
    "cancel": (CANCEL, WAITS),
    "run now": (RUN_NOW, WAITS),
    "reschedule": (RESCHEDULE, WAITS),
    "retry": (RETRY, ENDED),
    "clone": (CLONE, ENDED),
}


@pytest.mark.parametrize(("sql", "before"), TO_ONE_RUN.values(), ids=TO_ONE_RUN)
def test_what_happens_to_one_run_reaches_it_by_its_id(
    filled: PgConnection, running: list[int], sql: str, before: str
) -> None:
    ending = {"worker": WORKER, "run_id": running[0], "lease_no": 1, "attempt": 1, "delay": 1, "until": "2100-01-01"}
    why = {
        "error": "e",
        "error_type": "E",
        "stack": "",
        "permanent": False,
        "forensics": None,
        "saved": "7",
        "pause": 1,
        "who": "a test",
        "run_at": "2100-01-01",
    }
    keyless = dict.fromkeys([*CHANGEABLE, *Keys._fields]) | {
        "unique_mode": "ever",
        "key_owner": "app",
        "trace_parent": None,
    }
    nodes = plan(filled, sql, {**keyless, **ending, **why}, before)
    assert 1 <= looked_at(nodes) <= 5
    assert "job_runs_pkey" in {node.get("Index Name") for node in nodes}


def test_enqueuing_finds_equal_keys_by_their_index(filled: PgConnection) -> None:
    keys = [None, "live:1", "old:1", *(f"new:{number}" for number in range(BATCH))]
    options = {"job_type": "noop", "queue": "large", "priority": 0, "run_at": None, "max_attempts": 10}
    natural = [None, *(f"fact:{number}" for number in range(BATCH)), "live:1", "none"]
    requests = [Keys(natural_key=one, key=key) for one, key in zip(natural, keys, strict=True)]
    wanted = {"payloads": json.dumps([{}] * len(keys)), "created_by": None, **sent_keys(requests)}
    options |= {"unique_mode": "ever", "key_owner": "app", "trace_parent": None}
    nodes = plan(filled, ENQUEUE_MANY, {**options, **wanted})
    inserts = {node["Relation Name"]: node for node in nodes if node.get("Operation") == "Insert"}
    insert = inserts["job_runs"]
    assert (insert["Tuples Inserted"], insert["Conflicting Tuples"]) == (BATCH, 3)
    assert inserts["request_keys"]["Tuples Inserted"] == 0


def test_keys_find_their_runs_by_their_indexes(filled: PgConnection) -> None:
    sought = {"natural_keys": ["live:77", "old:77"], "keys": ["live:77", "old:77"]}
    nodes = plan(filled, FIND_HOLDERS, {**sought, "job_type": "noop", "key_owner": "app"})
    assert looked_at(nodes) <= 60
    indexes = {"job_runs_idempotency_key", "job_runs_held_key", "request_keys_pkey"}
    assert indexes <= {node.get("Index Name") for node in nodes}


@pytest.mark.parametrize("order", Order)
def test_attempts_are_found_by_their_key(filled: PgConnection, order: Order) -> None:
    page = {"run_id": 1, "beyond_lease_no": order.beginning, "limit": 50, "page_bytes": 1000}
    nodes = plan(filled, BY_INDEX + ATTEMPTS_PAGE[order], page)
    assert "job_attempts_pkey" in {node.get("Index Name") for node in nodes}


# Of this session's current transaction.
UPDATES = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables WHERE relname = 'job_runs'"


@pytest.mark.parametrize("sql", [CLAIM, HEARTBEAT], ids=["claim", "heartbeat"])
def test_claim_and_heartbeat_are_heap_only_updates(filled: PgConnection, running: list[int], sql: str) -> None:
    database.fetch_all(filled, "VACUUM rowcall.job_runs")  # the plans above were executed and rolled back
    if sql is HEARTBEAT:
        parameters = parameters_of({Lease(WORKER, run_id, 1): "7200" for run_id in running[:10]})
    else:
        parameters = claiming(filled, ["small"])
    with filled.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute(UPDATES)
        [(all_before, hot_before)] = cursor.fetchall()
        cursor.execute(BY_INDEX + sql, parameters)
        cursor.execute(UPDATES)
        [(all_after, hot_after)] = cursor.fetchall()
        cursor.execute("ROLLBACK")
    assert (all_after - all_before, hot_after - hot_before) == (10, 10)
