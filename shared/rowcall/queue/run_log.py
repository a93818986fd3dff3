"""A run's log: the lines that its handler logs, written in the transaction of a heartbeat or of the attempt's end."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from rowcall.base.clock import elapsed
from rowcall.base.database import Connection, fetch_all
from rowcall.base.database.portions import divided
from rowcall.base.watched import INTERNAL_NAMES
from rowcall.queue.fragments import BY_INDEX, LEASE_KEY
from rowcall.queue.lease import Lease
from rowcall.status import Event, sources_of

# A run keeps its newest lines, whichever attempts they are from.
LINES_MOST = 1000
BYTES_MOST = 256 * 1024

# How much one statement writes: more would take much memory at once, and jsonb has a limit.
PORTION_CHARACTERS = 1024 * 1024

# Sent before WRITE_LOG: the heartbeat and the end of a run may write its log at the same time, and a statement sees
# only what was committed before it began.
LOCK_OWNED = f"""
SELECT id FROM rowcall.job_runs
WHERE id = ANY(%(log_run_ids)s::bigint[]) AND locked_by = %(worker)s AND status IN {sources_of(Event.HEARTBEAT)}
FOR NO KEY UPDATE;
"""

# Sent before the end of the attempt or after the renewal of the lease, in the same transaction, and only if there are
# lines.  The fence is that of every write of a worker: lines are looked up by their lease.  The worker numbers them
# within the lease, so a write that is repeated because its commit was not confirmed adds nothing.  `line_no` continues
# the numbers of earlier leases, so it follows the number of the newest row.  If a number is missing, its line was left
# out.  A line's age in seconds converts its time from the worker's clock to the database's.
WRITE_LOG = f"""
WITH owned AS MATERIALIZED (
    SELECT run.id, run.lease_no FROM rowcall.job_runs AS run
    WHERE run.id = ANY(%(log_run_ids)s::bigint[]) AND run.locked_by = %(worker)s
        AND run.status IN {sources_of(Event.HEARTBEAT)}
), sent AS MATERIALIZED (
    SELECT run.id, run.lease_no, (line ->> 0)::integer AS number, (line ->> 1)::float8 AS age, line ->> 2 AS level,
        line ->> 3 AS text
    FROM owned AS run CROSS JOIN LATERAL jsonb_array_elements(%(log)s::jsonb -> {LEASE_KEY}) AS line
), new AS MATERIALIZED (
    SELECT sent.id AS run_id, coalesce(newest.line_no - newest.written, 0) + sent.number AS line_no, sent.lease_no,
        sent.number AS lease_line_no, clock_timestamp() - sent.age * interval '1 second' AS logged_at, sent.level,
        sent.text
    FROM sent LEFT JOIN (
        SELECT owned.id, last.line_no, CASE WHEN last.lease_no = owned.lease_no THEN last.lease_line_no ELSE 0 END
            AS written
        FROM owned CROSS JOIN LATERAL (
            SELECT line_no, lease_no, lease_line_no FROM rowcall.run_logs WHERE run_id = owned.id
            ORDER BY line_no DESC LIMIT 1
        ) AS last
    ) AS newest ON newest.id = sent.id
    WHERE sent.number > coalesce(newest.written, 0)
), inserted AS (
    INSERT INTO rowcall.run_logs (run_id, line_no, lease_no, lease_line_no, logged_at, level, text)
    SELECT run_id, line_no, lease_no, lease_line_no, logged_at, level, text FROM new
    ON CONFLICT (run_id, line_no) DO NOTHING
), measured AS (
    SELECT place, row_number() OVER newest AS lines, sum(octet_length(text)) OVER newest AS bytes FROM (
        SELECT ctid AS place, run_id, line_no, text FROM rowcall.run_logs
        WHERE run_id = ANY(ARRAY(SELECT id FROM owned))
        UNION ALL SELECT NULL, run_id, line_no, text FROM new
    ) AS line
    WINDOW newest AS (PARTITION BY run_id ORDER BY line_no DESC)
)
DELETE FROM rowcall.run_logs WHERE ctid = ANY(ARRAY(
    SELECT place FROM measured WHERE place IS NOT NULL AND (lines > {LINES_MOST} OR bytes > {BYTES_MOST})
));
"""


class LogLine(NamedTuple):
    """A line: its number within the lease, its moment by the process's clock, its level and its text."""

    number: int
    at: float
    level: str
    text: str


Lines: TypeAlias = Mapping[Lease, Sequence[LogLine]]


def write_log(connection: Connection, lines: Lines) -> None:
    """Write the lines of one worker's runs, except those of a lost lease."""
    for portion in portions(lines):
        fetch_all(connection, BY_INDEX + LOCK_OWNED + WRITE_LOG, log_parameters(portion))


def portions(lines: Lines) -> Iterator[Lines]:
    """Divide the lines into portions, one for each statement; a portion has at least all lines of one run."""
    return map(dict, divided(lines.items(), _characters, PORTION_CHARACTERS))


def _characters(entry: tuple[Lease, Sequence[LogLine]]) -> int:
    return sum(len(line.text) for line in entry[1])


def with_log(sql: str, lines: Lines) -> str:
    """Return a statement that ends attempts, preceded, in the same round trip, by those that write their lines.

    A handler's own transaction may have any search_path.
    """
    return f"{INTERNAL_NAMES}{BY_INDEX}{LOCK_OWNED}{WRITE_LOG}{sql}" if lines else sql


def log_parameters(lines: Lines) -> dict[str, Any]:
    """Return the parameters of WRITE_LOG."""
    if not lines:
        return {}
    [worker] = {lease.worker for lease in lines}
    now = elapsed()
    log = {
        lease.key: [(line.number, now - line.at, line.level, line.text) for line in of_lease]
        for lease, of_lease in lines.items()
    }
    run_ids = [lease.run_id for lease in lines]
    return {"worker": worker, "log_run_ids": run_ids, "log": json.dumps(log, ensure_ascii=False)}
