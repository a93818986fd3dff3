"""What each list and each single thing of the HTTP API, and each screen of the page, reads of large tables."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import click
import flask

from rowcall.access import api_keys
from rowcall.access.audit import Operator
from rowcall.base import database, logs
from rowcall.base.database import PgConnection
from rowcall.local_postgres.server import open_server
from rowcall.queue.failures.count import count_failures
from rowcall.queue.series.histogram import BUCKETS
from rowcall_api.app import create_app
from rowcall_migrations.migrate import migrate
from tests.page.addresses import addresses as screens
from tests.page.filled import fill
from tests.page.visits import Visit
from tests.support.connections import blocks_read, disconnect
from tests.support.superuser import let_do_all

SIZES = (1_000_000, 10_000_000)

# Reading up to twice as much is what a deeper index and colder pages cost.
GROWS = 2.0

# The newest run that is dead.
DEAD_ID = SIZES[-1] + 10_000

# Autovacuum would read the same tables.
OPTIONS = {"autovacuum": "off", "max_wal_size": "8GB", "checkpoint_timeout": "1h", "fsync": "off"}

# What waits, once: 10,000 runs in ten queues; and one of each other thing that a route shows.
WAITING = """
INSERT INTO rowcall.job_definitions (name, job_type) VALUES ('nightly', 'type-1');
INSERT INTO rowcall.job_runs (job_type, queue, run_at)
SELECT 'type-' || number % 20, CASE WHEN number = 1 THEN 'nightly' ELSE 'queue-' || number % 10 END,
    now() + number * interval '1 second' - interval '1 hour'
FROM generate_series(1, 10000) AS number;
INSERT INTO rowcall.operations
    (action, filter, status, matched, counted_all, requested_by, key_owner, request_fingerprint)
VALUES ('retry', '{}', 'stopped', 0, true, 'bench', 'app', '');
INSERT INTO rowcall.generated_files (type, date, key, run_id, lease_no, content_hash, state, applied_at)
VALUES ('report', '2026-01-01', 'csv', 1, 1, '', 'applied', now())
"""

# Finished runs, one a second, the newest last.  One of 100 is dead and has an attempt and a log, one of 10 has a key,
# an email and a line in the audit log, and one of 50 belongs to the definition.
FINISHED = """
INSERT INTO rowcall.job_runs
    (id, job_type, queue, status, payload, created_at, run_at, finished_at, failed_at, error_type, attempts, lease_no,
    idempotency_key, definition_id)
OVERRIDING SYSTEM VALUE
SELECT number + 10000, 'type-' || number %% 20, 'queue-' || number %% 10,
    CASE WHEN number %% 100 = 0 THEN 'dead' ELSE 'succeeded' END,
    jsonb_build_object('user_id', number), moment, moment, moment,
    CASE WHEN number %% 100 = 0 THEN moment END, CASE WHEN number %% 100 = 0 THEN 'ValueError' END, 1, 1,
    CASE WHEN number %% 10 = 0 THEN 'key-' || number END,
    CASE WHEN number %% 50 = 0 THEN (SELECT id FROM rowcall.job_definitions WHERE name = 'nightly') END
FROM generate_series(%(first)s, %(last)s) AS number,
    LATERAL (SELECT now() - (%(most)s - number) * interval '1 second' AS moment) AS moments;
INSERT INTO rowcall.job_attempts (run_id, lease_no, attempt, outcome, worker, started_at, ended_at, error_type, error)
SELECT id, 1, 1, 'give up', 'bench', finished_at, finished_at, error_type, 'no answer from host ' || id %% 7
FROM rowcall.job_runs WHERE id BETWEEN %(first)s + 10000 AND %(last)s + 10000 AND status = 'dead';
INSERT INTO rowcall.run_logs (run_id, line_no, lease_no, lease_line_no, logged_at, level, text)
SELECT id, line, 1, line, finished_at, 'info', 'asking the host, try ' || line
FROM rowcall.job_runs, generate_series(1, 20) AS line
WHERE id BETWEEN %(first)s + 10000 AND %(last)s + 10000 AND status = 'dead';
INSERT INTO rowcall.sent_emails (idempotency_key, run_id, lease_no, content_hash, state, applied_at)
SELECT 'mail:' || id, id, 1, '', 'applied', created_at FROM rowcall.job_runs
WHERE id BETWEEN %(first)s + 10000 AND %(last)s + 10000 AND id %% 10 = 0;
INSERT INTO rowcall.audit_log (at, who, action, subject, subject_id)
SELECT created_at, 'api:bench', 'retry', 'run', id FROM rowcall.job_runs
WHERE id BETWEEN %(first)s + 10000 AND %(last)s + 10000 AND id %% 10 = 0;
"""

# What two workers count in 8 days, which is how long counts are kept.
COUNTS = f"""
INSERT INTO rowcall.run_counts
SELECT minute, 'type-' || type, 'worker-' || worker, 1, 0, 0, 0, 0, 0, histogram, histogram
FROM generate_series(date_trunc('minute', now()) - interval '8 days', now(), interval '1 minute') AS minute,
    generate_series(0, 19) AS type, generate_series(1, 2) AS worker, array_fill(1, ARRAY[{BUCKETS}]) AS histogram
