"""Runs with one effect each, beside threads that commit the same three times for each run with plain SQL."""

from __future__ import annotations

import threading
import time
from contextlib import closing

from rowcall.base.database import PgConnection, fetch_all, fetch_value
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


def plain(bench: Bench) -> float:
    """Return runs per second of threads that each commit the intent, what became of it, and the end of the run."""
    with closing(bench.connect()) as connection:
        fetch_all(connection, DUE, {"count": RUNS})
        ids = [row["id"] for row in fetch_all(connection, CLAIM)]
    connections = [bench.connect() for _ in range(THREADS)]
    shares = [ids[number::THREADS] for number in range(THREADS)]
    threads = [threading.Thread(target=_perform, args=pair) for pair in zip(connections, shares, strict=True)]
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
