"""Months of the archive table as files: complete, exact, and written before a month is dropped."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from rowcall.base.database import PgConnection, fetch_all
from rowcall.base.errors import Unavailable
from rowcall.base.files import Files, Written
from rowcall.queue.fragments import RUN_COLUMNS
from rowcall.queue.retention import archive, export
from rowcall.queue.retention.export import FORMS, export_month
from rowcall.queue.retention.walk import PruneOptions, prune_runs
from rowcall.schema.archived_runs import archived_runs
from rowcall.schema.runs import job_runs
from rowcall.status import Status
from tests.support.housekeeping import TYPES, Rehearsal
from tests.support.rows import run_in
from tests.support.run_log import insert_lines

MAY = date(2020, 5, 1)


def archived(connection: PgConnection, *moments: str, **columns: str) -> list[int]:
    """Archive runs of these moments; return their ids."""
    ids = [
        run_in(connection, Status.DEAD, **dict.fromkeys(("created_at", "finished_at"), f"'{moment}'"), **columns)["id"]
        for moment in moments
    ]
    policy(connection)
    return ids


def policy(connection: PgConnection, files: Files | None = None, **more: Any) -> dict[str, int]:
    """Run prune_runs with this policy."""
    checked = TYPES["prune_runs"].checked({"archive": "table", **more})
    *_, last = prune_runs(checked, PruneOptions(Rehearsal(connection), files, to_table=True))
    return dict(last.counts)


def read_csv(path: Path) -> list[dict[str, str]]:
    """Return the rows of a compressed CSV file."""
    return list(csv.DictReader(io.StringIO(gzip.decompress(path.read_bytes()).decode())))


def read_parquet(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a Parquet file."""
    rows: list[dict[str, Any]] = pyarrow.parquet.read_table(path).to_pylist()
    return rows


def test_every_column_is_archived_and_exported() -> None:
    shared = [name.strip() for name in RUN_COLUMNS.split(",")]
    assert sorted(shared) == sorted(column.name for column in job_runs.columns)
    assert sorted(FORMS) == sorted(column.name for column in archived_runs.columns)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_file_has_the_runs_of_one_month_as_they_are_in_the_table(
    form: str, connection: PgConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "PORTION", 2)
    moments = ("2020-04-30 23:59+00", "2020-05-01 00:00+00", "2020-05-10 12:00:00.25+00", "2020-05-31 23:59+00")
    runs = archived(
        connection,
        *moments,
        "2020-06-01 00:00+00",
        payload='\'{"name": "Zoë, \\"x\\"\\nline", "amount": 0.10, "many": 123456789012345678901234567890}\'',
        last_error="E'two\\nlines'",
        trace_parent="NULL",
    )
    fetch_all(connection, "SET LOCAL TIME ZONE 'Asia/Kolkata'")
    exported = export_month(Rehearsal(connection).step, Files(tmp_path), MAY, form)
    path = tmp_path / exported.path
    assert (exported.runs, exported.size) == (3, path.stat().st_size)
    rows = read_csv(path) if form == "csv" else read_parquet(path)
    assert [int(row["id"]) for row in rows] == runs[1:4]
    assert list(rows[1]) == list(FORMS)
    assert rows[1]["last_error"] == "two\nlines"
    assert rows[1]["trace_parent"] == ("" if form == "csv" else None)
    assert '"amount": 0.10' in rows[1]["payload"]
    assert json.loads(rows[1]["payload"])["many"] == 123456789012345678901234567890
    created = datetime.fromisoformat(rows[1]["created_at"]) if form == "csv" else rows[1]["created_at"]
    assert created == datetime(2020, 5, 10, 12, 0, 0, 250_000, tzinfo=UTC)


def test_parquet_joins_portions_to_row_groups(
    connection: PgConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "PORTION", 1)
    monkeypatch.setattr(export, "GROUP_RUNS", 2)
    archived(connection, *[f"2020-05-1{day} 12:00+00" for day in range(5)])
    path = tmp_path / export_month(Rehearsal(connection).step, Files(tmp_path), MAY, "parquet").path
    groups = pyarrow.parquet.ParquetFile(path).metadata
    assert [groups.row_group(number).num_rows for number in range(groups.num_row_groups)] == [2, 2, 1]


