"""Ten schedulers at once: one of them decides each nominal time of each definition."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from rowcall.base import database
from rowcall.definitions import tick
from rowcall.job_types import catalogue
from tests.definitions.keeping import asleep_since, kept, occurred, runs_of

SCHEDULERS = 10
DEFINITIONS = 20
MINUTES = 30
BOUND = 4


def test_ten_at_once_decide_each_time_once(fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        rows = [kept(connection, f"d{number}", schedule="* * * * *", catch_up="all") for number in range(DEFINITIONS)]
        firsts = [asleep_since(connection, row, f"{MINUTES} minutes") for row in rows]

    def schedule(number: int) -> int:
        decided = 0
        connection = database.connect(fresh_url)
        connection.autocommit = True
        while done := sum(tick(connection, f"worker-{number}", catalogue(), BOUND).decided.values()):
            decided += done
        connection.close()
        return decided

    with ThreadPoolExecutor(SCHEDULERS) as pool:
        shares = list(pool.map(schedule, range(SCHEDULERS)))
    assert sum(share > 0 for share in shares) > 1, "more than one of them decided something"
    with database.transaction(fresh_url) as connection:
        # A scheduler that finds all definitions locked ends early; the next tick decides what that leaves.
        while sum(tick(connection, "last", catalogue(), BOUND).decided.values()):
            pass
        for row, first in zip(rows, firsts, strict=True):
            nominals = [one["nominal_at"] for one in occurred(connection, row)]
            assert len(nominals) >= MINUTES
            assert nominals[0] == first
            assert nominals == [run["scheduled_for"] for run in runs_of(connection, row)]
