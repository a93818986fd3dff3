"""Groups failed attempts by minute, job type, queue and error: the part that counting and listing share."""

from __future__ import annotations

from rowcall.status import FAILURES, sql_list

# How long counts are kept: the week that is listed, and a day for the nights on which nothing was pruned.
KEPT = "interval '8 days'"

# What differs from run to run and may be about a person: quoted text, and words that contain a digit or an @.
PARTICULAR = r""""[^"]*"|''[^'']*''|\S*[0-9@]\S*"""


LINE_CHARACTERS = 200


def first_line(error: str) -> str:
    """Return SQL for the first line of this error, without its end if it is long."""
    return f"left(split_part({error}, chr(10), 1), {LINE_CHARACTERS})"


def ellipsis(error: str) -> str:
    """Return SQL for what people see in place of the end of a long first line."""
    return f"CASE WHEN length(split_part({error}, chr(10), 1)) > {LINE_CHARACTERS} THEN '…' ELSE '' END"


def masked(error: str) -> str:
    """Return SQL for the first line of this error with its particulars masked."""
    return f"regexp_replace({first_line(error)}, '{PARTICULAR}', '*', 'g')"


def error_key(error: str) -> str:
    """Return SQL for a key that distinguishes this error from others of its type."""
    return f"left(md5({masked(error)}), 16)"


# The time of the newest attempt that was counted.  The counts need no other memory of where they stopped.
COUNTED_UNTIL = """coalesce((
        SELECT last_at FROM rowcall.failure_counts ORDER BY minute DESC, last_at DESC LIMIT 1
    ), '-infinity')"""

# Uses the index job_attempts_failed.
NOT_COUNTED = f"""
    SELECT run_id, lease_no, ended_at, error_type, error FROM rowcall.job_attempts
    WHERE outcome IN {sql_list(FAILURES)} AND ended_at > greatest({COUNTED_UNTIL}, now() - {KEPT})"""

# The groups of a CTE `attempts`, each with its newest attempt.
GROUPED = f"""named AS (
    SELECT date_trunc('minute', ended_at) AS minute, run.job_type, run.queue,
        coalesce(attempts.error_type, '') AS error_type, {error_key("error")} AS error_key,
        ended_at, run_id, attempts.lease_no
    FROM attempts JOIN rowcall.job_runs AS run ON run.id = attempts.run_id
), grouped AS MATERIALIZED (
    SELECT minute, job_type, queue, error_type, error_key, count(*) AS failures, max(ended_at) AS last_at,
        (array_agg(run_id ORDER BY ended_at DESC, run_id DESC))[1] AS run_id,
        (array_agg(lease_no ORDER BY ended_at DESC, run_id DESC))[1] AS lease_no
    FROM named GROUP BY minute, job_type, queue, error_type, error_key
)"""
