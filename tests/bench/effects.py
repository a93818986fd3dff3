"""Runs with one effect each, beside threads that commit the same three times for each run with plain SQL."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing
from typing import TypeVar

from rowcall.base.database import PgConnection, connect_watched, fetch_all, fetch_value
from rowcall.base.prepared import fetch_prepared_row
from rowcall.base.watched import WatchedConnection
from rowcall.effects.statements import STATEMENTS
from rowcall_worker.attempt.connections import ALONE, TOGETHER
from tests.bench.measures import SPAN, Bench

RUNS = 2_000
# As many as a worker has by default.
THREADS = 10

APP = "tests.bench.effect_app"

DUE = """
TRUNCATE rowcall.job_runs, rowcall.other_effects CASCADE;
INSERT INTO rowcall.job_runs (job_type, payload)
SELECT 'bench_text', jsonb_build_object('order_id', number) FROM generate_series(1, %(count)s) AS number
"""
CLAIM = """
UPDATE rowcall.job_runs SET status = 'running', attempts = 1, lease_no = 1, locked_by = 'bare',
    locked_until = now() + interval '1 hour', started_at = now()
RETURNING id
"""
INTENT = """
INSERT INTO rowcall.other_effects (kind, key, content_hash, run_id, lease_no)
VALUES ('bench_sms', %(id)s::text, 'hash', %(id)s, 1) RETURNING id
"""
APPLIED = """
UPDATE rowcall.other_effects SET state = 'applied', applied_at = now(), updated_at = now() WHERE id = %(effect)s
"""
FINISH = """
UPDATE rowcall.job_runs SET status = 'succeeded', finished_at = now(), locked_by = NULL, locked_until = NULL
WHERE id = %(id)s
"""
SESSIONS = "SELECT sessions FROM pg_stat_database WHERE datname = current_database()"


Connected = TypeVar("Connected", bound=PgConnection)


def plain(bench: Bench) -> float:
    """Return runs per second of threads that each commit the intent, what became of it, and the end of the run."""
    return _threads(bench, bench.connect, _perform)


def guarded(bench: Bench) -> float:
    """Return runs per second of the same threads with the ledger's statements, which lock the run and check its lease.

    This is what the guards cost without a worker: no claim, no handler, no heartbeat, no check of what is recorded.
    """
    return _threads(bench, lambda: connect_watched(bench.url, "rowcall bench"), _perform_guarded)


def _threads(bench: Bench, connect: Callable[[], Connected], perform: Callable[[Connected, list[int]], None]) -> float:
    with closing(bench.connect()) as connection:
        fetch_all(connection, DUE, {"count": RUNS})
        ids = [row["id"] for row in fetch_all(connection, CLAIM)]
    connections = [connect() for _ in range(THREADS)]
    for connection in connections:
        connection.autocommit = True
    shares = [ids[number::THREADS] for number in range(THREADS)]
    threads = [threading.Thread(target=perform, args=pair) for pair in zip(connections, shares, strict=True)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rate = RUNS / (time.monotonic() - began)
    for connection in connections:
        connection.close()
    return rate


def _perform(connection: PgConnection, ids: list[int]) -> None:
    for run_id in ids:
        effect = fetch_value(connection, INTENT, {"id": run_id})
        fetch_all(connection, APPLIED, {"effect": effect})
        fetch_all(connection, FINISH, {"id": run_id})


def _perform_guarded(connection: WatchedConnection, ids: list[int]) -> None:
    ledger = STATEMENTS["other_effects"]
    for run_id in ids:
        held = {"run_id": run_id, "lease_no": 1, "worker": "bare"}
        intent = {**held, "kind": "bench_sms", "key": str(run_id), "content_hash": "hash", "horizon": None}
        connection.prologue = TOGETHER
        row = fetch_prepared_row(connection, ledger.insert, intent)
        assert row
        connection.commit()
        connection.prologue = ALONE
        fetch_prepared_row(connection, ledger.apply, {**held, "id": row["id"], "reference": None})
        fetch_all(connection, FINISH, {"id": run_id})


def performed(bench: Bench) -> float:
    """Return runs per second of one worker."""
    with closing(bench.connect()) as connection:
        fetch_all(connection, DUE, {"count": RUNS})
        bench.start("worker", "once", ROWCALL_APP=APP).communicate()
        span = fetch_all(connection, SPAN)[0]
    assert span["finished"] == RUNS
    return float(span["finished"] / span["seconds"])


def sessions(bench: Bench) -> int:
    """Return how many sessions one worker opens for all these runs."""
    with closing(bench.connect()) as connection:
        fetch_all(connection, DUE, {"count": RUNS})
        before = fetch_value(connection, SESSIONS)
        bench.start("worker", "once", ROWCALL_APP=APP).communicate()
        return int(fetch_value(connection, SESSIONS) - before)
