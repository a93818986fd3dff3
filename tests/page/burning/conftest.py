"""A database with many runs, and how many blocks of it a screen reads."""

from __future__ import annotations

import flask
import pytest

from rowcall.base import database
from rowcall.base.database import Connection, fetch_all
from tests.page.conftest import Browse
from tests.page.filled import Filled, fill
from tests.page.visits import Visit
from tests.support.connections import blocks_read

SOME = 400

# Runs that have ended, the newest first, half of them dead after one failed attempt; and runs that wait in two lanes,
# the nearest first, half of them due, one of four after a failed attempt.
FILL = """
WITH ended AS (
    INSERT INTO rowcall.job_runs
        (job_type, status, created_at, run_at, finished_at, failed_at, error_type, attempts, lease_no)
    SELECT 'noop', CASE WHEN number %% 2 = 0 THEN 'dead' ELSE 'succeeded' END, moment, moment, moment,
        CASE WHEN number %% 2 = 0 THEN moment END, CASE WHEN number %% 2 = 0 THEN 'ValueError' END, 1, 1
    FROM generate_series(%(first)s + 1, %(last)s) AS number,
        LATERAL (SELECT now() - interval '1 hour' - number * interval '100 milliseconds') AS dated(moment)
    RETURNING id, status, finished_at
), waiting AS (
    INSERT INTO rowcall.job_runs
        (job_type, queue, created_at, run_at, status, failed_at, error_type, last_error, attempts, lease_no)
    SELECT 'noop', 'lane-' || number / 2 %% 2, moment,
        CASE WHEN number %% 2 = 0 THEN moment ELSE now() + (now() - moment) END,
        CASE WHEN fails THEN 'failed' ELSE 'queued' END, CASE WHEN fails THEN moment END,
        CASE WHEN fails THEN 'ValueError' END, CASE WHEN fails THEN 'no host' END, fails::integer, fails::integer
    FROM generate_series(%(first)s / 4 + 1, %(last)s / 4) AS number,
        LATERAL (SELECT number %% 8 IN (0, 5), now() - number * interval '1 second') AS dated(fails, moment)
    RETURNING id, status, created_at
)
INSERT INTO rowcall.job_attempts (run_id, lease_no, attempt, outcome, worker, started_at, ended_at, error_type, error)
SELECT id, 1, 1, CASE WHEN status = 'dead' THEN 'give up' ELSE 'fail' END, 'w', moment, moment, 'ValueError', 'no host'
FROM (TABLE ended UNION ALL TABLE waiting) AS run(id, status, moment) WHERE status IN ('dead', 'failed')
"""

# What autovacuum reads would be counted too.
NO_AUTOVACUUM = """
DO $$ BEGIN
    EXECUTE (
        SELECT string_agg(format('ALTER TABLE %s SET (autovacuum_enabled = off)', oid::regclass), ';')
        FROM pg_class WHERE relnamespace = 'rowcall'::regnamespace AND relkind = 'r'
    );
END $$
"""


@pytest.fixture(scope="module")
def visit(browse: Browse) -> Visit:
    """Sign in as an admin, who sees all screens."""
    return browse("admin")


@pytest.fixture(scope="module")
def filled(module_url: str) -> Filled:
    """Insert something of everything, and a few more runs."""
    with database.transaction(module_url) as connection:
        fetch_all(connection, NO_AUTOVACUUM)
        filled = fill(connection)
        add_runs(connection, 0, SOME)
    return filled


def add_runs(connection: Connection, first: int, last: int) -> None:
    """Add older runs: this number have ended, and a quarter as many wait."""
    fetch_all(connection, FILL, {"first": first, "last": last})


def blocks(app: flask.Flask, visit: Visit, path: str, connection: Connection) -> int:
    """Return how many blocks of Rowcall's tables and indexes this screen reads."""
    before = blocks_read(app, connection)
    screen = visit.get(path)
    assert screen.status < 500, (path, screen.text)
    assert "database did not return this part" not in screen.text, (path, screen.text)
    return blocks_read(app, connection) - before
