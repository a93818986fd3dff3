"""The archive: pruned runs are on disk first, complete and readable, and no file overwrites another one."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from rowcall.base.database import PgConnection, Row, fetch_all
from rowcall.base.errors import Unavailable
from rowcall.base.files import Files, Written
from rowcall.queue import attempts_of, log_end
from rowcall.queue.retention.walk import PruneOptions, prune_runs
from rowcall.status import Status
from tests.support.housekeeping import TYPES, Rehearsal, ended, left
from tests.support.rows import row_of, run_in
from tests.support.run_log import insert_lines


def archive(connection: PgConnection, files: Files, **policy: Any) -> dict[str, int]:
    """Prune into the archive."""
    *_, last = prune_runs(TYPES["prune_runs"].checked(policy), PruneOptions(Rehearsal(connection), files))
    return dict(last.counts)


def read(folder: Path) -> list[dict[str, Any]]:
    """Return every run in the archive."""
    texts = [gzip.decompress(path.read_bytes()).decode() for path in sorted(folder.rglob("*.jsonl.gz"))]
    return [json.loads(line) for text in texts for line in text.splitlines()]


def plain(row: Row) -> dict[str, Any]:
    """Return a row as JSON has it."""
    told: dict[str, Any] = json.loads(json.dumps(row, default=as_postgresql_writes_it))
    return told


def as_postgresql_writes_it(moment: datetime) -> str:
    """Return a timestamp without trailing zeros in its fraction, which Python writes."""
    return re.sub(r"(\.\d+?)0+\+", r"\1+", moment.isoformat())


def test_a_run_is_written_with_all_columns_its_attempts_and_its_log(connection: PgConnection, tmp_path: Path) -> None:
    fetch_all(connection, "SET LOCAL TIME ZONE 'Asia/Kolkata'")
    run = ended(
        connection,
        Status.DEAD,
        "1 year",
        payload='\'{"name": "Zoë", "amount": 0.10, "many": 123456789012345678901234567890}\'',
        last_error="E'two\\nlines'",
        idempotency_key="'order:1'",
        started_at="'2024-12-31 23:59:00.12+00'",
    )
    fetch_all(
        connection,
        f"INSERT INTO rowcall.job_attempts (run_id, lease_no, attempt, outcome, worker) VALUES"
        f" ({run['id']}, 2, 2, 'give up', 'b'), ({run['id']}, 1, 1, 'fail', 'a')",
    )
    fetch_all(connection, "SET LOCAL TIME ZONE 'UTC'")
    insert_lines(connection, run["id"], [1, 2])
    other = ended(connection, Status.SUCCEEDED, "1 year")
    run, attempts = row_of(connection, run["id"]), attempts_of(connection, run["id"])
    log = log_end(connection, run["id"], 9)
    fetch_all(connection, "SET LOCAL TIME ZONE 'Asia/Kolkata'")
    assert archive(connection, Files(tmp_path))["archived"] == 2
    lines = read(tmp_path)
    told = [{name: value for name, value in attempt.items() if name != "run_id"} for attempt in attempts]
    assert lines == [
        plain({**run, "attempts_ended": told, "log": [plain(line) for line in log]}),
        plain({**other, "attempts_ended": [], "log": []}),
    ]
    [path] = tmp_path.rglob("*.gz")
    # As it was sent: the number was not converted to a float.
    assert b'"amount": 0.10' in gzip.decompress(path.read_bytes())


def test_files_lie_by_year_and_month_and_are_named_by_their_first_and_last_run(
    connection: PgConnection, tmp_path: Path
) -> None:
    for moment in ("2024-12-31 23:59+00", "2025-01-31 23:59+00", "2025-02-01 00:01+00"):
        run_in(connection, Status.SUCCEEDED, created_at=f"'{moment}'", finished_at=f"'{moment}'")
    fetch_all(connection, "SET LOCAL TIME ZONE 'Asia/Kolkata'")
    first, second, third = left(connection)
    archive(connection, Files(tmp_path), batch=2)
    names = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.gz"))
    expected = (f"2025/01/runs-{first}-{second}-", f"2025/02/runs-{third}-{third}-")
    for name, beginning in zip(names, expected, strict=True):
        assert re.fullmatch(re.escape(beginning) + r"[0-9a-f]{12}\.jsonl\.gz", name)


class Watched(Files):
    """Files that record, at each write, whether a transaction was open and which runs existed."""

    def __init__(self, root: Path, steps: Rehearsal, connection: PgConnection) -> None:
        super().__init__(root)
        self._steps, self._connection = steps, connection
        self.seen: list[tuple[bool, list[int]]] = []

    def write(self, path: str, content: bytes | Iterable[bytes]) -> Written:
        """Record, and write."""
        self.seen.append((self._steps.open, left(self._connection)))
        return super().write(path, content)


def test_a_page_is_written_before_it_is_taken_and_no_transaction_is_open_meanwhile(
    connection: PgConnection, tmp_path: Path
) -> None:
    runs = [ended(connection, Status.SUCCEEDED, f"{99 - n} days")["id"] for n in range(3)]
    steps = Rehearsal(connection)
    files = Watched(tmp_path, steps, connection)
    *_, last = prune_runs(TYPES["prune_runs"].checked({"batch": 2}), PruneOptions(steps, files))
    assert files.seen == [(False, runs), (False, runs[2:])]
    assert (last.counts["archived"], last.counts["deleted"]) == (3, 3)


def test_where_the_archive_cannot_be_written_nothing_is_taken(connection: PgConnection, tmp_path: Path) -> None:
    run = ended(connection, Status.SUCCEEDED, "1 year")
    (tmp_path / "archive").write_text("a file")
    with pytest.raises(Unavailable, match="the folder .*archive cannot be used"):
        archive(connection, Files(tmp_path / "archive"))
    assert left(connection) == [run["id"]]


def test_pages_without_anything_due_write_no_file(connection: PgConnection, tmp_path: Path) -> None:
    ended(connection, Status.DEAD, "20 days")
    assert archive(connection, Files(tmp_path))["looked_at"] == 1
    assert list(tmp_path.iterdir()) == []


def test_a_dry_walk_writes_no_file(connection: PgConnection, tmp_path: Path) -> None:
    ended(connection, Status.DEAD, "1 year")
    list(prune_runs(TYPES["prune_runs"].checked({}), PruneOptions(Rehearsal(connection), Files(tmp_path), dry=True)))
    assert list(tmp_path.iterdir()) == []


def test_the_same_runs_again_are_the_same_file_and_other_runs_another(connection: PgConnection, tmp_path: Path) -> None:
    first, between, last = (ended(connection, Status.SUCCEEDED, f"{99 - n} days")["id"] for n in range(3))

    def attempt() -> None:
        """Write the page, and roll back its pruning."""
        fetch_all(connection, "SAVEPOINT attempt")
        archive(connection, Files(tmp_path))
        fetch_all(connection, "ROLLBACK TO SAVEPOINT attempt")

    attempt()
    attempt()
    assert [line["id"] for line in read(tmp_path)] == [first, between, last]
    fetch_all(connection, f"DELETE FROM rowcall.job_runs WHERE id = {between}")
    attempt()
    assert sorted(line["id"] for line in read(tmp_path)) == [first, first, between, last, last]


def test_more_runs_than_are_held_in_memory_at_a_time_are_one_file(connection: PgConnection, tmp_path: Path) -> None:
    fetch_all(
        connection,
        "INSERT INTO rowcall.job_runs (job_type, status, created_at, finished_at)"
        " SELECT 'noop', 'succeeded', moment, moment"
        " FROM (SELECT now() - interval '1 year' FROM generate_series(1, 1000)) AS old(moment)",
    )
    runs = left(connection)
    assert archive(connection, Files(tmp_path))["archived"] == 1000
    assert len(list(tmp_path.rglob("*.gz"))) == 1
    assert [line["id"] for line in read(tmp_path)] == runs
