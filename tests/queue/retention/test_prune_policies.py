"""Old occurrences, and the policies that set how long runs and occurrences are kept."""

from __future__ import annotations

from typing import Any

import pytest

from rowcall.base.database import PgConnection, fetch_all
from rowcall.base.errors import RunInvalid
from rowcall.queue.retention.prune import policy_of
from rowcall.status import Status
from tests.support.housekeeping import OLD_ONES, TYPES, ended, occurrences, occurrences_left, prune

# Occurrences


@pytest.mark.parametrize("batch", [1, 2, 3, 100])
def test_old_occurrences_go_and_the_last_of_each_definition_stays(connection: PgConnection, batch: int) -> None:
    nightly = occurrences(connection, *OLD_ONES)
    yearly = occurrences(connection, "1000 days", "600 days", name="yearly")
    assert prune(connection, batch=batch)["occurrences"] == 4
    assert (occurrences_left(connection, nightly), occurrences_left(connection, yearly)) == ([1, 90], [600])


def test_how_long_occurrences_are_kept_can_be_said(connection: PgConnection) -> None:
    nightly = occurrences(connection, *OLD_ONES)
    assert prune(connection, keep_occurrences_days=399)["occurrences"] == 1
    assert occurrences_left(connection, nightly) == [1, 90, 91, 399]


# Policies


def test_an_empty_policy_is_a_sensible_one() -> None:
    assert TYPES["prune_runs"].checked({}) == {
        "keep_days": {"succeeded": 14, "cancelled": 30, "dead": 90},
        "types": {},
        "archive": False,
        "keep_archive_months": None,
        "export_archive": None,
        "keep_occurrences_days": 90,
        "batch": 1000,
    }
    assert TYPES["expire_keys"].checked({}) == {"keep_days": 365, "types": {}, "batch": 1000}


def test_what_a_policy_does_not_say_is_as_it_was() -> None:
    kept = TYPES["prune_runs"].checked({"keep_days": {"dead": 1.5}})["keep_days"]
    assert kept == {"succeeded": 14, "cancelled": 30, "dead": 1.5}


@pytest.mark.parametrize(
    ("job_type", "policy", "complaint"),
    [
        ("prune_runs", {"keep_days": {"dead": 0}}, "keep_days: dead: Must be a number of days from 1 to 3650"),
        ("prune_runs", {"keep_days": {"dead": 3651}}, "keep_days: dead: Must be a number of days"),
        ("prune_runs", {"keep_days": {"failed": 1}}, "keep_days: failed: Unknown field"),
        ("prune_runs", {"keep_days": 7}, "keep_days: .*Invalid"),
        ("prune_runs", {"types": {"noop": 7}}, "types: noop: Not a valid mapping"),
        (
            "prune_runs",
            {"types": {"noop": {"queued": 7}}},
            "types: noop: queued: Must be one of: succeeded",
        ),
        ("prune_runs", {"types": {"No Op": {"dead": 7}}}, "types: No Op: Must be a job type's name"),
        ("prune_runs", {"keep_occurrences_days": -1}, "keep_occurrences_days: Must be a number of days"),
        ("prune_runs", {"batch": 10_001}, "batch: Must be greater than or equal to 1 and less than or equal to 10000"),
        ("prune_runs", {"batch": 0}, "batch: Must be"),
        ("prune_runs", {"keep": 7}, "keep: Unknown field"),
        ("expire_keys", {"types": {"noop": {"dead": 7}}}, "types: noop: Not a valid number"),
        ("expire_keys", {"keep_days": "for ever"}, "keep_days: Not a valid number"),
        ("expire_keys", {"archive": True}, "archive: Unknown field"),
    ],
)
def test_a_wrong_policy_is_refused_with_the_field(job_type: str, policy: dict[str, Any], complaint: str) -> None:
    with pytest.raises(RunInvalid, match=complaint):
        TYPES[job_type].checked(policy)


DEFINE = """
INSERT INTO rowcall.job_definitions (name, job_type, payload, removed_at)
VALUES (%(name)s, %(job_type)s, '{"batch": 7}', CASE WHEN %(removed)s THEN now() END)
"""


@pytest.mark.parametrize(
    ("name", "job_type", "removed", "batch"),
    [
        ("prune_runs", "prune_runs", False, 7),
        ("prune_runs", "noop", False, 1000),
        ("my_pruning", "prune_runs", False, 1000),
        ("prune_runs", "prune_runs", True, 1000),
    ],
)
def test_the_policy_is_the_payload_of_the_definition_of_that_name(
    connection: PgConnection, name: str, job_type: str, removed: bool, batch: int
) -> None:
    fetch_all(connection, DEFINE, {"name": name, "job_type": job_type, "removed": removed})
    assert policy_of(connection, "prune_runs") == TYPES["prune_runs"].checked({"batch": batch})


@pytest.mark.parametrize(("unique", "kept"), [("ever", 1), ("until_failed", 0), ("live", 0)])
def test_a_natural_key_keeps_its_bare_row_while_the_run_holds_it(
    connection: PgConnection, unique: str, kept: int
) -> None:
    ended(connection, Status.DEAD, "1 year", natural_key="'7'", unique_mode=f"'{unique}'")
    pruned = prune(connection)
    assert (pruned["made_bare"], pruned["deleted"]) == (kept, 1 - kept)
