"""Walks of pruning: which runs they read, where they continue, and where they end."""

from __future__ import annotations

import pytest

from rowcall.base.database import PgConnection, fetch_all
from rowcall.queue.retention.walk import PruneOptions, prune_runs
from rowcall.status import Status
from tests.support.housekeeping import TYPES, Rehearsal, ended, left, prune
from tests.support.rows import run_in


@pytest.mark.parametrize("batch", [1, 2, 3, 7, 8])
def test_a_walk_meets_every_run_once_whatever_its_pages_are(connection: PgConnection, batch: int) -> None:
    kept = [ended(connection, Status.DEAD, "20 days")["id"] for _ in range(2)]
    for ago in ("20 days", "20 days", "30 days", "20 days", "40 days"):
        ended(connection, Status.SUCCEEDED, ago)
    counts = prune(connection, batch=batch)
    assert (counts["looked_at"], counts["deleted"]) == (7, 5)
    assert left(connection) == kept


def test_a_walk_goes_on_where_it_was_saved_and_counts_on(connection: PgConnection) -> None:
    waiting = run_in(connection, Status.QUEUED, created_at="now() - interval '300 days'")["id"]
    for n in range(4):
        ended(connection, Status.SUCCEEDED, f"{99 - n} days")
    policy = TYPES["prune_runs"].checked({"batch": 1})
    first = Rehearsal(connection)
    walk = prune_runs(policy, PruneOptions(first))
    assert [next(walk).counts["deleted"] for _ in range(3)] == [0, 1, 2]
    # What is before the saved position is not read again.
    fetch_all(connection, f"UPDATE rowcall.job_runs SET status = 'dead', finished_at = created_at WHERE id = {waiting}")
    *_, last = prune_runs(policy, PruneOptions(Rehearsal(connection), saved=first.saved[-1]))
    assert (last.counts["looked_at"], last.counts["deleted"]) == (5, 4)
    assert left(connection) == [waiting]


def test_a_walk_ends_at_the_runs_that_are_too_new_to_be_due(connection: PgConnection) -> None:
    for ago in ("40 days", "20 days", "1 day", "1 hour", "1 minute"):
        ended(connection, Status.SUCCEEDED, ago)
    walk = Rehearsal(connection)
    *_, last = prune_runs(TYPES["prune_runs"].checked({"batch": 3}), PruneOptions(walk))
    assert (last.counts["looked_at"], last.counts["deleted"]) == (2, 2)


def test_a_run_from_a_time_when_the_clock_was_ahead_does_not_end_a_walk(connection: PgConnection) -> None:
    for ago in ("40 days", "-400 days", "30 days", "20 days"):
        ended(connection, Status.SUCCEEDED, ago)
    *_, last = prune_runs(TYPES["prune_runs"].checked({"batch": 2}), PruneOptions(Rehearsal(connection)))
    assert (last.counts["looked_at"], last.counts["deleted"]) == (3, 3)


def test_how_far_a_walk_is_goes_by_the_time_that_it_goes_through(connection: PgConnection) -> None:
    for ago in ("34 days", "29 days", "24 days", "15 days"):
        ended(connection, Status.SUCCEEDED, ago)
    policy = TYPES["prune_runs"].checked({"batch": 1})
    shares = [round(progress.share, 2) for progress in prune_runs(policy, PruneOptions(Rehearsal(connection)))]
    assert shares == [0, 0.25, 0.5, 0.95, 1, 1]