"""

# Begins the ids of what the page's screens need beyond those of the finished runs.
BEYOND = "ALTER TABLE rowcall.job_runs ALTER id RESTART WITH 1000000000"

# What a screen says of a part that took too long.
MISSING = "the database did not return this part"


class Cost(NamedTuple):
    """What a request costs."""

    milliseconds: float
    blocks: int


# Filters and orders of lists, besides each list without any.
MORE = (
    "/v1/runs?order=asc",
    "/v1/runs?status=dead",
    "/v1/runs?job_type=type-7",
    "/v1/runs?job_type=none",
    "/v1/runs?definition=nightly",
    "/v1/runs?key=key-10000000",
    "/v1/runs/{dead_id}/attempts",
    "/v1/runs/{dead_id}/log",
    "/v1/runs?error_type=ValueError&order=asc",
    "/v1/runs?count=true",
    "/v1/effects?order=asc",
    "/v1/effects?state=unknown",
    "/v1/effects?run_id={dead_id}",
    "/v1/audit?order=asc",
    "/v1/audit?subject=run&subject_id={dead_id}",
    "/v1/audit?who=nobody",
)

# A part of a route, such as <int:run_id>.
PART = re.compile(r"<(?:[^<>:]*:)?(\w+)>")

# These wait, or send a file.
LEFT_OUT = ("/v1/events", "/content")


def compare_sizes() -> None:
    """Print what each route and each screen reads with fewer and with more runs, and how long it takes."""
    with tempfile.TemporaryDirectory() as home, open_server(Path(home), "auto", options=OPTIONS) as server:
        url = let_do_all(Path(home), server.url)
        migrate(url, lock_timeout=3)
        with _client(url) as (app, key, connection):
            database.fetch_all(connection, WAITING)
            database.fetch_all(connection, COUNTS)
            database.fetch_all(connection, BEYOND)
            filled = fill(connection)
            parts = {"run_id": 500, "dead_id": DEAD_ID, "effect_id": 1, "file_id": 1, "operation_id": 1, "key_id": 1}
            found: dict[str, list[Cost]] = {}
            for size, before in zip(SIZES, (0, *SIZES), strict=False):
                _fill(url, before, size)
                visit = Visit(app, key)
                for path in addresses(app, {**parts, "name": "nightly", "kind": "sent_emails"}):
                    found.setdefault(path, []).append(_cost(app, partial(_ask, app, key, path), connection))
                for path in screens(app, filled):
                    found.setdefault(f"/admin{path}", []).append(_cost(app, partial(_see, visit, path), connection))
    click.echo(f"\nblocks and milliseconds of a request, with {SIZES[0]:,} and {SIZES[1]:,} runs")
    for path, (few, many) in sorted(found.items(), key=lambda entry: -entry[1][1].blocks / max(entry[1][0].blocks, 1)):
        ratio = many.blocks / max(few.blocks, 1)
        click.echo(
            f"  {path:55} {few.blocks:>8,} {many.blocks:>8,}   {few.milliseconds:>7,.0f} {many.milliseconds:>7,.0f}"
            f"   {ratio:5.2f}{'  GROWS' if ratio > GROWS else ''}"
        )


def addresses(app: flask.Flask, parts: Mapping[str, object]) -> list[str]:
    """Return the address of each route of Rowcall's that shows something, and those with filters."""
    routes = [
        PART.sub(lambda part: str(parts[part[1]]), rule.rule)
        for rule in app.url_map.iter_rules()
        if "GET" in (rule.methods or ())
        and rule.rule.startswith("/v1/")
        and not rule.rule.endswith(LEFT_OUT)
        and app.view_functions[rule.endpoint].__module__.startswith("rowcall_api.")
    ]
    return [*routes, *(path.format(**parts) for path in MORE)]


@contextmanager
def _client(url: str) -> Iterator[tuple[flask.Flask, str, PgConnection]]:
    with database.transaction(url) as connection:
        key = api_keys.create_key(connection, "bench", ["admin"], Operator("bench"))
    app, connection = create_app(url), database.connect(url)
    logs.use(logs.Log(level="error"))
    connection.autocommit = True
    yield app, key, connection
    connection.close()
    disconnect(app)


def _fill(url: str, before: int, size: int) -> None:
    """Add older finished runs up to this size, in portions, count them, and let the planner know them.

    On a connection of its own, whose statistics are complete when it ends.
    """
    began = time.monotonic()
    most = SIZES[-1]
    with closing(database.connect(url)) as connection:
        connection.autocommit = True
        for first in range(most - size + 1, most - before + 1, 500_000):
            values = {"first": first, "last": min(first + 499_999, most - before), "most": most}
            database.fetch_all(connection, FINISHED, values)
        while count_failures(connection):
            pass
        database.fetch_all(connection, "VACUUM ANALYZE")
    click.echo(f"filled up to {size:,} runs in {time.monotonic() - began:,.0f} s")


def _cost(app: flask.Flask, request: Callable[[], None], connection: PgConnection) -> Cost:
    """Return how many blocks one request reads, and how long it takes on new connections."""
    before = blocks_read(app, connection)
    began = time.monotonic()
    request()
    return Cost((time.monotonic() - began) * 1000, blocks_read(app, connection) - before)


def _ask(app: flask.Flask, key: str, path: str) -> None:
    answer = app.test_client().get(path, headers={"Authorization": f"Bearer {key}"})
    assert answer.status_code == 200, (path, answer.get_data(as_text=True))


def _see(visit: Visit, path: str) -> None:
    screen = visit.get(path)
    assert screen.status in {200, 404}, (path, screen.text)
    if MISSING in screen.text:
        click.echo(f"  /admin{path}: a part is missing")
