"""prune_runs and expire_keys in a worker: with their payload, into the archive, and with their counts as the result."""

from __future__ import annotations

from pathlib import Path

from rowcall import queue
from rowcall.base import database
from rowcall.status import Status
from tests.support.housekeeping import ended, left
from tests.support.processes import rowcall
from tests.support.rows import row_of


def test_a_worker_prunes_into_the_archive_and_expires(fresh_url: str, environment: dict[str, str]) -> None:
    environment["DATABASE_URL"] = fresh_url
    with database.transaction(fresh_url) as connection:
        ended(connection, Status.DEAD, "91 days")
        kept = ended(connection, Status.SUCCEEDED, "20 days", idempotency_key="'one'")
        ended(connection, Status.SUCCEEDED, "366 days", idempotency_key="'two'", pruned_at="now()")
        pruning = queue.enqueue(connection, "prune_runs", {"archive": True}).run_id
        expiring = queue.enqueue(connection, "expire_keys", {}).run_id
    assert "claimed 2, succeeded 2" in rowcall(environment, "worker", "once").stdout
    with database.transaction(fresh_url) as connection:
        pruned, expired = (row_of(connection, run_id)["result"] for run_id in (pruning, expiring))
        # Both run at the same time, so prune_runs may or may not see the bare row.
        assert pruned.pop("looked_at") in (2, 3)
        assert pruned == {"deleted": 1, "made_bare": 1, "archived": 2, "months_dropped": 0, "occurrences": 0}
        assert expired == {"expired": 1}
        assert left(connection) == [kept["id"], pruning, expiring]
        assert row_of(connection, kept["id"])["pruned_at"]
    assert len(list(Path(environment["ROWCALL_HOME"], "archive").rglob("*.jsonl.gz"))) == 1


def test_an_archive_that_cannot_be_written_fails_the_attempt_and_nothing_goes(
    fresh_url: str, environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    environment |= {"DATABASE_URL": fresh_url, "ROWCALL_ARCHIVE": str(tmp_path / "file")}
    with database.transaction(fresh_url) as connection:
        old = ended(connection, Status.DEAD, "91 days")["id"]
        run_id = queue.enqueue(connection, "prune_runs", {"archive": True}).run_id
    assert "claimed 1, succeeded 0, failed 1" in rowcall(environment, "worker", "once", "--limit", "1").stdout
    with database.transaction(fresh_url) as connection:
        assert f"the folder {tmp_path / 'file'} cannot be used" in row_of(connection, run_id)["last_error"]
        assert left(connection) == [old, run_id]


def test_an_operation_that_does_not_exist_is_not_tried_again(fresh_url: str, environment: dict[str, str]) -> None:
    environment["DATABASE_URL"] = fresh_url
    with database.transaction(fresh_url) as connection:
        lost = queue.enqueue(connection, "carry_out_operation", {"operation_id": 7}).run_id
    assert "claimed 1, succeeded 0, failed 0, dead 1" in rowcall(environment, "worker", "once").stdout
    with database.transaction(fresh_url) as connection:
        assert row_of(connection, lost)["last_error"].startswith("there is no operation 7; ")
