"""Read the series: a point for each step of a range, even where nothing happened, and the deploys in it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from rowcall.base.database import Connection, Row, fetch_all, fetch_value
from rowcall.base.errors import FilterInvalid
from rowcall.queue.fragments import BY_INDEX
from rowcall.queue.series.histogram import BUCKETS, quantile
from rowcall.queue.series.record import End

# The lengths of a step in seconds.  Steps are aligned to multiples of their length in UTC.
STEPS = {"1m": 60, "5m": 300, "1h": 3600, "1d": 86400}

# A day by the minute is 1440 points.
POINTS_MOST = 1500

DEFAULT_RANGE = timedelta(hours=1)

QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


def _summed(histogram: str) -> str:
    """Return SQL for the sums of the buckets; summing each is much faster than unnesting them."""
    return f"ARRAY[{', '.join(f'sum({histogram}[{number}])' for number in range(1, BUCKETS + 1))}]::bigint[]"


# The rows of the range, by primary key.
SERIES = f"""
SELECT floor(date_part('epoch', minute) / %(seconds)s)::bigint AS step,
    {", ".join(f"sum({end})::bigint AS {end}" for end in End)},
    {_summed("waiting")} AS waiting,
    {_summed("running")} AS running
FROM rowcall.run_counts
WHERE minute >= %(since)s::timestamptz AND minute < %(until)s::timestamptz
    AND (%(job_type)s::text IS NULL OR job_type = %(job_type)s)
GROUP BY step
"""

NOW = "SELECT now()"

# There are few versions.
DEPLOYS = """
SELECT version, first_seen_at AS at FROM rowcall.worker_versions
WHERE first_seen_at >= %(since)s::timestamptz AND first_seen_at < %(until)s::timestamptz
ORDER BY first_seen_at, version
"""


@dataclass(frozen=True)
class Series:
    """The points of a range, and the first time that a worker of a new version started within it."""

    since: datetime
    until: datetime
    points: list[Row]
    deploys: list[Row]


def read_series(
    connection: Connection,
    since: datetime | None = None,
    until: datetime | None = None,
    step: str = "1m",
    job_type: str | None = None,
) -> Series:
    """Return the points of a range, of one job type if it is given; the default is the last hour."""
    if until is None:
        now: datetime = fetch_value(connection, NOW)
        until = now
    if since is None:
        since = until - DEFAULT_RANGE
    steps = steps_of(since, until, step)
    asked = {"since": _begin(steps.start, step), "until": _begin(steps.stop, step)}
    rows = fetch_all(connection, BY_INDEX + SERIES, {**asked, "seconds": STEPS[step], "job_type": job_type})
    found = {row["step"]: row for row in rows}
    points = [{"at": _begin(number, step), **_point(found.get(number, {}))} for number in steps]
    return Series(asked["since"], asked["until"], points, fetch_all(connection, DEPLOYS, asked))


def steps_of(since: datetime, until: datetime, step: str) -> range:
    """Return the numbers of the steps that the range touches; refuse an empty range, and one with too many steps."""
    if since >= until:
        raise FilterInvalid({"from": f"must be before the end of the range, which is {until.isoformat()}"})
    steps = _steps(since, until, step)
    if len(steps) > POINTS_MOST:
        fitting = next((name for name in STEPS if len(_steps(since, until, name)) <= POINTS_MOST), None)
        why = f"gives {len(steps)} points, and the limit is {POINTS_MOST}: "
        advice = f"use {fitting}, or a shorter range" if fitting else "use a shorter range"
        raise FilterInvalid({"step": why + advice})
    return steps


def _steps(since: datetime, until: datetime, step: str) -> range:
    length = STEPS[step]
    return range(math.floor(since.timestamp() / length), math.ceil(until.timestamp() / length))


def _begin(number: int, step: str) -> datetime:
    return datetime.fromtimestamp(number * STEPS[step], UTC)


def _point(row: Mapping[str, Any]) -> Row:
    ends = {end.value: row.get(end, 0) for end in End}
    times = {name: _quantiles(row.get(name, ())) for name in ("waiting", "running")}
    return {**ends, **times}


def _quantiles(buckets: Sequence[int]) -> dict[str, float | None]:
    return {name: quantile(buckets, share) for name, share in QUANTILES.items()}