def test_attempts_and_lines_are_json(connection: PgConnection, tmp_path: Path) -> None:
    run_id = run_in(connection, Status.DEAD, **dict.fromkeys(("created_at", "finished_at"), "'2020-05-10 12:00+00'"))[
        "id"
    ]
    fetch_all(
        connection,
        f"INSERT INTO rowcall.job_attempts (run_id, lease_no, attempt, outcome, worker)"
        f" VALUES ({run_id}, 1, 1, 'fail', 'a')",
    )
    insert_lines(connection, run_id, [1, 2])
    policy(connection)
    [row] = read_csv(tmp_path / export_month(Rehearsal(connection).step, Files(tmp_path), MAY, "csv").path)
    assert [attempt["worker"] for attempt in json.loads(row["attempts_ended"])] == ["a"]
    assert [line["line_no"] for line in json.loads(row["log"])] == [1, 2]


@pytest.mark.parametrize(("form", "suffix"), [("csv", "csv.gz"), ("parquet", "parquet")])
def test_housekeeping_exports_a_month_before_it_drops_it(
    form: str, suffix: str, connection: PgConnection, tmp_path: Path
) -> None:
    [run_id] = archived(connection, "2020-05-10 12:00+00")
    counts = policy(connection, Files(tmp_path), keep_archive_months=12, export_archive=form)
    assert counts["months_dropped"] == 1
    [path] = tmp_path.rglob(f"2020/05/runs-2020-05-*.{suffix}")
    rows = read_csv(path) if form == "csv" else read_parquet(path)
    assert [int(row["id"]) for row in rows] == [run_id]
    assert archive.months(connection) == []


def test_a_month_that_is_made_again_gets_a_file_of_its_own(connection: PgConnection, tmp_path: Path) -> None:
    first = archived(connection, "2020-05-10 12:00+00")
    files = Files(tmp_path)
    fetch_all(connection, "UPDATE rowcall.archived_runs SET archived_at = archived_at - interval '1 second'")
    policy(connection, files, keep_archive_months=12, export_archive="csv")
    second = archived(connection, "2020-05-11 12:00+00")
    policy(connection, files, keep_archive_months=12, export_archive="csv")
    exported = [int(row["id"]) for path in sorted(tmp_path.rglob("*.csv.gz")) for row in read_csv(path)]
    assert sorted(exported) == [*first, *second]


def test_an_export_that_is_repeated_replaces_its_file(connection: PgConnection, tmp_path: Path) -> None:
    archived(connection, "2020-05-10 12:00+00")
    paths = {export_month(Rehearsal(connection).step, Files(tmp_path), MAY, "csv").path for _ in range(2)}
    assert len(paths) == 1


class FullDisk(Files):
    """Files on a disk that is full."""

    def write(self, path: str, content: bytes | Iterable[bytes]) -> Written:
        """Read all that would be written, and fail."""
        list(content)
        raise Unavailable(f"{path!r}: no space is left")


def test_a_month_that_cannot_be_exported_is_not_dropped(connection: PgConnection, tmp_path: Path) -> None:
    archived(connection, "2020-05-10 12:00+00")
    with pytest.raises(Unavailable):
        policy(connection, FullDisk(tmp_path), keep_archive_months=12, export_archive="csv")
    assert [row["month"] for row in archive.months(connection)] == [MAY]


def test_times_in_csv_are_in_utc_whatever_the_zone_of_the_session(connection: PgConnection, tmp_path: Path) -> None:
    archived(connection, "2020-05-10 12:00+00")
    fetch_all(connection, "SET LOCAL TIME ZONE 'Pacific/Kiritimati'")
    [row] = read_csv(tmp_path / export_month(Rehearsal(connection).step, Files(tmp_path), MAY, "csv").path)
    assert row["created_at"] == "2020-05-10T12:00:00+00:00"


def test_a_month_without_runs_has_an_empty_file_that_says_so(connection: PgConnection, tmp_path: Path) -> None:
    fetch_all(connection, "SELECT rowcall.make_archive_month('2020-05-01')")
    written = export_month(Rehearsal(connection).step, Files(tmp_path), MAY, "csv")
    assert written.path == "2020/05/runs-2020-05-empty.csv.gz"
    assert (written.runs, read_csv(tmp_path / written.path)) == (0, [])
